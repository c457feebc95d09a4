// Requests to the server. Every answer is a value, or a `Refusal` that can be shown.

const BUSY = [429, 503]; // the same request may be sent again after `Retry-After`
const GONE = 0; // no answer came
const PATIENCE = 3; // seconds until a server that did not answer is asked again
const STALE = 409; // a newer request of this tab took its place

/** An error with its place in the program: `line` and `column` count from 1, or are null. */
export class Refusal extends Error {
  constructor({ message, line = null, column = null, hint = null }, { status = GONE, retryAfter = null } = {}) {
    super(message);
    Object.assign(this, { line, column, hint, status, retryAfter });
  }

  /** The seconds after which the same request may succeed; null if it will not. */
  get retry() {
    if (this.status === GONE) return PATIENCE;
    return BUSY.includes(this.status) ? (this.retryAfter ?? 1) : null;
  }

  get stale() {
    return this.status === STALE;
  }
}

export class Api {
  /** `tab` names this tab for the server, which keeps only the newest waiting request of a tab. */
  constructor(fetch, tab) {
    this.fetch = fetch;
    this.tab = tab;
  }

  compile = (settings, signal) => this.json("/api/compile", settings, signal);
  levels = (settings, signal) => this.json("/api/levels", settings, signal);
  format = (source, signal) => this.json("/api/format", { source }, signal);
  check = (attempt, signal) => this.json("/api/check", attempt, signal);
  examples = () => this.json("/api/examples");
  puzzles = () => this.json("/api/puzzles");

  /** A file made by the server: its name and its content. */
  async download(settings, kind) {
    const response = await this.send("/api/download", { ...settings, kind });
    return { name: fileName(response.headers.get("Content-Disposition")) ?? kind, blob: await response.blob() };
  }

  async json(path, body, signal) {
    return (await this.send(path, body, signal)).json();
  }

  async send(path, body, signal) {
    const options = { signal, headers: { "X-Tracr-Tab": this.tab } };
    if (body !== undefined) {
      options.method = "POST";
      options.headers["Content-Type"] = "application/json";
      options.body = JSON.stringify(body);
    }
    const { fetch } = this;
    const response = await fetch(path, options).catch((error) => {
      if (error.name === "AbortError") throw error;
      throw new Refusal({ message: "the server does not answer", hint: "start it again: tracr playground" });
    });
    if (!response.ok) throw await refusal(response);
    return response;
  }
}

async function refusal(response) {
  const { error } = await response.json().catch(() => ({}));
  const message = typeof error?.message === "string" ? error.message : `the server answered ${response.status}`;
  const seconds = Number.parseFloat(response.headers.get("Retry-After"));
  return new Refusal(
    { ...error, message },
    { status: response.status, retryAfter: Number.isFinite(seconds) ? seconds : null },
  );
}

/** The name in a header such as `attachment; filename="sort.svg"`, without folders. */
export function fileName(disposition) {
  const found = /filename="?([^";]+)"?/.exec(disposition ?? "");
  return found ? found[1].replace(/^.*[/\\]/, "") : null;
}
