// The reader's choices in the fragment of the page's address: a link shows what its sender saw.

import { choicesOf, choose } from "./choices.js";

const SEVERAL = ["open"]; // choices with several values, in one parameter each

/** Write choices as a fragment, without #. */
export function fragmentOf(choices) {
  const fields = new URLSearchParams();
  for (const [name, value] of Object.entries(choices)) {
    if (value === undefined || value === null || value === false) continue;
    if (name === "patches") for (const patch of value) fields.append("patch", JSON.stringify(patch));
    else if (SEVERAL.includes(name)) fields.append(name, JSON.stringify(value));
    else fields.append(name, value === true ? "1" : String(value));
  }
  return fields.toString();
}

/** Read a fragment; what cannot be read is left out. */
export function choicesIn(fragment) {
  const fields = new URLSearchParams(fragment.replace(/^#/, ""));
  const choices = Object.fromEntries([...fields].filter(([name]) => name !== "patch" && !SEVERAL.includes(name)));
  const lists = fields.getAll("patch").map(listIn).filter((patch) => patch?.length === 3);
  const several = SEVERAL.map((name) => [name, listIn(fields.get(name) ?? "")]).filter(([, list]) => list);
  return { ...choices, ...Object.fromEntries(several), patches: lists };
}

function listIn(text) {
  try {
    const list = JSON.parse(text);
    return Array.isArray(list) ? list : null;
  } catch {
    return null;
  }
}

/** Replace the fragment of the address; a page in a notebook's frame has none. */
export function write(fragment) {
  try {
    history.replaceState(null, "", `#${fragment}`);
  } catch {
    // not allowed in such a frame
  }
}

/** Read the address, then keep it and the choices of a page equal. */
export function follow(page) {
  const { state, signal } = page;
  const read = () => choose(state, choicesIn(location.hash));
  if (location.hash.length > 1) read();
  let written = location.hash;
  page.changed = () => {
    const fragment = fragmentOf(choicesOf(state));
    written = `#${fragment}`;
    write(fragment);
  };
  addEventListener("hashchange", () => location.hash !== written && read(), { signal });
}
