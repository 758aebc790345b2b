// The drop zone: files and folders, each sent by itself with its progress, then followed
// while workers read it. Without this script the form sends the files in one request.
import { chosen, dropped, packed } from "./folders.js";
import { Refused, ResumableUpload } from "./resumable.js";

const AT_ONCE = 2;
const FIRST_PAUSE = 300;
const LONGEST_PAUSE = 5000;
const form = document.querySelector("form[data-upload]");
const list = document.querySelector("[data-upload-list]");
const waiting = [];
let sending = 0;

function sizeInWords(bytes) {
  if (bytes < 1000) return `${bytes} bytes`;
  const [unit, name] = bytes < 1e6 ? [1e3, "kB"] : bytes < 1e9 ? [1e6, "MB"] : [1e9, "GB"];
  const value = bytes / unit;
  return `${value < 10 ? value.toFixed(1) : Math.round(value)} ${name}`;
}

const STATE_WORDS = {
  queued: ["waiting", ""],
  receiving: ["sending", "blue"],
  received: ["received", "blue"],
  reading: ["reading", "blue"],
  done: ["done", "green"],
  failed: ["failed", "red"],
  stopped: ["stopped", ""],
};

function show(row, state, sentence, share) {
  const changed = row.dataset.state !== state;
  row.dataset.state = state;
  row.querySelector(".sentence").textContent = sentence;
  const stop = row.querySelector(".stop");
  if (stop) stop.hidden = state !== "receiving";
  const bar = row.querySelector("progress");
  if (share == null) bar.removeAttribute("value");
  else bar.value = share;
  const pill = row.querySelector(".pill");
  const [word, tone] = STATE_WORDS[state];
  pill.textContent = word;
  pill.className = `pill ${tone}`;
  if (changed && (state === "done" || state === "failed")) announce(`${row.dataset.name}: ${sentence}`);
}

function announce(text) {
  const place = document.querySelector("[data-upload-status]");
  if (place) place.textContent = text;
}

function newRow(name, size) {
  const row = document.querySelector("#upload-row").content.firstElementChild.cloneNode(true);
  row.dataset.name = name;
  row.querySelector(".name").textContent = name;
  row.querySelector(".size").textContent = size;
  list.prepend(row);
  document.querySelector("[data-nothing-yet]")?.remove();
  return row;
}

function refusalOf({ size }, what) {
  const most = Number(form.dataset.maxBytes);
  if (size === 0) return `This ${what} is empty: it has 0 bytes. Nothing was sent.`;
  if (most && size > most) {
    return `This ${what} has ${sizeInWords(size)}; up to ${sizeInWords(most)} are taken. Nothing was sent.`;
  }
  return "";
}

// The number beside the queue is that of when the page was opened; files add to it.
async function renewNumbers() {
  const answer = await fetch(location.pathname, { cache: "no-store" });
  if (!answer.ok) return;
  const page = new DOMParser().parseFromString(await answer.text(), "text/html");
  for (const link of document.querySelectorAll(".side-nav a:has(.n)")) {
    const now = page.querySelector(`.side-nav a[href="${link.getAttribute("href")}"] .n`);
    if (now) link.querySelector(".n").replaceWith(document.adoptNode(now));
  }
}

async function follow(row, url, { pause = FIRST_PAUSE, isKnown = false } = {}) {
  await new Promise((resolve) => setTimeout(resolve, pause));
  let next = Math.min(pause * 1.25, LONGEST_PAUSE);
  try {
    const answer = await fetch(url, { headers: { Accept: "application/json" }, cache: "no-store" });
    if (!answer.ok) throw new Error(String(answer.status));
    const now = await answer.json();
    const share = now.bytes_total ? Math.min(1, now.bytes_read / now.bytes_total) : null;
    const known = isKnown ? `Already here, as ${now.name}. ` : "";
    show(row, now.state, known + now.sentence, share);
    if (now.state === "done" || now.state === "failed") {
      if (now.state === "done") renewNumbers();
      return;
    }
  } catch {
    show(row, row.dataset.state, "The server does not answer just now; the file is safe. Asking again.", null);
    next = LONGEST_PAUSE;
  }
  follow(row, url, { pause: next, isKnown });
}

async function send({ file, row, format }) {
  const upload = new ResumableUpload(file, {
    address: form.dataset.parts,
    csrf: form.elements.csrfmiddlewaretoken?.value ?? "",
    format,
    say: (now) => showSending(row, file, now),
  });
  row.querySelector(".stop").addEventListener("click", () => {
    upload.stop();
    show(row, "stopped", "Stopped. What was sent of this file is forgotten.", 0);
  });
  show(row, "receiving", `Sending ${sizeInWords(file.size)}.`, 0);
  try {
    const sent = await upload.send();
    if (!sent) return;
    const { receipt, isKnown } = sent;
    row.querySelector("a.name").href = receipt;
    show(row, "received", isKnown ? "Already here." : "Received; waiting for a worker.", null);
    follow(row, `${receipt}progress/`, { isKnown });
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    show(row, "failed", error.message, 0);
  }
}

function showSending(row, file, { sent, problem, safe }) {
  if (row.dataset.state !== "receiving") return;
  if (problem) {
    const kept = safe > 0 ? ` ${sizeInWords(safe)} are safe;` : "";
    row.querySelector(".sentence").textContent = `${problem}${kept} trying again.`;
    return;
  }
  const isWhole = sent >= file.size;
  const words = isWhole ? "Sent; the server is storing it." : `Sent ${sizeInWords(sent)} of ${sizeInWords(file.size)}.`;
  show(row, "receiving", words, isWhole ? null : sent / file.size);
}

async function sendNext() {
  if (sending >= AT_ONCE || waiting.length === 0) return;
  sending += 1;
  try {
    await send(waiting.shift());
  } finally {
    sending -= 1;
    sendNext();
  }
}

function take(things) {
  const format = form.elements.format?.value ?? "";
  for (const thing of things) {
    if (thing instanceof File) offer(thing, newRow(thing.name, sizeInWords(thing.size)), format);
    else takeFolder(thing, format);
  }
}

async function takeFolder(folder, format) {
  const { name, files } = folder;
  const size = files.reduce((sum, { file }) => sum + file.size, 0);
  const count = files.length === 1 ? "1 file" : `${files.length} files`;
  const row = newRow(`${name}/`, `folder of ${count}, ${sizeInWords(size)}`);
  const refusal = refusalOf({ size }, "folder");
  if (refusal) {
    show(row, "failed", refusal, 0);
    return;
  }
  show(row, "queued", "Is being put into one zip.", null);
  try {
    offer(await packed(folder), row, format);
  } catch {
    show(row, "failed", "A file of this folder cannot be read. Nothing was sent.", 0);
  }
}

function offer(file, row, format) {
  const refusal = refusalOf(file, "file");
  if (refusal) {
    show(row, "failed", refusal, 0);
    return;
  }
  show(row, "queued", "Waits for its turn.", null);
  waiting.push({ file, row, format });
  sendNext();
}

function hold(event, isOver) {
  if (!event.dataTransfer?.types.includes("Files")) return;
  event.preventDefault();
  form.classList.toggle("over", isOver);
}

function start() {
  const input = form.elements.file;
  form.classList.add("live");
  const folder = form.querySelector("[data-folder]");
  form.querySelector("[data-choose=files]").addEventListener("click", () => input.click());
  form.querySelector("[data-choose=folder]").addEventListener("click", () => folder.click());
  input.addEventListener("change", () => {
    take([...input.files]);
    input.value = "";
  });
  folder.addEventListener("change", () => {
    take(chosen(folder.files));
    folder.value = "";
  });
  // The whole page takes the drop, so that a near miss does not open the file instead.
  document.addEventListener("dragover", (event) => hold(event, true));
  document.addEventListener("dragleave", (event) => {
    if (!event.relatedTarget) form.classList.remove("over");
  });
  document.addEventListener("drop", async (event) => {
    hold(event, false);
    take(await dropped(event.dataTransfer));
  });
  window.addEventListener("beforeunload", (event) => {
    if (sending > 0) event.preventDefault();
  });
}

// Rows that were still being read when the page was opened are followed too.
function followShown() {
  for (const row of document.querySelectorAll("[data-progress-url]")) {
    row.dataset.name = row.querySelector("h3")?.textContent.trim() ?? "";
    follow(row, row.dataset.progressUrl);
  }
}

followShown();
if (form && list) start();
