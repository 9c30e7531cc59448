// One layer and head in all models, side by side, at its place in the picture.

const SOURCES = [
  ["cls", "CLS"],
  ["pure", "spatial tokens"],
  ["rollout", "rollout to this layer"],
];

function viewsFigure() {
  const host = find("#views");
  if (!host) return;
  const shown = study.heads.map((heads, model) => (heads ? model : -1)).filter((model) => model >= 0);
  const sources = SOURCES.filter(([name]) => shown.some((model) => study.heads[model].maps[name]));
  if (!sources.length) return find("#chart-views").remove();
  const depth = Math.max(...shown.map((model) => study.heads[model].layers));
  const heads = Math.max(...shown.map((model) => study.heads[model].heads));
  const state = { source: sources[0][0], picture: -1 };
  const tiles = shown.map((model) => viewTile(model));
  host.append(
    html(
      "div",
      { class: "views" },
      tiles.map((tile) => tile.element),
    ),
  );
  const draw = () => {
    source.element.hidden = state.picture >= 0;
    tiles.forEach((tile) => tile.draw(state, layer.get(), head.get()));
  };
  const pick = () => {
    const { model } = selection.head ?? { model: shown[0] };
    const mine = study.heads[model];
    pickHead(model, Math.min(layer.get(), mine.layers) - 1, Math.min(head.get(), mine.heads) - 1);
  };
  const layer = slider("Layer", depth, depth, pick);
  const head = slider("Head", heads, 1, pick);
  const source = picker("Attention from", sources, (value) => {
    state.source = value;
    draw();
  });
  const picture = picturePicker(shown, (value) => {
    state.picture = value;
    draw();
  });
  find("#view-pickers").append(...picture, layer.element, head.element, source.element);
  whenPicked((chosen) => {
    layer.set(chosen.layer + 1);
    head.set(chosen.head + 1);
    draw();
  });
  themed(draw);
  fade(host);
}

/** All pictures, or one of the examples; nothing if the study has none. */
function picturePicker(shown, change) {
  const model = shown.find((one) => study.heads[one].examples);
  if (model === undefined) return [];
  const thumbs = study.heads[model].examples.pictures.map((src, i) => [
    i,
    html("img", { src, alt: `picture ${i + 1}` }),
  ]);
  const options = [[-1, "mean of all"], ...thumbs];
  return [picker("Picture", options, (value) => change(Number(value)), options.length).element];
}

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
  const examples = (mine.examples?.pictures ?? []).map((src) => Object.assign(new Image(), { src }));
  let shown = [0, 0];
  element.addEventListener("click", () => pickHead(model, ...shown));
  const draw = async ({ source, picture }, layer, head) => {
    shown = [Math.min(layer, mine.layers) - 1, Math.min(head, mine.heads) - 1];
    caption.textContent = `, layer ${shown[0] + 1}, head ${shown[1] + 1}: pick this head`;
    canvas.hidden = picture >= examples.length;
    canvas.classList.toggle("lit", picture >= 0);
    if (canvas.hidden) return;
    if (picture >= 0) {
      const index = (picture * mine.layers + shown[0]) * mine.heads + shown[1];
      await examples[picture].decode();
      lightUp(canvas, examples[picture], maps(mine.examples.maps), index);
      return;
    }
    const packed = mine.maps[source] && maps(mine.maps[source]);
    canvas.hidden = !packed;
    if (!packed) return;
    const index = packed.count === mine.layers ? shown[0] : shown[0] * mine.heads + shown[1];
    fillWithMap(canvas, packed, index, HEAT, placeScale(packed));
  };
  return { element, draw };
}
