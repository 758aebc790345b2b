// Draws [data-chart="id of a json_script"] with Plotly once it comes near the viewport.
// A trace or shape says its meaning in `meta` / `name` = accent, red, amber, green, mute;
// the colour itself comes from the theme. The table beside a chart needs no script.
const TONES = ["accent", "red", "amber", "green", "mute", "ink", "line", "panel"];
const CONFIG = { displayModeBar: false, responsive: true, showTips: false, doubleClick: "reset" };
let plotly;

function loadPlotly(source) {
  plotly ??= new Promise((resolve, reject) => {
    const script = document.createElement("script");
    script.src = source;
    script.onload = () => resolve(window.Plotly ?? window.moduleName);
    script.onerror = () => reject(new Error("Plotly did not load"));
    document.head.append(script);
  });
  return plotly;
}

// Custom properties hold oklch() and light-dark(); Plotly wants rgb, so paint a pixel.
function palette() {
  const probe = document.createElement("span");
  probe.hidden = true;
  document.body.append(probe);
  const pen = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  const colours = {};
  for (const tone of TONES) {
    probe.style.color = `var(--${tone})`;
    pen.fillStyle = getComputedStyle(probe).color;
    pen.fillRect(0, 0, 1, 1);
    const [red, green, blue] = pen.getImageData(0, 0, 1, 1).data;
    colours[tone] = `rgb(${red}, ${green}, ${blue})`;
  }
  probe.remove();
  return colours;
}

const toneOf = (thing) => {
  const word = typeof thing.meta === "object" ? thing.meta?.tone : thing.meta;
  return TONES.includes(word) ? word : null;
};

function inTheme(trace, colours) {
  const colour = colours[toneOf(trace) ?? "accent"];
  const marker = { ...trace.marker, color: colour };
  const isHollow = trace.marker?.symbol?.includes?.("open") || trace.marker?.pattern?.shape;
  if (isHollow) {
    marker.line = { color: colour, width: 1.5, ...trace.marker.line };
    if (marker.pattern) marker.pattern = { ...marker.pattern, fgcolor: colour, fgopacity: 0.3, bgcolor: colours.panel };
  }
  const textfont = { ...trace.textfont, color: colours.ink };
  const tinted = { ...trace, marker, textfont };
  return trace.type === "bar" ? tinted : { ...tinted, line: { width: 2, ...trace.line, color: colour } };
}

function axis(given, colours) {
  return {
    zeroline: false,
    automargin: true,
    fixedrange: true,
    ...given,
    ...(given?.title ? { title: { standoff: 8, font: { size: 12 }, ...(given.title.text ? given.title : { text: given.title }) } } : {}),
    color: colours.mute,
    gridcolor: colours.line,
    linecolor: colours.line,
    tickcolor: colours.line,
  };
}

function themed(figure, colours) {
  const given = figure.layout ?? {};
  // A level line would go through the values that stand on bars: it goes behind them.
  const isStruckThrough = (figure.data ?? []).some((trace) => trace.type === "bar" && trace.text);
  const layout = {
    margin: { l: 44, r: 16, t: 12, b: 36 },
    ...given,
    template: "none",
    autosize: true,
    paper_bgcolor: "rgba(0,0,0,0)",
    plot_bgcolor: "rgba(0,0,0,0)",
    font: { family: getComputedStyle(document.body).fontFamily, size: 12, color: colours.mute },
    hoverlabel: { bgcolor: colours.panel, bordercolor: colours.line, font: { color: colours.ink } },
    xaxis: axis(given.xaxis, colours),
    yaxis: axis(given.yaxis, colours),
    shapes: (given.shapes ?? []).map((shape) => ({
      ...(isStruckThrough && shape.y0 === shape.y1 ? { layer: "between" } : {}),
      ...shape,
      line: { dash: "dot", width: 1.5, ...shape.line, color: colours[TONES.includes(shape.name) ? shape.name : "red"] },
    })),
    annotations: (given.annotations ?? []).map((note) => ({
      bgcolor: colours.panel,
      arrowcolor: colours.mute,
      ...note,
      font: { ...note.font, color: colours[TONES.includes(note.name) ? note.name : "mute"] },
    })),
  };
  delete layout.width;
  delete layout.height;
  return { data: (figure.data ?? []).map((trace) => inTheme(trace, colours)), layout };
}

async function draw(place) {
  const source = document.getElementById(place.dataset.chart);
  if (!source) return;
  try {
    const engine = await loadPlotly(place.dataset.plotly);
    const { data, layout } = themed(JSON.parse(source.textContent), palette());
    if (!place.classList.contains("is-drawn")) place.replaceChildren();
    await engine.react(place, data, layout, CONFIG);
    place.classList.add("is-drawn");
  } catch {
    place.textContent = "The chart could not be drawn; the table below holds the same values.";
  }
}

const drawn = () => document.querySelectorAll("[data-chart].is-drawn");
const redraw = () => drawn().forEach(draw);

const watcher = new IntersectionObserver(
  (entries) => {
    for (const entry of entries.filter((each) => each.isIntersecting)) {
      watcher.unobserve(entry.target);
      draw(entry.target);
    }
  },
  { rootMargin: "300px" },
);

const watch = (root) => root.querySelectorAll("[data-chart]:not(.is-drawn)").forEach((place) => watcher.observe(place));

document.addEventListener("evalsite:theme", redraw);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
document.addEventListener("htmx:afterSwap", (event) => watch(event.target));
watch(document);
