// The editor: CodeMirror with the .rasp language. Tab leaves it, so that the keyboard reaches everything.

import { autocompletion, closeBrackets, closeBracketsKeymap, completionKeymap } from "@codemirror/autocomplete";
import { defaultKeymap, history, historyKeymap } from "@codemirror/commands";
import { HighlightStyle, StreamLanguage, bracketMatching, syntaxHighlighting } from "@codemirror/language";
import { lintGutter, lintKeymap, setDiagnostics } from "@codemirror/lint";
import { EditorState } from "@codemirror/state";
import { EditorView, drawSelection, highlightActiveLine, keymap, lineNumbers } from "@codemirror/view";
import { tags } from "@lezer/highlight";
import { complete } from "./completion.js";
import { rasp } from "./language.js";
import { underlined } from "./places.js";

const colours = HighlightStyle.define([
  { tag: tags.comment, color: "var(--soft)", fontStyle: "italic" },
  { tag: tags.keyword, color: "var(--keyword)", fontWeight: "600" },
  { tag: [tags.string, tags.number, tags.bool], color: "var(--literal)" },
  { tag: tags.standard(tags.variableName), color: "var(--accent)" },
  { tag: tags.special(tags.variableName), color: "var(--ok)" },
  { tag: tags.definition(tags.variableName), fontWeight: "600" },
  { tag: tags.invalid, color: "var(--bad)" },
]);

const theme = EditorView.theme({
  "&": { color: "var(--ink)", backgroundColor: "var(--panel)", fontSize: "14px", height: "100%" },
  "&.cm-focused": { outline: "none" }, // `.editor:focus-within` shows the focus
  ".cm-scroller": { fontFamily: "var(--mono)", lineHeight: "1.55" },
  ".cm-content": { caretColor: "var(--ink)", padding: "8px 0" },
  ".cm-cursor": { borderLeftColor: "var(--ink)" },
  ".cm-gutters": { backgroundColor: "var(--panel)", color: "var(--soft)", border: "none" },
  ".cm-activeLine, .cm-activeLineGutter": { backgroundColor: "var(--faint)" },
  "&.cm-focused > .cm-scroller > .cm-selectionLayer .cm-selectionBackground, .cm-selectionBackground": {
    background: "var(--selected)",
  },
  ".cm-matchingBracket": { backgroundColor: "var(--selected) !important" },
  ".cm-lintRange-error, .cm-lintRange-warning": {
    backgroundImage: "none",
    textDecoration: "underline wavy var(--bad) 1.5px",
    textUnderlineOffset: "3px",
    textDecorationSkipInk: "none",
  },
  ".cm-lintRange-warning": { textDecorationColor: "var(--literal)" },
  ".cm-tooltip": {
    backgroundColor: "var(--panel)",
    color: "var(--ink)",
    border: "1px solid var(--line)",
    borderRadius: "6px",
  },
  ".cm-tooltip-autocomplete > ul": { fontFamily: "var(--mono)" },
  ".cm-tooltip-autocomplete > ul > li[aria-selected]": { backgroundColor: "var(--accent)", color: "var(--on-accent)" },
  ".cm-completionDetail": { fontStyle: "normal", opacity: "0.85" },
  ".cm-completionInfo": { maxWidth: "300px", fontFamily: "var(--sans)" },
  "@media (max-width: 560px)": { ".cm-completionInfo": { display: "none" } }, // it would hide the list
  ".cm-diagnostic": { whiteSpace: "pre-wrap", maxWidth: "60ch", borderLeftColor: "var(--bad)" },
});

export class Editor {
  /** `changed()` hears every change made by the reader, `submit()` Ctrl+Enter; `label` is for screen readers. */
  constructor(label, { changed, submit }) {
    this.element = document.createElement("div");
    this.element.className = "editor";
    this.quiet = false;
    this.view = new EditorView({
      parent: this.element,
      state: EditorState.create({ extensions: this.extensions(label, changed, submit) }),
    });
  }

  extensions(label, changed, submit) {
    return [
      lineNumbers(),
      lintGutter(),
      history(),
      drawSelection(),
      highlightActiveLine(),
      bracketMatching(),
      closeBrackets(),
      autocompletion({ override: [complete], icons: false }),
      StreamLanguage.define(rasp),
      syntaxHighlighting(colours),
      theme,
      EditorView.lineWrapping,
      EditorState.tabSize.of(2),
      EditorView.contentAttributes.of({ "aria-label": label }),
      keymap.of([{ key: "Mod-Enter", run: () => (submit(), true) }]),
      keymap.of([...closeBracketsKeymap, ...defaultKeymap, ...historyKeymap, ...completionKeymap, ...lintKeymap]),
      EditorView.updateListener.of((update) => {
        if (update.docChanged && !this.quiet) changed();
      }),
    ];
  }

  get text() {
    return this.view.state.doc.toString();
  }

  /** Another text, without telling the listener. */
  set text(text) {
    this.quiet = true;
    this.view.dispatch({ changes: { from: 0, to: this.view.state.doc.length, insert: text } });
    this.quiet = false;
  }

  /** Underline the places of an error and of warnings, instead of those underlined before. */
  mark(error, warnings = []) {
    const found = [...(error ? [["error", error]] : []), ...warnings.map((warning) => ["warning", warning])];
    const placed = found.filter(([, { line }]) => line);
    const diagnostics = placed.map(([severity, problem]) => ({
      ...underlined(this.text, problem),
      severity,
      message: [problem.message, problem.hint && `Hint: ${problem.hint}`].filter(Boolean).join("\n"),
    }));
    this.view.dispatch(setDiagnostics(this.view.state, diagnostics));
  }

  /** Put the cursor at the place of an error. */
  go(error) {
    this.view.dispatch({ selection: { anchor: underlined(this.text, error).from }, scrollIntoView: true });
    this.view.focus();
  }
}
