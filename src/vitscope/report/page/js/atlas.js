// The atlas: a grid of aligned maps per model; pick a head with the pointer or with arrow keys.

const GAP = 3;

function atlasGrids() {
  const host = find("#atlas-grids");
  if (!host) return;
  study.heads.forEach((heads, model) => heads && host.append(atlasGrid(heads, model)));
  kindFilter();
  fade(host);
}

function atlasGrid(heads, model) {
  const packed = maps(heads.aligned);
  const canvas = html("canvas", { "aria-hidden": "true" });
  const rows = Array.from({ length: heads.layers }, (_, layer) =>
    html(
      "div",
      { class: "cells-row", role: "row" },
      Array.from({ length: heads.heads }, (_, head) => atlasCell(heads, model, layer * heads.heads + head)),
    ),
  );
  const cells = html(
    "div",
    {
      class: "cells",
      role: "grid",
      "aria-label": `Heads of ${models[model].title}: rows are layers, columns are heads`,
    },
    canvas,
    rows,
  );
  const headNames = html(
    "div",
    { class: "head-names", "aria-hidden": "true" },
    Array.from({ length: heads.heads }, (_, i) => html("span", {}, String(i + 1))),
  );
  const layerNames = html(
    "div",
    { class: "layer-names", "aria-hidden": "true" },
    Array.from({ length: heads.layers }, (_, i) => html("span", {}, String(i + 1))),
  );
  const element = html(
    "div",
    { class: "panel", "data-model": model },
    html("h4", {}, modelTitle(model)),
    html("div", { class: "heads" }, headNames, layerNames, cells),
  );

  const size = () => {
    const room = find("#atlas-grids").clientWidth || 900;
    // Pixels of a map, below which grids no longer stand side by side.
    const least = room < 500 ? 24 : heads.heads <= 6 ? 34 : 28;
    const beside = Math.max(1, Math.floor(room / (heads.heads * least + 44)));
    const fitting = Math.floor((room / beside - 50) / heads.heads) - GAP;
    const wide = Math.max(14, Math.min(heads.heads <= 6 ? 36 : 30, fitting));
    return { wide, high: Math.round((wide * packed.height) / packed.width) };
  };
  const draw = () => {
    const { wide, high } = size();
    for (const cell of findAll(".cell", cells))
      Object.assign(cell.style, { width: `${wide}px`, height: `${high}px`, margin: `0 ${GAP}px ${GAP}px 0` });
    for (const name of findAll("span", headNames))
      Object.assign(name.style, { width: `${wide + GAP}px`, paddingRight: `${GAP}px` });
    for (const name of findAll("span", layerNames))
      Object.assign(name.style, { height: `${high + GAP}px`, paddingBottom: `${GAP}px` });
    const dense = Math.max(2, devicePixelRatio || 1);
    Object.assign(canvas, { width: heads.heads * (wide + GAP) * dense, height: heads.layers * (high + GAP) * dense });
    Object.assign(canvas.style, {
      width: `${heads.heads * (wide + GAP)}px`,
      height: `${heads.layers * (high + GAP)}px`,
    });
    const context = canvas.getContext("2d");
    for (let index = 0; index < heads.kind.length; index++) {
      const [x, y] = [(index % heads.heads) * (wide + GAP) + 2, Math.floor(index / heads.heads) * (high + GAP) + 2];
      paintMap(
        context,
        packed,
        index,
        SEQUENTIAL,
        x * dense,
        y * dense,
        (wide - 4) * dense,
        (high - 4) * dense,
        evenTimesFive(model),
      );
    }
  };
  let drawn = 0;
  themed(draw);
  new ResizeObserver(() => {
    const { wide } = size();
    if (wide !== drawn) draw();
    drawn = wide;
  }).observe(find("#atlas-grids"));
  walkGrid(cells, heads, model);
  return element;
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

/** Pointer and keys in one grid: arrows move and pick; one cell of the grid is in the focus order. */
function walkGrid(cells, heads, model) {
  const cellAt = (index) => find(`[data-index="${index}"]`, cells);
  const pick = (index) => pickHead(model, Math.floor(index / heads.heads), index % heads.heads);
  cells.addEventListener("click", (event) => {
    const cell = event.target.closest(".cell");
    if (cell) pick(Number(cell.dataset.index));
  });
  cells.addEventListener("pointermove", (event) => {
    const cell = event.target.closest(".cell");
    if (!cell) return hideTooltip();
    const index = Number(cell.dataset.index);
    showTooltip(
      [html("b", {}, headName(model, index)), html("br"), kindText(model, index)],
      event.clientX,
      event.clientY,
    );
  });
  cells.addEventListener("pointerleave", hideTooltip);
  cells.addEventListener("keydown", (event) => {
    const index = Number(event.target.dataset?.index);
    const [row, column] = [Math.floor(index / heads.heads), index % heads.heads];
    const targets = {
      ArrowLeft: column > 0 ? index - 1 : index,
      ArrowRight: column < heads.heads - 1 ? index + 1 : index,
      ArrowUp: row > 0 ? index - heads.heads : index,
      ArrowDown: row < heads.layers - 1 ? index + heads.heads : index,
      Home: row * heads.heads,
      End: (row + 1) * heads.heads - 1,
      Enter: index,
      " ": index,
    };
    if (!(event.key in targets)) return;
    event.preventDefault();
    pick(targets[event.key]);
    cellAt(targets[event.key]).focus();
  });
  whenPicked((chosen) => {
    const index = chosen.model === model ? chosen.layer * heads.heads + chosen.head : -1;
    for (const cell of findAll('[aria-selected="true"]', cells)) cell.setAttribute("aria-selected", "false");
    if (index < 0) return;
    cellAt(index).setAttribute("aria-selected", "true");
    findAll('[tabindex="0"]', cells).forEach((cell) => cell.setAttribute("tabindex", "-1"));
    cellAt(index).setAttribute("tabindex", "0");
  });
}

function kindFilter() {
  const host = find("#kind-filter");
  let only = null;
  const show = () => {
    findAll(".chip", host).forEach((chip) => chip.setAttribute("aria-pressed", Number(chip.dataset.kind) === only));
    findAll(".cell").forEach((cell) =>
      cell.classList.toggle("unlike", only !== null && Number(cell.dataset.kind) !== only),
    );
  };
  study.kinds.forEach((kind, i) => {
    const count = study.heads.reduce((sum, heads) => sum + (heads ? heads.kind.filter((k) => k === i).length : 0), 0);
    if (!count) return;
    const chip = html(
      "button",
      { type: "button", class: "chip", "data-kind": i, "aria-pressed": "false" },
      swatch(i),
      `${kind.name} `,
      html("span", { class: "quiet" }, String(count)),
    );
    chip.addEventListener("click", () => {
      only = only === i ? null : i;
      show();
    });
    host.append(chip);
  });
}
