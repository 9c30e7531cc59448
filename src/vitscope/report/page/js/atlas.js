// The atlas: a grid of aligned maps per model.

const GAP = 3; // pixels between maps, of which each has a frame of 2

function atlasGrids() {
  const host = find("#atlas-grids");
  if (!host) return;
  const grids = study.heads.map((heads, model) => heads && atlasGrid(heads, model)).filter(Boolean);
  host.append(...grids.map((grid) => grid.element));
  kindFilter();
  fade(host);
  let room = 900;
  themeListeners.push(() => grids.forEach((grid) => grid.draw(room)));
  responsive(host, (width) => {
    room = width;
    grids.forEach((grid) => grid.draw(room));
  });
}

function atlasGrid(heads, model) {
  const packed = maps(heads.aligned);
  const numbers = (count) => Array.from({ length: count }, (_, i) => html("span", {}, String(i + 1)));
  const canvas = html("canvas", { "aria-hidden": "true" });
  const rows = Array.from({ length: heads.layers }, (_, layer) =>
    html(
      "div",
      { class: "cells-row", role: "row" },
      Array.from({ length: heads.heads }, (_, head) => atlasCell(heads, model, layer * heads.heads + head)),
    ),
  );
  const label = `Heads of ${models[model].title}: rows are layers, columns are heads`;
  const cells = html("div", { class: "cells", role: "grid", "aria-label": label }, canvas, rows);
  const grid = html(
    "div",
    { class: "heads" },
    html("div", { class: "head-names", "aria-hidden": "true" }, numbers(heads.heads)),
    html("div", { class: "layer-names", "aria-hidden": "true" }, numbers(heads.layers)),
    cells,
  );
  walkGrid(cells, heads, model);
  const draw = (room) => {
    const wide = mapWidth(heads.heads, room);
    const high = Math.round((wide * packed.height) / packed.width);
    grid.style.setProperty("--wide", `${wide}px`);
    grid.style.setProperty("--high", `${high}px`);
    paintGrid(canvas, packed, heads, wide, high, evenTimesFive(model));
  };
  const element = html("div", { class: "panel", "data-model": model }, html("h3", {}, modelTitle(model)), grid);
  return { element, draw };
}

/** Pixels of one map, so that whole grids stand side by side as long as maps stay large enough to read. */
function mapWidth(heads, room) {
  const least = room < 500 ? 24 : heads <= 6 ? 34 : 28;
  const beside = Math.max(1, Math.floor(room / (heads * least + 44)));
  const fitting = Math.floor((room / beside - 50) / heads) - GAP;
  return Math.max(14, Math.min(heads <= 6 ? 36 : 30, fitting));
}

function paintGrid(canvas, packed, heads, wide, high, least) {
  const dense = Math.max(2, devicePixelRatio || 1);
  canvas.width = heads.heads * (wide + GAP) * dense;
  canvas.height = heads.layers * (high + GAP) * dense;
  const context = canvas.getContext("2d");
  context.scale(dense, dense);
  for (let index = 0; index < heads.kind.length; index++) {
    const x = (index % heads.heads) * (wide + GAP) + 2;
    const y = Math.floor(index / heads.heads) * (high + GAP) + 2;
    paintMap(context, packed, index, SEQUENTIAL, x, y, wide - 4, high - 4, least);
  }
}

function atlasCell(heads, model, index) {
  const kind = study.kinds[heads.kind[index]];
  const cell = html("div", {
    class: `cell k-${heads.kind[index]}`,
    role: "gridcell",
    tabindex: index === 0 ? "0" : "-1",
    "data-index": index,
    "data-kind": heads.kind[index],
    "aria-label": `${headName(model, index)}: ${kindText(model, index)}`,
    "aria-selected": "false",
  });
  if (kind.name === "offset local" && heads.offset)
    cell.append(html("i", { "aria-hidden": "true" }, direction(heads.offset[index]).arrow));
  if (kind.name === "axial local" && heads.axis)
    cell.append(html("i", { "aria-hidden": "true" }, heads.axis[index] ? "↕" : "↔"));
  return cell;
}
