// The large maps, side by side: one view of every model, or every view of one.

const markOf = (model) =>
  svg(
    "svg",
    { class: `mark t-${models[model].teaching}`, viewBox: "-6 -6 12 12", "aria-hidden": "true" },
    svg("use", { href: `#mark-${models[model].mark}`, x: -6, y: -6, width: 12, height: 12 }),
  );

const shown = []; // what is drawn now: {model, view, layer, image, map}, for people who look under the bonnet
let panels = [];
const kindsKnown = new Map(); // kinds of heads by model, (L, H)

function panelList() {
  const keys = state.every
    ? VIEWS.map((view) => ({ model: state.focus, view: view.key }))
    : state.models.map((model) => ({ model, view: state.view }));
  return keys;
}

/** Make the panels that the state asks for; what can stay stays. */
function arrangePanels() {
  const wanted = panelList();
  const same =
    wanted.length === panels.length &&
    wanted.every(({ model, view }, i) => panels[i].model === model && panels[i].view === view);
  if (same) return;
  panels = wanted.map(({ model, view }) => makePanel(model, view));
  const host = find("#panels");
  host.replaceChildren(...panels.map((panel) => panel.element));
  host.dataset.count = panels.length;
}

function makePanel(model, view) {
  const canvas = html("canvas", { role: "img" });
  const told = html("p", { class: "told" });
  const about = state.every ? viewOf(view).title : models[model].title;
  const title = html("h3", {}, markOf(model), html("span", {}, about));
  const element = html("figure", { class: "map", "data-model": model, "data-view": view }, title, canvas, told);
  pointable(canvas);
  canvas.addEventListener("pointermove", (event) => tellCell(event, model, view));
  canvas.addEventListener("pointerleave", hideTooltip);
  return { model, view, canvas, told, element };
}

/** Clicking or dragging on a canvas moves the point; the canvas shows the whole image. */
function pointable(canvas) {
  const move = (event) => {
    const box = canvas.getBoundingClientRect();
    const inside = (value) => Math.min(1, Math.max(0, value));
    change({ point: [inside((event.clientX - box.left) / box.width), inside((event.clientY - box.top) / box.height)] });
  };
  canvas.addEventListener("pointerdown", (event) => {
    if (event.button !== 0) return;
    canvas.setPointerCapture(event.pointerId);
    move(event);
  });
  canvas.addEventListener("pointermove", (event) => canvas.hasPointerCapture(event.pointerId) && move(event));
  canvas.addEventListener("pointerup", () => settle());
}

/** The number under the pointer. */
function tellCell(event, model, view) {
  const entry = shown.find((one) => one.model === model && one.view === view);
  if (!entry?.map) return;
  const box = event.currentTarget.getBoundingClientRect();
  const patch = patchAt(model, [(event.clientX - box.left) / box.width, (event.clientY - box.top) / box.height]);
  const [, w] = models[model].grid;
  const where = `row ${Math.floor(patch / w) + 1}, column ${(patch % w) + 1}`;
  showTooltip([html("b", {}, valueAt(entry.map, patch)), ` ${where}`], event.clientX, event.clientY);
}

function valueAt(map, patch) {
  if (map.kind === "labels") return map.values[patch] ? boot.classes[map.values[patch] - 1] : "background";
  if (map.kind === "mask") return map.values[patch] ? "inside" : "outside";
  if (map.kind === "colours") return Array.from(map.values.slice(3 * patch, 3 * patch + 3), number).join(" ");
  return number(map.values[patch]);
}

/** The size in pixels at which a model's image is drawn. */
function canvasSize(model) {
  const [height, width] = models[model].size;
  const scale = SHOWN / Math.min(height, width);
  return [Math.round(height * scale), Math.round(width * scale)];
}

function drawPanels() {
  shown.length = 0;
  for (const panel of panels) {
    const { model, view, canvas, told } = panel;
    const [height, width] = canvasSize(model);
    if (canvas.width !== width || canvas.height !== height) [canvas.width, canvas.height] = [width, height];
    const context = canvas.getContext("2d");
    const trace = traceOf(model, state.image);
    const layer = layerOf(model);
    const map = trace && shownMap(trace, view, layer, { second: state.second && traceOf(model, state.second) });
    shown.push({ model, view, layer, image: state.image, map });
    panel.element.classList.toggle("waiting", !map);
    const picture = pictureOf(model, state.image);
    if (!map) {
      context.clearRect(0, 0, width, height);
      if (picture) context.drawImage(picture, 0, 0, width, height);
      told.textContent = troubles.get(`${model} ${state.image}`) ?? "";
      canvas.setAttribute("aria-label", `${models[model].title}: not there yet`);
      continue;
    }
    paintCells(context, map, models[model].grid, 0, 0, width, height, state.over ? picture : null);
    if (map.framed) frame(context, map.framed, models[model].grid, width, height, "#7fe3ff");
    if (viewOf(view).point) ring(context, state.point[0] * width, state.point[1] * height, width / 50);
    tell(panel, map, trace, layer);
  }
  showLegend();
}

/** The line below a map: what it is of, in words and numbers. */
function tell({ model, view, canvas, told }, map, trace, layer) {
  const about = viewOf(view);
  const head = headOf(model);
  const words = [];
  if (about.heads) words.push(Number.isInteger(head) ? `head ${head + 1}` : head === "mean" ? "mean of heads" : "rollout");
  const patch = patchAt(model, state.point);
  if (view === "cls" || view === "point") words.push(`${number(map.values[patch])} at the point`);
  if (view === "similar") words.push(`mean ${number(map.values.reduce((a, b) => a + b, 0) / map.values.length)}`);
  if (view === "point" && head !== "rollout") words.push(`${percent(prefixShare(trace, layer, head, patch))} on CLS`);
  if (view === "norms") words.push(normWords(map));
  if (view === "mask") words.push(`${percent(map.values.reduce((a, b) => a + b, 0) / map.values.length)} of the patches`);
  if (map.kind === "labels") words.push(`${valueAt(map, patch)} at the point`);
  const kind = Number.isInteger(head) && about.heads ? kindsOf(model)?.[layer]?.[head] : undefined;
  told.replaceChildren(
    `layer ${layer + 1}, ${words.join(", ")}`.replace(/, $/, ""),
    kind === undefined ? "" : html("span", { class: `kind k-${kind}` }, html("i", { class: "swatch" }), boot.kinds[kind]),
  );
  canvas.setAttribute("aria-label", `${models[model].title}, ${about.title}, ${told.textContent}`);
}

const percent = (share) => `${(100 * share).toFixed(share < 0.1 ? 1 : 0)} %`;
/** What a finished run says of a model, by whichever of its names the run knows it. */
const studyOf = (model) => boot.study?.[models[model].title] ?? boot.study?.[models[model].name];
const kindsOf = (model) => studyOf(model)?.kinds ?? kindsKnown.get(model);

/** Share of a patch's attention that goes to CLS and other prefix tokens. */
function prefixShare(trace, layer, head, patch) {
  const token = trace.prefix + patch;
  const row = head === "mean" ? trace.meanRow(layer, token) : trace.row(layer, head, token);
  return row.subarray(0, trace.prefix).reduce((sum, value) => sum + value, 0);
}

function normWords(map) {
  const sorted = Float32Array.from(map.values).sort();
  const middle = sorted[Math.floor(sorted.length / 2)];
  const many = map.framed.length;
  return `median ${number(middle)}, largest ${number(sorted.at(-1))}, ${many ? many : "no"} outlier${many === 1 ? "" : "s"}`;
}
