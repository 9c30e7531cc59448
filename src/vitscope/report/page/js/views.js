// Looking through heads: one layer and head in all models, or all heads of one model over one picture.

const SOURCES = [
  ["cls", "CLS"],
  ["pure", "spatial tokens"],
  ["rollout", "rollout to this layer"],
];

const OWN_SCALE = "most attended patch of each map, at least three times even attention";

function viewsFigure() {
  const host = find("#views");
  if (!host) return;
  const shown = study.heads.map((heads, model) => (heads ? model : -1)).filter((model) => model >= 0);
  const sources = SOURCES.filter(([name]) => shown.some((model) => study.heads[model].maps[name]));
  if (!sources.length) return find("#chart-views").remove();
  const depth = Math.max(...shown.map((model) => study.heads[model].layers));
  const heads = Math.max(...shown.map((model) => study.heads[model].heads));
  const state = { source: sources[0][0], picture: -1, all: false, row: false, opacity: 0.6 };
  const tiles = shown.map((model) => viewTile(model));
  const grid = html(
    "div",
    { class: "views" },
    tiles.map((tile) => tile.element),
  );
  const mosaic = headMosaic();
  const brightest = html("span", {});
  const bar = rampStrip("0", brightest, GLOW);
  host.append(grid, mosaic.element, bar);
  const draw = async () => {
    const lit = state.picture >= 0;
    source.element.hidden = lit;
    [opacity, scale, which].forEach((control) => (control.element.hidden = !lit));
    layer.element.hidden = head.element.hidden = lit && state.all;
    bar.hidden = !lit;
    grid.classList.toggle("lit", lit);
    grid.hidden = lit && state.all;
    mosaic.element.hidden = !(lit && state.all);
    if (lit && state.all) return mosaic.draw(state, selection.head?.model ?? shown[0], brightest, host.clientWidth);
    const tops = tiles.map((tile) => tile.top(state, layer.get(), head.get()));
    const top = state.row ? Math.max(...tops) : null;
    brightest.textContent = state.row ? `${number(100 * top)} % on one patch, in all models` : OWN_SCALE;
    await Promise.all(tiles.map((tile) => tile.draw(state, layer.get(), head.get(), top)));
  };
  const pick = () => {
    const { model } = selection.head ?? { model: shown[0] };
    const mine = study.heads[model];
    pickHead(model, Math.min(layer.get(), mine.layers) - 1, Math.min(head.get(), mine.heads) - 1);
  };
  const choose = (key, convert) => (value) => {
    state[key] = convert(value);
    draw();
  };
  const layer = slider("Layer", depth, depth, pick);
  const head = slider("Head", heads, 1, pick);
  const source = picker("Attention from", sources, choose("source", String));
  const which = picker(
    "Heads",
    [
      ["one", "one head of every model"],
      ["all", "every head of the picked model"],
    ],
    choose("all", (value) => value === "all"),
  );
  const scale = picker(
    "Scale",
    [
      ["map", "each map its own"],
      ["row", "one for a row"],
    ],
    choose("row", (value) => value === "row"),
  );
  const opacity = slider(
    "Opacity, %",
    100,
    60,
    choose("opacity", (value) => value / 100),
    0,
  );
  const picture = picturePicker(shown, choose("picture", Number));
  const controls = picture.length ? [...picture, which, layer, head, source, scale, opacity] : [layer, head, source];
  find("#view-pickers").append(...controls.map((control) => control.element));
  takeAway(find("#chart-views figcaption"), {
    name: () => (state.all && state.picture >= 0 ? "Every head" : `Layer ${layer.get()}, head ${head.get()}`),
    canvases: () =>
      state.all && state.picture >= 0
        ? [[find("h4", mosaic.element).innerText, find("canvas", mosaic.element)]]
        : tiles.map((tile, i) => [models[shown[i]].title, find("canvas", tile.element)]),
  });
  whenPicked((chosen) => {
    layer.set(chosen.layer + 1);
    head.set(chosen.head + 1);
    draw();
  });
  themed(draw);
  responsive(host, draw);
  fade(host);
}

/** All pictures, or one of the examples; nothing if the study has none. */
function picturePicker(shown, change) {
  const model = shown.find((one) => study.heads[one].examples);
  if (model === undefined) return [];
  const thumbs = study.heads[model].examples.pictures.map((place, i) => [
    i,
    html("img", { src: study.pictures[place], alt: `image ${i + 1}` }),
  ]);
  const options = [[-1, "mean of all"], ...thumbs];
  return [picker("Image", options, change, options.length)];
}

const decoded = new Map();
/** A picture of the study, ready to be painted. */
async function pictureOf(place) {
  if (!decoded.has(place)) decoded.set(place, Object.assign(new Image(), { src: study.pictures[place] }));
  await decoded.get(place).decode();
  return decoded.get(place);
}

/** The value that is painted brightest on a map's own scale: never finer than three times even attention. */
const ownTop = (packed, index) => Math.max(packed.top[index], placeScale(packed));

const exampleIndex = (heads, picture, layer, head) => (picture * heads.layers + layer) * heads.heads + head;

function viewTile(model) {
  const canvas = html("canvas", { "aria-hidden": "true" });
  const caption = html("span", { class: "hear" });
  const element = html(
    "button",
    { type: "button", class: "view-tile panel", "data-model": model },
    html("span", { class: "panel-title" }, modelTitle(model)),
    canvas,
    caption,
  );
  const mine = study.heads[model];
  const examples = mine.examples?.pictures ?? [];
  const place = (layer, head) => [Math.min(layer, mine.layers) - 1, Math.min(head, mine.heads) - 1];
  let shown = [0, 0];
  element.addEventListener("click", () => pickHead(model, ...shown));
  const top = ({ picture }, layer, head) =>
    picture >= 0 && picture < examples.length
      ? maps(mine.examples.maps).top[exampleIndex(mine, picture, ...place(layer, head))]
      : 0;
  const draw = async (state, layer, head, common) => {
    const { source, picture, opacity } = state;
    shown = place(layer, head);
    caption.textContent = `, layer ${shown[0] + 1}, head ${shown[1] + 1}: pick this head`;
    canvas.hidden = picture >= examples.length;
    canvas.classList.toggle("lit", picture >= 0);
    if (canvas.hidden) return;
    if (picture >= 0) {
      const photo = await pictureOf(examples[picture]);
      if (state.picture !== picture) return; // another was chosen while this one was decoded
      const most = Math.max(2, Math.ceil(448 / photo.naturalWidth));
      [canvas.width, canvas.height] = [most * photo.naturalWidth, most * photo.naturalHeight];
      const packed = maps(mine.examples.maps);
      const index = exampleIndex(mine, picture, ...shown);
      const context = canvas.getContext("2d");
      layOver(
        context,
        photo,
        packed,
        index,
        common ?? ownTop(packed, index),
        opacity,
        0,
        0,
        canvas.width,
        canvas.height,
      );
      return;
    }
    const packed = mine.maps[source] && maps(mine.maps[source]);
    canvas.hidden = !packed;
    if (!packed) return;
    const index = packed.count === mine.layers ? shown[0] : shown[0] * mine.heads + shown[1];
    fillWithMap(canvas, packed, index, HEAT, placeScale(packed));
  };
  return { element, draw, top };
}

/** Every head of one model over one picture: rows are layers, columns are heads; a click picks. */
function headMosaic() {
  const canvas = html("canvas", { role: "img" });
  const title = html("h4", { class: "panel-title" });
  const across = html("div", { class: "head-names", "aria-hidden": "true" });
  const down = html("div", { class: "layer-names", "aria-hidden": "true" });
  const grid = html("div", { class: "heads" }, across, down, html("div", { class: "mosaic" }, canvas));
  const element = html(
    "div",
    { class: "scroll", tabindex: "0", role: "region", "aria-label": "Every head, scrollable" },
    title,
    grid,
  );
  let model = -1;
  canvas.addEventListener("click", (event) => {
    const { layers, heads } = study.heads[model];
    const bounds = canvas.getBoundingClientRect();
    const at = (share, count) => Math.min(count - 1, Math.max(0, Math.floor(share * count)));
    pickHead(
      model,
      at((event.clientY - bounds.top) / bounds.height, layers),
      at((event.clientX - bounds.left) / bounds.width, heads),
    );
  });
  const draw = async ({ picture, row, opacity }, chosen, brightest, room) => {
    const mine = study.heads[chosen];
    model = chosen;
    title.replaceChildren(...modelTitle(model));
    brightest.textContent = row ? "most attended patch of each layer" : OWN_SCALE;
    canvas.hidden = !mine.examples || picture >= mine.examples.pictures.length;
    if (canvas.hidden) return;
    const photo = await pictureOf(mine.examples.pictures[picture]);
    const packed = maps(mine.examples.maps);
    const wide = Math.max(44, Math.min(112, Math.floor((room - 30) / mine.heads) - GAP));
    const high = Math.round((wide * photo.naturalHeight) / photo.naturalWidth);
    grid.style.setProperty("--wide", `${wide}px`);
    grid.style.setProperty("--high", `${high}px`);
    const names = (count) => Array.from({ length: count }, (_, i) => html("span", {}, String(i + 1)));
    across.replaceChildren(...names(mine.heads));
    down.replaceChildren(...names(mine.layers));
    const dense = 2;
    [canvas.width, canvas.height] = [mine.heads * (wide + GAP) * dense, mine.layers * (high + GAP) * dense];
    canvas.style.width = `${canvas.width / dense}px`;
    canvas.setAttribute("aria-label", `Attention of every head of ${models[model].title} over the picture`);
    const context = canvas.getContext("2d");
    context.scale(dense, dense);
    for (let layer = 0; layer < mine.layers; layer++) {
      const indices = Array.from({ length: mine.heads }, (_, head) => exampleIndex(mine, picture, layer, head));
      const most = Math.max(...indices.map((index) => packed.top[index]));
      indices.forEach((index, head) => {
        const [x, y] = [head * (wide + GAP), layer * (high + GAP)];
        layOver(context, photo, packed, index, row ? most : ownTop(packed, index), opacity, x, y, wide, high);
      });
    }
  };
  return { element, draw };
}
