// Bundles src/ into the Python package: `node build.mjs` writes, `node build.mjs --check` compares with the file.
// The banner has the digest of the sources, so that the check in tests/viz needs neither Node nor npm.

import { createHash } from "node:crypto";
import { readFileSync, readdirSync, writeFileSync } from "node:fs";
import { join, relative, sep } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const here = fileURLToPath(new URL(".", import.meta.url));
const target = join(here, "..", "src", "tracr", "viz", "explorer", "explorer.js");
const CSS = ["chrome105", "firefox110", "safari16"]; // the oldest browsers with container queries
const MOST = 300_000; // most bytes of the bundle

function digest() {
  const hash = createHash("sha256");
  const files = readdirSync(join(here, "src"), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath ?? entry.path, entry.name))
    .map((path) => [relative(here, path).split(sep).join("/"), path])
    .filter(([name]) => !name.startsWith("src/playground/")) // another bundle
    .sort(([a], [b]) => (a < b ? -1 : 1));
  for (const [name, path] of files) hash.update(`${name}\0`).update(readFileSync(path)).update("\0");
  return hash.digest("hex");
}

const squeezed = {
  name: "css",
  setup(plugin) {
    plugin.onLoad({ filter: /\.css$/ }, async ({ path }) => {
      const { outputFiles } = await build({ entryPoints: [path], minify: true, target: CSS, write: false });
      return { contents: outputFiles[0].text.trim(), loader: "text" };
    });
  },
};

const { outputFiles } = await build({
  entryPoints: [join(here, "src", "main.js")],
  bundle: true,
  minify: true,
  format: "iife",
  target: "es2022",
  charset: "utf8",
  legalComments: "none",
  plugins: [squeezed],
  banner: { js: `/* Tracr explorer, built from web/src. sha256 of the sources: ${digest()} */` },
  write: false,
});
const bundle = outputFiles[0].text;
if (Buffer.byteLength(bundle) > MOST)
  throw new Error(`the bundle has ${Buffer.byteLength(bundle)} bytes, more than ${MOST}`);
if (process.argv.includes("--check")) {
  if (readFileSync(target, "utf8") !== bundle) {
    console.error("src/tracr/viz/explorer/explorer.js is not what web/src builds to: run `make bundle`");
    process.exit(1);
  }
} else writeFileSync(target, bundle);
console.log(`explorer.js: ${Buffer.byteLength(bundle).toLocaleString("en")} bytes`);
