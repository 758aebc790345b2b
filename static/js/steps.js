// Steps of a trace: bodies on demand, walking the evidence, a link to the step in focus.
// <details class="step-more" data-src="..."> fetches the server's escaped part when it is
// first opened; [data-evidence] steps are walked by [data-walk="1"] and [data-walk="-1"].
function readable(answer) {
  const part = new DOMParser().parseFromString(answer, "text/html");
  // Texts of traces are escaped by the server; nothing active may come in even so.
  for (const bad of part.querySelectorAll("script, style, iframe, object, embed, form, img, link, meta, base, svg")) bad.remove();
  for (const element of part.querySelectorAll("*")) {
    for (const { name } of [...element.attributes]) {
      if (/^(on|hx-|data-hx-|style$|src)/i.test(name)) element.removeAttribute(name);
    }
  }
  return [...part.body.childNodes];
}

async function load(details) {
  const body = details.querySelector(".step-body");
  if (!body || details.dataset.loaded) return;
  details.dataset.loaded = "yes";
  body.setAttribute("aria-busy", "true");
  try {
    const answer = await fetch(details.dataset.src, { headers: { Accept: "text/html", "HX-Request": "true" } });
    if (!answer.ok) throw new Error(String(answer.status));
    body.replaceChildren(...readable(await answer.text()));
  } catch {
    delete details.dataset.loaded;
    body.textContent = "The text of this step did not arrive. Close and open it to try again.";
  }
  body.removeAttribute("aria-busy");
}

const evidence = () => [...document.querySelectorAll(".step[data-evidence]")];

function go(step) {
  step.tabIndex = -1;
  step.focus({ preventScroll: true });
  step.scrollIntoView({ block: "start" });
  const button = document.querySelector("[data-copy-link]");
  if (button) button.dataset.copyLink = `#${step.id}`;
}

function walk(direction) {
  const all = evidence();
  const at = all.findIndex((step) => step.contains(document.activeElement));
  if (all.length === 0) return;
  const next = at < 0 ? (direction > 0 ? 0 : all.length - 1) : at + direction;
  go(all[(next + all.length) % all.length]);
}

document.addEventListener(
  "toggle",
  (event) => {
    if (event.target.matches?.("details[data-src]") && event.target.open) load(event.target);
  },
  true,
);
document.addEventListener("click", (event) => {
  const button = event.target.closest?.("[data-walk]");
  if (button) walk(Number(button.dataset.walk));
});
document.addEventListener("focusin", (event) => {
  const step = event.target.closest?.(".step");
  const button = document.querySelector("[data-copy-link]");
  if (step?.id && button) button.dataset.copyLink = `#${step.id}`;
});
