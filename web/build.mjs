// Bundles src/ into the Python package: `node build.mjs` writes, `node build.mjs --check` compares with the files.
// The banners have the digest of the sources, so that the checks in tests/ need neither Node nor npm.

import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readFileSync, readdirSync, writeFileSync } from "node:fs";
import { join, relative, sep } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const here = fileURLToPath(new URL(".", import.meta.url));
const explorer = join(here, "..", "src", "tracr", "viz", "explorer");
const playground = join(here, "..", "src", "tracr", "playground", "page");
const OLDEST = ["chrome105", "firefox110", "safari16"]; // the oldest browsers with container queries
const MOST = { "explorer.js": 300_000, "playground.js": 600_000 }; // most bytes of a bundle

/** The digest of the files in src/ whose name (`src/view/dom.js`) is wanted. */
function digest(wanted = () => true) {
  const hash = createHash("sha256");
  const files = readdirSync(join(here, "src"), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath ?? entry.path, entry.name))
    .map((path) => [relative(here, path).split(sep).join("/"), path])
    .filter(([name]) => wanted(name))
    .sort(([a], [b]) => (a < b ? -1 : 1));
  for (const [name, path] of files) hash.update(`${name}\0`).update(readFileSync(path)).update("\0");
  return hash.digest("hex");
}

async function minified(path, target) {
  const { outputFiles } = await build({ entryPoints: [path], minify: true, charset: "utf8", target, write: false });
  return outputFiles[0].text;
}

const squeezed = {
  name: "css",
  setup(plugin) {
    plugin.onLoad({ filter: /\.css$/ }, async ({ path }) => ({
      contents: (await minified(path, OLDEST)).trim(),
      loader: "text",
    }));
  },
};

/** A script of everything that an entry point imports, and the files that it was made of. */
async function bundle(entry, title, sum) {
  const { outputFiles, metafile } = await build({
    entryPoints: [join(here, "src", entry)],
    absWorkingDir: here,
    bundle: true,
    minify: true,
    format: "iife",
    target: "es2022",
    charset: "utf8",
    legalComments: "none",
    plugins: [squeezed],
    banner: { js: `/* ${title}, built from web/src. sha256 of the sources: ${sum} */` },
    metafile: true,
    write: false,
  });
  return { text: outputFiles[0].text, inputs: Object.keys(metafile.inputs) };
}

/** The licences of the packages in a bundle. */
function licences(inputs) {
  const names = inputs.map((path) => /^node_modules\/((?:@[^/]+\/)?[^/]+)\//.exec(path)?.[1]).filter(Boolean);
  const texts = [...new Set(names)].sort().map((name) => {
    const folder = join(here, "node_modules", name);
    const { version } = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
    return `${name} ${version}\n\n${readFileSync(join(folder, "LICENSE"), "utf8").trim()}\n`;
  });
  return `playground.js contains the following packages.\n\n${texts.join(`\n${"-".repeat(80)}\n\n`)}`;
}

const first = await bundle(
  "main.js",
  "Tracr explorer",
  digest((name) => !name.startsWith("src/playground/")),
);
const second = await bundle("playground/main.js", "Tracr playground (licences: licences.txt)", digest());
const files = [
  [explorer, "explorer.js", first.text],
  [playground, "playground.js", second.text],
  [playground, "playground.css", await minified(join(here, "src", "playground", "style.css"))],
  [playground, "licences.txt", licences(second.inputs)],
  ...["index.html", "explorer.html"].map((name) => [
    playground,
    name,
    readFileSync(join(here, "src", "playground", name), "utf8"),
  ]),
];
for (const [folder, name, text] of files) {
  const path = join(folder, name);
  const size = Buffer.byteLength(text);
  if (size > (MOST[name] ?? Infinity)) throw new Error(`${name} has ${size} bytes, more than ${MOST[name]}`);
  if (process.argv.includes("--check")) {
    if (!existsSync(path) || readFileSync(path, "utf8") !== text) {
      console.error(`${relative(join(here, ".."), path)} is not what web/src builds to: run \`make bundle\``);
      process.exitCode = 1;
    }
  } else {
    mkdirSync(folder, { recursive: true });
    writeFileSync(path, text);
  }
  console.log(`${name}: ${size.toLocaleString("en")} bytes`);
}
