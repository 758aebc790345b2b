// Sends one file so that it survives a lost connection, a restarted server and a closed
// tab: the tus protocol 1.0.0 in small. Written here instead of vendored because four
// requests are all there is to it, the usual client is 87 kB, and the server finds a file
// again by its fingerprint, so that nothing has to be remembered in the browser.
const PIECE = 8 * 1024 * 1024;
const SAMPLE = 64 * 1024;
const PAUSES = [1, 2, 4, 8, 15];
const TYPE = "application/offset+octet-stream";

export class Refused extends Error {}
class Dropped extends Error {
  constructor(sentence, seconds) {
    super(sentence);
    this.seconds = seconds;
  }
}

// Bytes of the file's start, middle and end, mixed into 64 bits. It tells files of one
// sender apart that have the same name, size and time; it protects nothing.
async function sampleOf(file) {
  const starts = [0, Math.max(0, Math.floor(file.size / 2)), Math.max(0, file.size - SAMPLE)];
  let [a, b] = [1, 2];
  for (const start of starts) {
    const bytes = new Uint8Array(await file.slice(start, start + SAMPLE).arrayBuffer());
    for (const byte of bytes) {
      a = Math.imul(a ^ byte, 2654435761);
      b = Math.imul(b ^ byte, 1597334677);
    }
  }
  return `${(a >>> 0).toString(16)}${(b >>> 0).toString(16)}`;
}

function base64(text) {
  return btoa(String.fromCharCode(...new TextEncoder().encode(text)));
}

export class ResumableUpload {
  // `say` is told {sent, isSafe} or {problem}; `address` is where uploads are begun.
  constructor(file, { address, csrf, format, say }) {
    Object.assign(this, { file, address, csrf, format, say });
    this.url = "";
    this.key = "";
    this.offset = 0;
    this.most = 0;
    this.request = null;
    this.isStopped = false;
  }

  // The address of the receipt, and whether its bytes were here before; raises Refused with a sentence, or null once stopped.
  async send() {
    for (let failures = 0; !this.isStopped; ) {
      const before = this.offset;
      try {
        await this.#findOut();
        return await this.#sendTheRest();
      } catch (error) {
        if (this.isStopped) break;
        if (!(error instanceof Dropped)) throw error;
        failures = this.offset > before ? 0 : failures + 1;
        await this.#pause(error, failures);
      }
    }
    return null;
  }

  // Stops, and lets the server forget what it has.
  stop() {
    this.isStopped = true;
    this.request?.abort();
    if (this.url) this.#forget();
  }

  // A server that cannot be told removes it by itself after a day.
  async #forget() {
    for (const seconds of [...PAUSES, 0]) {
      try {
        await this.#ask("DELETE", this.url);
        return;
      } catch {
        await new Promise((resolve) => setTimeout(resolve, seconds * 1000));
      }
    }
  }

  async #findOut() {
    if (this.url) {
      const answer = await this.#ask("HEAD", this.url);
      if (answer.status === 200) {
        this.#take(answer);
        return;
      }
      this.url = "";
    }
    const metadata = {
      filename: this.file.name,
      format: this.format,
      fingerprint: `${this.file.lastModified}-${await sampleOf(this.file)}`,
    };
    const pairs = Object.entries(metadata).filter(([, value]) => value);
    const answer = await this.#ask("POST", this.address, {
      "Upload-Length": String(this.file.size),
      "Upload-Metadata": pairs.map(([name, value]) => `${name} ${base64(value)}`).join(","),
    });
    this.url = answer.header("Location");
    this.key = answer.header("Upload-Key");
    this.#take(answer);
  }

  async #sendTheRest() {
    for (;;) {
      const piece = this.file.slice(this.offset, this.offset + PIECE);
      const headers = { "Content-Type": TYPE, "Upload-Offset": String(this.offset) };
      const answer = await this.#ask("PATCH", this.url, headers, piece);
      this.#take(answer);
      const receipt = answer.header("Upload-Receipt");
      if (receipt) return { receipt, isKnown: answer.header("Upload-Known") !== "" };
      if (answer.status === 404) throw new Dropped("The server has to begin again.", 0);
    }
  }

  #take(answer) {
    const offset = Number(answer.header("Upload-Offset"));
    if (answer.header("Upload-Offset") !== "") this.offset = offset;
    this.#progress(0);
  }

  // What was shown once is not taken back: a piece that is sent again only catches up.
  #progress(loaded) {
    this.most = Math.max(this.most, Math.min(this.file.size, this.offset + loaded));
    this.say({ sent: this.most });
  }

  async #pause(error, failures) {
    const seconds = error.seconds ?? PAUSES[Math.min(failures, PAUSES.length) - 1] ?? 0;
    this.say({ problem: error.message, safe: this.offset });
    let wake;
    const woken = new Promise((resolve) => {
      wake = resolve;
    });
    addEventListener("online", wake, { once: true });
    setTimeout(wake, seconds * 1000);
    await woken;
    removeEventListener("online", wake);
  }

  #ask(method, url, headers = {}, body = null) {
    return new Promise((resolve, reject) => {
      const request = new XMLHttpRequest();
      if (method === "PATCH") this.request = request;
      request.open(method, url);
      const all = { "Tus-Resumable": "1.0.0", Accept: "application/json", "X-CSRFToken": this.csrf, ...headers };
      if (this.key) all["Upload-Key"] = this.key;
      for (const [name, value] of Object.entries(all)) request.setRequestHeader(name, value);
      if (method === "PATCH") request.upload.onprogress = ({ loaded }) => this.#progress(loaded);
      request.onerror = request.onabort = () => reject(new Dropped("The connection is lost."));
      request.onload = () => {
        const answer = { status: request.status, header: (name) => request.getResponseHeader(name) ?? "" };
        const problem = problemOf(answer, request);
        if (problem) reject(problem);
        else resolve(answer);
      };
      request.send(body);
    });
  }
}

// What keeps this answer from being used; null for the answers of the protocol.
function problemOf({ status, header }, request) {
  if (header("Tus-Resumable") && (status < 300 || status === 404)) return null;
  if (header("Tus-Resumable") && status === 409 && header("Upload-Offset")) return null;
  if (status === 429 || status >= 500) {
    const asked = Number(header("Retry-After")) || undefined;
    return new Dropped(sentenceOf(request) || "The server is busy.", asked);
  }
  if (status < 400) {
    return new Refused("You are signed out. Sign in and drop the file again; it goes on where it stopped.");
  }
  return new Refused(sentenceOf(request) || `The server refused this file (${status}).`);
}

function sentenceOf(request) {
  try {
    return JSON.parse(request.responseText).sentence ?? "";
  } catch {
    return "";
  }
}
