// The current view at every layer, small: one row for each model.

let strips = [];

function arrangeStrip() {
  const wanted = state.every ? [state.focus] : state.models;
  if (wanted.join() === strips.map((strip) => strip.model).join()) return;
  strips = wanted.map(makeStrip);
  find("#strip").replaceChildren(...strips.map((strip) => strip.element));
}

function makeStrip(model) {
  const tiles = Array.from({ length: models[model].depth }, (_, layer) => {
    const canvas = html("canvas", { "aria-hidden": "true" });
    const button = html(
      "button",
      { type: "button", class: "tile", "aria-label": `${models[model].title}, layer ${layer + 1}` },
      canvas,
      html("span", {}, `${layer + 1}`),
    );
    button.addEventListener("click", () => change({ layer, focus: model }));
    return { canvas, button };
  });
  const name = html("p", { class: "strip-name" }, markOf(model), models[model].title);
  const row = html("div", { class: "tiles" }, tiles.map((tile) => tile.button));
  return { model, tiles, element: html("div", { class: "strip-row" }, name, row) };
}

/** Small pieces of work, one for each layer of each model: they are done between frames. */
function stripTasks() {
  const current = strips.flatMap(({ model, tiles }) => {
    const layer = layerOf(model);
    tiles.forEach((tile, i) => tile.button.setAttribute("aria-pressed", i === layer));
    const trace = traceOf(model, state.image);
    if (!trace) return [];
    const second = state.second && traceOf(model, state.second);
    return tiles.map((tile, i) => () => drawTile(tile.canvas, trace, state.view, i, second));
  });
  return current;
}

function drawTile(canvas, trace, view, layer, second) {
  const map = shownMap(trace, view, layer, { second });
  const [h, w] = trace.grid;
  if (canvas.width !== w || canvas.height !== h) [canvas.width, canvas.height] = [w, h];
  if (!map) return canvas.getContext("2d").clearRect(0, 0, w, h);
  paintCells(canvas.getContext("2d"), map, trace.grid, 0, 0, w, h);
}
