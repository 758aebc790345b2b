// The decision panel: the claim and its heartbeat, the draft, and submitting once.
// Nothing is called saved before the server has said so.
const form = document.querySelector("form[data-decide]");
const DRAFT_PAUSE = 600;
const token = document.querySelector('meta[name="csrf-token"]')?.content ?? "";
let until = 0;
let isMine = false;
let isLeaving = false;
let claiming = null;
let draftTimer = 0;
let beatTimer = 0;
let writing = null;

const say = (text, tone) => document.dispatchEvent(new CustomEvent("evalsite:say", { detail: { text, tone } }));
const saved = document.querySelector("[data-saved]");
const clock = document.querySelector("[data-claim]");

const refused = document.querySelector("[data-refused]");

// Apart from the draft's mark: saving the draft must not wipe a refusal away.
function refuse(sentence) {
  refused.textContent = sentence;
  refused.hidden = !sentence;
}

function mark(text, isError = false) {
  if (!saved) return;
  saved.textContent = text;
  saved.classList.toggle("error", isError);
}

async function post(url, { signal, fields = new FormData() } = {}) {
  const answer = await fetch(url, {
    method: "POST",
    body: fields,
    signal,
    headers: { Accept: "application/json", "X-CSRFToken": token },
  });
  const body = await answer.json().catch(() => ({}));
  return { status: answer.status, ok: answer.ok, ...body };
}

function showTime() {
  if (!clock || !isMine) return;
  const left = Math.max(0, Math.round((until - Date.now()) / 1000));
  const minutes = Math.floor(left / 60);
  clock.lastElementChild.textContent = left
    ? `yours for ${minutes}:${String(left % 60).padStart(2, "0")}`
    : "your claim has ended";
  clock.classList.toggle("ending", left > 0 && left < 60);
  clock.classList.toggle("lost", left === 0);
}

function hold(lease) {
  isMine = true;
  until = Date.now() + lease.seconds * 1000;
  if (lease.version !== undefined) form.elements.version.value = lease.version;
  sessionStorage.setItem("held", form.dataset.signal);
  clearInterval(beatTimer);
  beatTimer = setInterval(beat, (lease.seconds * 1000) / 3);
  showTime();
}

function lose(sentence) {
  isMine = false;
  clearInterval(beatTimer);
  sessionStorage.removeItem("held");
  if (clock) {
    clock.classList.add("lost");
    clock.lastElementChild.textContent = "not yours";
  }
  if (sentence) say(sentence, "warning");
}

async function claim() {
  claiming ??= post(form.dataset.claimUrl)
    .then((answer) => (answer.ok ? hold(answer) : lose(answer.sentence)))
    .catch(() => say("The server does not answer; what you type stays on this page.", "warning"))
    .finally(() => {
      claiming = null;
    });
  return claiming;
}

async function beat() {
  try {
    const answer = await post(form.dataset.heartbeatUrl);
    if (answer.ok) until = Date.now() + answer.seconds * 1000;
    else if (answer.status === 409) lose(answer.sentence);
  } catch {
    // the clock keeps running; the next beat may arrive
  }
}

// A reload lets the claim go and comes back: take it again instead of losing it.
async function resume() {
  const isReload = performance.getEntriesByType("navigation")[0]?.type === "reload";
  const hadIt = isReload && sessionStorage.getItem("held") === form.dataset.signal;
  if (form.dataset.mine === "yes") {
    const answer = await post(form.dataset.heartbeatUrl).catch(() => null);
    if (answer?.ok) hold({ seconds: answer.seconds });
    else await claim();
  } else if (hadIt && form.dataset.others !== "yes") {
    await claim();
  }
}

function draftFields() {
  const fields = new FormData(form);
  fields.delete("version");
  fields.delete("submission");
  return fields;
}

async function saveDraft() {
  writing?.abort();
  const mine = new AbortController();
  writing = mine;
  mark("Saving…");
  try {
    const answer = await post(form.dataset.draftUrl, { signal: mine.signal, fields: draftFields() });
    if (!answer.ok) throw new Error(answer.sentence);
    const at = new Date(answer.saved_at ?? Date.now());
    mark(`Saved ${at.toLocaleTimeString("en-GB")}`);
  } catch (error) {
    if (error.name !== "AbortError") mark("Not saved yet: the server does not answer.", true);
  }
}

function onInput() {
  refuse("");
  // An answer to what was written before must not say that this is saved.
  writing?.abort();
  mark("");
  clearTimeout(draftTimer);
  draftTimer = setTimeout(saveDraft, DRAFT_PAUSE);
  if (!isMine && form.dataset.others !== "yes") claim();
}

function problem() {
  const verdict = form.elements.verdict.value;
  if (!verdict) return `Choose a decision first: 1 to ${form.elements.verdict.length}.`;
  if (verdict === "dismiss" && !form.elements.reason.value) return "Choose a reason: why is this signal dismissed?";
  if (verdict === "dismiss" && form.elements.reason.value === "other" && !form.elements.note.value.trim()) {
    return "“Other” needs a note that says why.";
  }
  return "";
}

async function onSubmit(event) {
  const sentence = problem();
  if (sentence || isLeaving) {
    event.preventDefault();
    if (sentence) refuse(sentence);
    return;
  }
  if (claiming) {
    event.preventDefault();
    await claiming;
    form.requestSubmit();
    return;
  }
  isLeaving = true;
  clearTimeout(draftTimer);
  writing?.abort();
  sessionStorage.removeItem("held");
}

function onLeave() {
  if (isLeaving || !isMine) return;
  const fields = draftFields();
  fields.set("csrfmiddlewaretoken", token);
  if (draftTimer) navigator.sendBeacon(form.dataset.draftUrl, fields);
  const release = new FormData();
  release.set("csrfmiddlewaretoken", token);
  release.set("beacon", "1");
  navigator.sendBeacon(form.dataset.releaseUrl, release);
}

function start() {
  form.addEventListener("input", onInput);
  form.addEventListener("submit", onSubmit);
  // Any other form of the page (undo, release, claim) navigates on purpose.
  document.addEventListener("submit", (event) => {
    if (event.target === form || event.target.method !== "post") return;
    isLeaving = true;
    sessionStorage.removeItem("held");
  });
  window.addEventListener("pagehide", onLeave);
  window.addEventListener("pageshow", (event) => {
    if (event.persisted) location.reload();
  });
  setInterval(showTime, 1000);
  resume();
}

if (form) start();
