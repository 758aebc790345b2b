// The planners of batches: boxes that are ticked together.
for (const bar of document.querySelectorAll("[data-ticks]")) {
  bar.hidden = false;
  bar.addEventListener("click", (event) => {
    const button = event.target.closest("[data-tick]");
    if (!button) return;
    const boxes = [...bar.closest("form").querySelectorAll(`input[type="checkbox"][name="${bar.dataset.ticks}"]`)];
    for (const box of boxes) box.checked = button.dataset.tick === "all";
    boxes[0]?.dispatchEvent(new Event("change", { bubbles: true }));
  });
}
