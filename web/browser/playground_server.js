// The playground's server for the tests: the Python in TRACR_PYTHON, or the one of `make`.

import { spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("../..", import.meta.url));
const READY = /The playground is at (\S+)/;

/** Start a server on a free port; `address` is its page. */
export async function serve() {
  const installed = join(root, ".venv", "bin", "python");
  const python = process.env.TRACR_PYTHON ?? (existsSync(installed) ? installed : "python3");
  const server = spawn(python, ["-m", "tracr.cli", "playground", "--port", "0", "--workers", "2"], {
    cwd: root,
    env: { ...process.env, PYTHONPATH: join(root, "src") },
    stdio: ["ignore", "pipe", "pipe"],
  });
  const address = await new Promise((resolve, reject) => {
    let said = "";
    const hear = (words) => {
      said += words;
      if (READY.test(said)) resolve(READY.exec(said)[1]);
    };
    server.stdout.on("data", hear);
    server.stderr.on("data", hear);
    server.on("exit", () => reject(new Error(`the server ended: ${said}`)));
  });
  return { address, stop: () => server.kill() };
}

/** A page of the server. `page.problems` are its errors, `page.requests` those to other places. */
export async function visit(browser, address, { width = 1440, height = 900, scheme = "light", storage } = {}) {
  const context = await browser.newContext({
    viewport: { width, height },
    colorScheme: scheme,
    storageState: storage,
    acceptDownloads: true,
  });
  const page = await context.newPage();
  const home = new URL(address).origin;
  page.requests = [];
  page.problems = [];
  page.on(
    "request",
    (request) =>
      /^(blob:|data:)/.test(request.url()) || request.url().startsWith(home) || page.requests.push(request.url()),
  );
  page.on("pageerror", (error) => page.problems.push(error.message));
  page.on("console", (message) => {
    const refused = /Failed to load resource.*(409|422|429|503)/.test(message.text()); // the page shows why
    if (message.type() === "error" && !refused) page.problems.push(message.text());
  });
  await page.goto(address);
  return page;
}
