// Every head of one model on the current image; frames say what kind of head it is, where that is known.

const EDGE = 34; // pixels of a cell
const ROOM = 4;
const MARGIN = 22; // for the numbers of layers and heads

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
  const { depth, heads, grid } = models[state.focus];
  const high = Math.round((EDGE * grid[0]) / grid[1]);
  const [width, height] = [MARGIN + heads * (EDGE + ROOM), MARGIN + depth * (high + ROOM)];
  const ratio = Math.min(2, Math.max(1, devicePixelRatio));
  if (canvas.width !== width * ratio || canvas.height !== height * ratio) {
    [canvas.width, canvas.height] = [width * ratio, height * ratio];
    canvas.style.width = `${width}px`;
  }
  canvas.setAttribute(
    "aria-label",
    `Heads of ${models[state.focus].title}: ${depth} layers, ${heads} heads; up and down keys choose a head, left and right a layer`,
  );
  find("#atlas-from").textContent = viewOf(state.view).point ? "the patch under the point" : "CLS";
  const context = canvas.getContext("2d");
  if (!trace) {
    context.clearRect(0, 0, canvas.width, canvas.height);
    return [];
  }
  const kinds = kindsOf(state.focus);
  drawAtlasKey(kinds);
  return Array.from({ length: depth }, (_, layer) => () => {
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    drawAtlasRow(context, trace, layer, high, kinds);
  });
}

function drawAtlasRow(context, trace, layer, high, kinds) {
  const styles = getComputedStyle(document.documentElement);
  const top = MARGIN + layer * (high + ROOM);
  context.clearRect(0, top - ROOM / 2, 10_000, high + ROOM);
  context.font = "11px sans-serif";
  context.fillStyle = styles.getPropertyValue("color");
  context.textAlign = "right";
  context.textBaseline = "middle";
  context.fillText(layer + 1, MARGIN - 7, top + high / 2);
  const token = atlasToken(trace);
  for (let head = 0; head < trace.heads; head++) {
    const left = MARGIN + head * (EDGE + ROOM);
    if (layer === 0) {
      context.clearRect(left, 0, EDGE + ROOM, MARGIN - ROOM / 2);
      context.textAlign = "center";
      context.fillText(head + 1, left + EDGE / 2, MARGIN / 2);
    }
    paintCells(context, heat(attentionMap(trace, layer, head, token)), trace.grid, left, top, EDGE, high);
    if (kinds) {
      context.lineWidth = 2;
      context.strokeStyle = kindColour(kinds[layer][head]);
      context.strokeRect(left - 1, top - 1, EDGE + 2, high + 2);
    }
    if (layer === layerOf(trace.model) && head === headOf(trace.model)) {
      context.lineWidth = 3;
      context.strokeStyle = isDark() ? "#ffd166" : "#0a58ca";
      context.strokeRect(left - 1, top - 1, EDGE + 2, high + 2);
    }
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
    const { depth, heads, grid } = models[state.focus];
    const scale = (MARGIN + heads * (EDGE + ROOM)) / box.width;
    const high = Math.round((EDGE * grid[0]) / grid[1]);
    const head = Math.floor(((event.clientX - box.left) * scale - MARGIN) / (EDGE + ROOM));
    const layer = Math.floor(((event.clientY - box.top) * scale - MARGIN) / (high + ROOM));
    if (head < 0 || layer < 0 || head >= heads || layer >= depth) return;
    const view = viewOf(state.view).heads ? {} : { view: viewOf(state.view).point ? "point" : "cls" };
    change({ layer, head, ...view });
  });
}
