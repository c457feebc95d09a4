// Files: programs from and to the reader's disk.

import { h } from "../view/dom.js";

const LARGEST = 200_000; // bytes of a program

/** Give the reader a file. */
export function save(name, blob) {
  const link = h("a", { href: URL.createObjectURL(blob), download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}

/** Ask for a .rasp file; resolves to its text, or `problem`. */
export function load() {
  const field = h("input", { type: "file", accept: ".rasp,.txt,text/plain" });
  return new Promise((resolve) => {
    field.addEventListener("cancel", () => resolve(null), { once: true });
    field.addEventListener("change", () => resolve(textOf(field.files[0])), { once: true });
    field.click();
  });
}

async function textOf(file) {
  if (file.size > LARGEST) return { problem: `${file.name} has ${file.size} bytes; a program has at most ${LARGEST}.` };
  return { text: (await file.text()).replaceAll("\r\n", "\n") };
}

/** The name of a file for a program: its output's, as far as it can be part of a file's name. */
export function fileFor(name, ending) {
  return `${name.replace(/[^\w-]+/g, "_") || "program"}.${ending}`;
}
