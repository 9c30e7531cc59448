// Every head of one model on the current image; frames say what kind of head it is, where that is known.

const ROOM = 4; // pixels between cells
const MARGIN = 22; // for the numbers of layers and heads

/** Width and height of a cell: as large as the column allows. */
function cellSize(model) {
  const { depth, grid } = models[model];
  const room = find("#atlas").parentElement.clientWidth - MARGIN;
  const wide = Math.min(60, Math.max(24, Math.floor(room / depth) - ROOM));
  return [wide, Math.round((wide * grid[0]) / grid[1])];
}

function arrangeAtlas() {
  const host = find("#atlas-models");
  const wanted = state.models;
  if (host.dataset.models !== wanted.join()) {
    host.dataset.models = wanted.join();
    host.replaceChildren(
      ...wanted.map((model) => {
        const button = html("button", { type: "button", class: "chip", "data-focus": model }, markOf(model), models[model].title);
        button.addEventListener("click", () => change({ focus: model }));
        return button;
      }),
    );
  }
  findAll("[data-focus]", host).forEach((button) =>
    button.setAttribute("aria-pressed", Number(button.dataset.focus) === state.focus),
  );
}

/** From whom heads look in the atlas: the point if the view is about it, otherwise CLS. */
const atlasToken = (trace) =>
  viewOf(state.view).point ? trace.prefix + patchAt(trace.model, state.point) : null;

/** One piece of work for each layer. */
function atlasTasks() {
  const trace = traceOf(state.focus, state.image);
  const canvas = find("#atlas");
  const { depth, heads } = models[state.focus];
  const [wide, high] = cellSize(state.focus);
  const [width, height] = [MARGIN + depth * (wide + ROOM), MARGIN + heads * (high + ROOM)];
  const ratio = Math.min(2, Math.max(1, devicePixelRatio));
  if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(height * ratio)) {
    [canvas.width, canvas.height] = [Math.round(width * ratio), Math.round(height * ratio)];
    canvas.style.width = `${width}px`;
  }
  canvas.setAttribute(
    "aria-label",
    `Heads of ${models[state.focus].title}: ${depth} layers, ${heads} heads; arrow keys choose a layer and a head`,
  );
  find("#atlas-from").textContent = viewOf(state.view).point ? "the patch under the point" : "CLS";
  const context = canvas.getContext("2d");
  if (!trace) {
    context.clearRect(0, 0, canvas.width, canvas.height);
    return [];
  }
  const kinds = kindsOf(state.focus);
  drawAtlasKey(kinds);
  const ink = getComputedStyle(canvas).color;
  return Array.from({ length: depth }, (_, layer) => () => {
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    drawAtlasColumn(context, trace, layer, [wide, high], kinds, ink);
  });
}

function drawAtlasColumn(context, trace, layer, [wide, high], kinds, ink) {
  const left = MARGIN + layer * (wide + ROOM);
  context.clearRect(layer ? left - ROOM / 2 : 0, 0, wide + (layer ? ROOM : MARGIN + ROOM), 10_000);
  context.font = "11px sans-serif";
  context.fillStyle = ink;
  context.textBaseline = "middle";
  context.textAlign = "center";
  context.fillText(layer + 1, left + wide / 2, MARGIN / 2);
  const token = atlasToken(trace);
  for (let head = 0; head < trace.heads; head++) {
    const top = MARGIN + head * (high + ROOM);
    if (layer === 0) context.fillText(head + 1, MARGIN / 2 - 2, top + high / 2);
    paintCells(context, heat(attentionMap(trace, layer, head, token)), trace.grid, left, top, wide, high);
    const picked = layer === layerOf(trace.model) && head === headOf(trace.model);
    if (!kinds && !picked) continue;
    context.lineWidth = picked ? 3 : 2;
    context.strokeStyle = picked ? (isDark() ? "#ffd166" : "#0a58ca") : kindColour(kinds[layer][head]);
    context.strokeRect(left - 1, top - 1, wide + 2, high + 2);
  }
}

const kindColours = new Map();
/** The colour of a kind, as the report has it. */
function kindColour(kind) {
  const key = `${kind} ${isDark()}`;
  if (!kindColours.has(key)) {
    const probe = html("i", { class: `swatch k-${kind}` });
    document.body.append(probe);
    kindColours.set(key, getComputedStyle(probe).backgroundColor);
    probe.remove();
  }
  return kindColours.get(key);
}

function drawAtlasKey(kinds) {
  const there = kinds ? [...new Set(kinds.flat())].sort() : [];
  const key = find("#atlas-key");
  if (key.dataset.there === there.join()) return;
  key.dataset.there = there.join();
  key.replaceChildren(
    ...there.map((kind) => html("li", { class: `k-${kind}` }, html("i", { class: "swatch" }), boot.kinds[kind])),
  );
}

function startAtlas() {
  const canvas = find("#atlas");
  canvas.addEventListener("click", (event) => {
    const box = canvas.getBoundingClientRect();
    const { depth, heads } = models[state.focus];
    const [wide, high] = cellSize(state.focus);
    const layer = Math.floor((event.clientX - box.left - MARGIN) / (wide + ROOM));
    const head = Math.floor((event.clientY - box.top - MARGIN) / (high + ROOM));
    if (head < 0 || layer < 0 || head >= heads || layer >= depth) return;
    const view = viewOf(state.view).heads ? {} : { view: viewOf(state.view).point ? "point" : "cls" };
    change({ layer, head, ...view });
  });
}
