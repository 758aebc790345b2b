// The keyboard layer. Markup declares keys: <button data-key="j ArrowRight">; this file
// only finds what a key belongs to. Lists: [data-rows] with [data-row] and a.row-link.
// A group that takes digits for itself once it is opened: [data-key-layer].
const root = document.documentElement;
let armed = null;

const isOff = () => root.dataset.keys === "off";
const isShown = (element) => element.getClientRects().length > 0;

function isTyping(element) {
  if (!element?.matches) return false;
  if (element.matches("textarea, select, [contenteditable]")) return true;
  return element.matches("input:not([type=radio], [type=checkbox], [type=submit], [type=button])");
}

function nameOf(event) {
  if (event.altKey) return "";
  if (event.ctrlKey || event.metaKey) return event.key === "Enter" ? "Mod+Enter" : "";
  return event.key;
}

function arm(layer) {
  armed?.removeAttribute("data-armed");
  armed = layer && isShown(layer) ? layer : null;
  armed?.setAttribute("data-armed", "");
}

function ownersOf(key) {
  return [...document.querySelectorAll("[data-key]")].filter(
    (element) => element.dataset.key.split(" ").includes(key) && isShown(element) && !element.disabled,
  );
}

function ownerOf(key) {
  const owners = ownersOf(key);
  const inLayer = owners.find((element) => armed?.contains(element));
  return inLayer ?? owners.find((element) => !element.closest("[data-key-layer]"));
}

function activate(element) {
  if (isTyping(element)) {
    element.focus();
    element.select?.();
    return;
  }
  if (element.matches("input")) element.focus();
  element.click();
}

function rows() {
  return [...document.querySelectorAll("[data-rows] [data-row]")].filter(isShown);
}

function select(row) {
  for (const other of rows()) other.removeAttribute("aria-current");
  row.setAttribute("aria-current", "true");
  const link = row.querySelector("a.row-link") ?? row;
  link.focus();
  row.scrollIntoView({ block: "nearest" });
}

function moveInList(key) {
  const all = rows();
  const inside = all.findIndex((row) => row.contains(document.activeElement));
  const isArrow = key === "ArrowDown" || key === "ArrowUp";
  if (all.length === 0 || (isArrow && inside < 0)) return false;
  const at = inside >= 0 ? inside : all.findIndex((row) => row.hasAttribute("aria-current"));
  const step = key === "j" || key === "ArrowDown" ? 1 : -1;
  select(all[at < 0 ? 0 : Math.max(0, Math.min(all.length - 1, at + step))]);
  return true;
}

function openRow() {
  const row = rows().find((each) => each.hasAttribute("aria-current") || each.contains(document.activeElement));
  row?.querySelector("a.row-link")?.click();
  return Boolean(row);
}

function inList(key) {
  if (["j", "k", "ArrowDown", "ArrowUp"].includes(key)) return moveInList(key);
  return key === "o" ? openRow() : false;
}

function onEscape() {
  arm(null);
  if (isTyping(document.activeElement)) document.activeElement.blur();
}

function onKey(event) {
  const key = nameOf(event);
  if (!key || event.repeat || event.isComposing || event.defaultPrevented) return;
  if (document.querySelector("dialog[open]")) return;
  if (key === "Escape") {
    onEscape();
    return;
  }
  if (key !== "Mod+Enter" && (isOff() || isTyping(event.target))) return;
  const owner = ownerOf(key);
  if (owner) activate(owner);
  if (owner || inList(key)) event.preventDefault();
}

function onSwitch(event) {
  if (!event.target.matches?.("[data-keys-switch]")) return;
  const value = event.target.checked ? "on" : "off";
  root.dataset.keys = value;
  try {
    localStorage.setItem("keys", value);
  } catch {
    // the choice then lasts for this page only
  }
}

document.addEventListener("keydown", onKey);
document.addEventListener("change", onSwitch);
document.addEventListener("click", (event) => {
  const opener = event.target.closest?.("[data-opens]");
  if (opener) arm(document.getElementById(opener.dataset.opens));
  else if (event.target.matches?.("input[type=radio]")) arm(null);
});
for (const box of document.querySelectorAll("[data-keys-switch]")) box.checked = !isOff();
