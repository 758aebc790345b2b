// What every page needs: times in the viewer's zone, messages, copy buttons, dialogs,
// menus that close, filters that apply at once, and the CSRF header of htmx.
const two = (number) => String(number).padStart(2, "0");

function inViewersZone(moment, withSeconds) {
  const shift = -moment.getTimezoneOffset();
  const sign = shift < 0 ? "−" : "+";
  const zone = `${sign}${two(Math.floor(Math.abs(shift) / 60))}:${two(Math.abs(shift) % 60)}`;
  const day = `${moment.getFullYear()}-${two(moment.getMonth() + 1)}-${two(moment.getDate())}`;
  const clock = `${two(moment.getHours())}:${two(moment.getMinutes())}`;
  return `${day} ${clock}${withSeconds ? `:${two(moment.getSeconds())}` : ""} ${zone}`;
}

function showTimes(root) {
  for (const element of root.querySelectorAll("time[data-time]:not([title])")) {
    const moment = new Date(element.dateTime);
    if (Number.isNaN(moment.valueOf())) continue;
    element.title = element.textContent.trim();
    element.textContent = inViewersZone(moment, element.dataset.time === "seconds");
  }
}

const ICON_OF = { success: "circle-check", error: "triangle-alert", warning: "triangle-alert", info: "info" };

function say(text, tone = "info") {
  const list = document.querySelector("#messages");
  const pattern = document.querySelector("#message-pattern");
  if (!list || !pattern) return;
  const item = pattern.content.firstElementChild.cloneNode(true);
  const use = item.querySelector("use");
  use.setAttribute("href", use.getAttribute("href").replace(/#.*/, `#${ICON_OF[tone] ?? "info"}`));
  item.classList.add(tone);
  item.querySelector(".text").textContent = text;
  for (const old of list.querySelectorAll("li")) {
    if (old.querySelector(".text")?.textContent === text) old.remove();
  }
  list.append(item);
}

async function copy(button) {
  const text = button.hasAttribute("data-copy-link")
    ? new URL(button.dataset.copyLink || location.href, location.href).href
    : (button.dataset.copy ?? document.querySelector(button.dataset.copyFrom)?.textContent ?? "");
  try {
    await navigator.clipboard.writeText(text.trim());
    say("Copied.", "success");
  } catch {
    say(`This browser does not let pages copy. Here it is: ${text.trim()}`, "warning");
  }
}

function onClick(event) {
  const target = event.target.closest?.("[data-copy], [data-copy-from], [data-copy-link], [data-dialog], [data-dismiss]");
  for (const menu of document.querySelectorAll("details[data-menu][open]")) {
    if (!menu.contains(event.target)) menu.open = false;
  }
  if (!target) return;
  if (target.hasAttribute("data-dismiss")) target.closest("li")?.remove();
  else if (target.hasAttribute("data-dialog")) document.getElementById(target.dataset.dialog)?.showModal();
  else copy(target);
}

function sentenceOf(xhr) {
  const type = xhr.getResponseHeader("Content-Type") ?? "";
  if (type.startsWith("application/json")) {
    try {
      return JSON.parse(xhr.responseText).sentence;
    } catch {
      return null;
    }
  }
  const answer = new DOMParser().parseFromString(xhr.responseText, "text/html");
  return answer.querySelector("[data-sentence]")?.textContent.trim();
}

document.addEventListener("click", onClick);
document.addEventListener("keydown", (event) => {
  if (event.key !== "Escape") return;
  const menu = document.activeElement?.closest?.("details[data-menu][open]");
  if (!menu) return;
  menu.open = false;
  menu.querySelector("summary").focus();
});
document.addEventListener("change", (event) => {
  if (event.target.matches?.("[data-submit]")) event.target.form?.requestSubmit();
});
// An unused filter leaves no trace in the address.
document.addEventListener("submit", (event) => {
  if (!event.target.matches("form[data-clean]")) return;
  for (const field of event.target.elements) {
    if (field.name && field.value === "") field.disabled = true;
  }
});
window.addEventListener("pageshow", () => {
  for (const field of document.querySelectorAll("form[data-clean] :disabled")) field.disabled = false;
});
document.addEventListener("evalsite:say", (event) => say(event.detail.text, event.detail.tone));
document.addEventListener("htmx:configRequest", (event) => {
  const token = document.querySelector('meta[name="csrf-token"]')?.content;
  if (token) event.detail.headers["X-CSRFToken"] = token;
});
document.addEventListener("htmx:responseError", (event) => {
  const { xhr } = event.detail;
  say(sentenceOf(xhr) || `The server answered ${xhr.status}. Nothing was changed.`, "error");
});
document.addEventListener("htmx:sendError", () => say("The server does not answer. Trying again may help.", "error"));
document.addEventListener("htmx:afterSwap", (event) => showTimes(event.target));
showTimes(document);
