// The drop zone: several files, each sent by itself with its progress, then followed
// while workers read it. Without this script the form sends the files in one request.
const AT_ONCE = 2;
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
};

function show(row, state, sentence, share) {
  const changed = row.dataset.state !== state;
  row.dataset.state = state;
  row.querySelector(".sentence").textContent = sentence;
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

function newRow(file) {
  const row = document.querySelector("#upload-row").content.firstElementChild.cloneNode(true);
  row.dataset.name = file.name;
  row.querySelector(".name").textContent = file.name;
  row.querySelector(".size").textContent = sizeInWords(file.size);
  list.prepend(row);
  return row;
}

function refusalOf(file) {
  const most = Number(form.dataset.maxBytes);
  if (file.size === 0) return "This file is empty: it has 0 bytes. Nothing was sent.";
  if (most && file.size > most) {
    return `This file has ${sizeInWords(file.size)}; up to ${sizeInWords(most)} are taken. Nothing was sent.`;
  }
  return "";
}

function answerOf(request) {
  try {
    return JSON.parse(request.responseText);
  } catch {
    return {};
  }
}

function link(row, answer) {
  if (answer.url) row.querySelector("a.name").href = answer.url;
}

async function follow(row, url, pause = 700) {
  await new Promise((resolve) => setTimeout(resolve, pause));
  let next = Math.min(pause * 1.25, LONGEST_PAUSE);
  try {
    const answer = await fetch(url, { headers: { Accept: "application/json" }, cache: "no-store" });
    if (!answer.ok) throw new Error(String(answer.status));
    const now = await answer.json();
    const share = now.bytes_total ? Math.min(1, now.bytes_read / now.bytes_total) : null;
    show(row, now.state, now.sentence, share);
    if (now.state === "done" || now.state === "failed") return;
  } catch {
    show(row, row.dataset.state, "The server does not answer just now; the file is safe. Asking again.", null);
    next = LONGEST_PAUSE;
  }
  follow(row, url, next);
}

function onAnswer(row, request) {
  const answer = answerOf(request);
  if (request.status < 200 || request.status >= 300) {
    show(row, "failed", answer.sentence ?? `The server refused this file (${request.status}).`, 0);
    return;
  }
  link(row, answer);
  const sentence = answer.already_here ? `Already here, same content. ${answer.sentence}` : answer.sentence;
  show(row, answer.state, sentence, null);
  if (answer.state === "received" || answer.state === "reading") follow(row, answer.progress_url);
}

function send({ file, row, format }) {
  return new Promise((resolve) => {
    const body = new FormData();
    body.append("csrfmiddlewaretoken", form.elements.csrfmiddlewaretoken?.value ?? "");
    body.append("format", format);
    body.append("file", file, file.name);
    const request = new XMLHttpRequest();
    request.open("POST", form.action);
    request.setRequestHeader("Accept", "application/json");
    request.upload.onprogress = ({ loaded, total }) => {
      const isWhole = loaded >= total;
      const words = isWhole ? "Sent; the server is storing it." : `Sent ${sizeInWords(loaded)} of ${sizeInWords(total)}.`;
      show(row, "receiving", words, isWhole ? null : loaded / total);
    };
    request.onload = () => onAnswer(row, request);
    request.onerror = () => show(row, "failed", "The connection broke before the file was whole. Drop it again.", 0);
    request.onloadend = resolve;
    show(row, "receiving", `Sending ${sizeInWords(file.size)}.`, 0);
    request.send(body);
  });
}

async function sendNext() {
  if (sending >= AT_ONCE || waiting.length === 0) return;
  sending += 1;
  await send(waiting.shift());
  sending -= 1;
  sendNext();
}

function take(files) {
  const format = form.elements.format?.value ?? "";
  for (const file of files) {
    const row = newRow(file);
    const refusal = refusalOf(file);
    if (refusal) {
      show(row, "failed", refusal, 0);
      continue;
    }
    show(row, "queued", "Waits for its turn.", null);
    waiting.push({ file, row, format });
    sendNext();
  }
}

function hold(event, isOver) {
  if (!event.dataTransfer?.types.includes("Files")) return;
  event.preventDefault();
  form.classList.toggle("over", isOver);
}

function start() {
  const input = form.elements.file;
  form.classList.add("live");
  form.querySelector(".choose")?.addEventListener("click", () => input.click());
  input.addEventListener("change", () => {
    take([...input.files]);
    input.value = "";
  });
  // The whole page takes the drop, so that a near miss does not open the file instead.
  document.addEventListener("dragover", (event) => hold(event, true));
  document.addEventListener("dragleave", (event) => {
    if (!event.relatedTarget) form.classList.remove("over");
  });
  document.addEventListener("drop", (event) => {
    hold(event, false);
    take([...(event.dataTransfer?.files ?? [])]);
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
