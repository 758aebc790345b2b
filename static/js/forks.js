// The fork view: brings the chosen fork into the box, and lets its marks be pressed.
// Links do the same without this file.
function show() {
  const box = document.querySelector("[data-fork-box]");
  const mark = box?.querySelector(".fork-mark.is-current");
  if (!mark) return;
  const inside = mark.getBoundingClientRect();
  const frame = box.getBoundingClientRect();
  // Only the box scrolls: the page stays where it is.
  box.scrollLeft += inside.left - frame.left - frame.width / 3;
  box.scrollTop += inside.top - frame.top - frame.height / 2;
}

document.addEventListener("click", (event) => {
  const mark = event.target.closest?.("[data-fork]");
  if (mark) document.querySelector(`[data-choice="${mark.dataset.fork}"]`)?.click();
});
document.addEventListener("htmx:afterSettle", show);
show();
