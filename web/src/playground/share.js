// A program and its settings as the fragment of an address, which browsers do not send to the server.

import { settingsFrom } from "./settings.js";

const PREFIX = "#program=";

/** The fragment: the settings as JSON, in letters that need no escapes in an address. */
export function fragmentOf(settings) {
  const bytes = new TextEncoder().encode(JSON.stringify(settings));
  const letters = btoa(Array.from(bytes, (byte) => String.fromCharCode(byte)).join(""));
  return PREFIX + letters.replaceAll("+", "-").replaceAll("/", "_").replace(/=+$/, "");
}

/** The settings in a fragment, or null if it has none that can be read. */
export function settingsIn(fragment) {
  if (!fragment.startsWith(PREFIX)) return null;
  try {
    const letters = fragment.slice(PREFIX.length).replaceAll("-", "+").replaceAll("_", "/");
    const bytes = Uint8Array.from(atob(letters), (letter) => letter.charCodeAt(0));
    return settingsFrom(JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(bytes)));
  } catch {
    return null;
  }
}

export function isShared(fragment) {
  return fragment.startsWith(PREFIX);
}
