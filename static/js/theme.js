// Runs before the first paint, so that a chosen theme never flashes. Classic script.
(() => {
  "use strict";
  const root = document.documentElement;

  const stored = (name) => {
    try {
      return localStorage.getItem(name);
    } catch {
      return null; // storage may be refused; the system's theme is fine then
    }
  };

  const apply = (choice) => {
    if (choice === "light" || choice === "dark") root.dataset.theme = choice;
    else delete root.dataset.theme;
  };

  const mark = (choice) => {
    for (const button of document.querySelectorAll("[data-theme-choice]")) {
      button.setAttribute("aria-pressed", String(button.dataset.themeChoice === choice));
    }
  };

  const current = () => root.dataset.theme ?? "system";

  apply(stored("theme"));
  if (stored("keys") === "off") root.dataset.keys = "off";

  document.addEventListener("DOMContentLoaded", () => mark(current()));
  document.addEventListener("click", (event) => {
    const button = event.target.closest?.("[data-theme-choice]");
    if (!button) return;
    apply(button.dataset.themeChoice);
    try {
      localStorage.setItem("theme", button.dataset.themeChoice);
    } catch {
      // the choice then lasts for this page only
    }
    mark(current());
    document.dispatchEvent(new CustomEvent("evalsite:theme"));
  });
})();
