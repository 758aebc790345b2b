// Keeps a running batch up to date without asking in a tab that nobody looks at, and
// keeps folded-open parts and sideways scrolling where they were.
const LIVE = "[data-live]";

document.addEventListener("htmx:beforeRequest", (event) => {
  if (event.target.matches?.(LIVE) && document.hidden) event.preventDefault();
});

let kept = null;

document.addEventListener("htmx:beforeSwap", (event) => {
  if (!event.target.matches?.(LIVE)) return;
  const wide = event.target.querySelector("#groups-scroll");
  kept = { left: wide?.scrollLeft ?? 0, said: event.target.querySelector("[data-said]")?.textContent ?? "" };
});

document.addEventListener("htmx:afterSettle", () => {
  if (!kept) return;
  const live = document.querySelector(LIVE);
  const wide = live?.querySelector("#groups-scroll");
  if (wide) wide.scrollLeft = kept.left;
  // What stands there already is not read out again by a screen reader.
  const said = live?.querySelector("[data-said]");
  if (said && said.textContent.trim() && said.textContent === kept.said) said.removeAttribute("role");
  kept = null;
});

document.addEventListener("visibilitychange", () => {
  const live = document.querySelector(`${LIVE}[hx-get]`);
  if (!document.hidden) live?.dispatchEvent(new Event("evalsite:look"));
});
