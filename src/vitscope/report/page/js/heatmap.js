// A heat map: rows and columns with names, one colour per pair, read by pointer or arrow keys.

/**
 * map: {label, rows, columns, value(i, j), describe(i, j), left, top, text, gap, shown(i, j)}; rows and columns:
 * [{name, model?}], name "" for none. text: whether values are written into cells that are large enough.
 */
function drawHeat(host, map, width, most) {
  const cell = Math.floor(Math.min(most, (width - map.left - 4) / map.columns.length));
  const [wide, high] = [map.left + cell * map.columns.length + 4, map.top + cell * map.rows.length + 4];
  const root = svg("svg", {
    class: "chart heatmap",
    viewBox: `0 0 ${wide} ${high}`,
    width: wide,
    height: high,
    tabindex: "0",
    role: "img",
    "aria-label": `${map.label}. Arrow keys read value by value.`,
  });
  const colours = ramp(SEQUENTIAL);
  for (let i = 0; i < map.rows.length; i++) {
    for (let j = 0; j < map.columns.length; j++) root.append(...heatCell(map, i, j, cell, colours));
  }
  map.rows.forEach((row, i) => row.name && root.append(rowName(map, row, map.top + cell * (i + 0.5))));
  map.columns.forEach(
    (column, j) => column.name && root.append(columnName(map, column, map.left + cell * (j + 0.5), cell)),
  );
  const cursor = svg("rect", {
    class: "heat-cursor",
    width: cell - map.gap,
    height: cell - map.gap,
    visibility: "hidden",
    rx: 2,
  });
  root.append(cursor);
  host.replaceChildren(root);
  readHeat(root, map, cell, cursor);
}

function heatCell(map, i, j, cell, colours) {
  const value = map.value(i, j);
  const [x, y] = [map.left + cell * j, map.top + cell * i];
  const side = cell - map.gap;
  if (value === null) return [svg("rect", { class: "nothing", x, y, width: side, height: side })];
  const colour = colours[Math.round(255 * Math.max(0, Math.min(1, value)))];
  const opacity = map.shown(i, j) ? null : 0.1;
  const parts = [
    svg("rect", {
      x,
      y,
      width: side,
      height: side,
      fill: `rgb(${colour.join()})`,
      rx: map.gap > 1 ? 3 : null,
      opacity,
    }),
  ];
  if (map.text && cell >= 38 && !opacity) {
    const size = Math.min(15, cell / 3.4);
    parts.push(
      svg(
        "text",
        {
          class: "heat-value",
          x: x + side / 2,
          y: y + side / 2 + size / 3,
          "text-anchor": "middle",
          "font-size": size,
          fill: inkOn(colour),
        },
        value.toFixed(2),
      ),
    );
  }
  return parts;
}

function rowName(map, row, y) {
  const label = svg("text", { class: "label", x: map.left - 8, y: y + 4, "text-anchor": "end" }, clip(row.name));
  return row.model === undefined ? label : svg("g", { class: modelClass(row.model), "data-model": row.model }, label);
}

function columnName(map, column, x, cell) {
  if (column.model === undefined) return svg("text", { x, y: map.top - 7, "text-anchor": "middle" }, column.name);
  const group = svg(
    "g",
    { class: modelClass(column.model), "data-model": column.model },
    chartMark(column.model, x - map.gap / 2, map.top - 14, 1.1),
  );
  const fits = column.name.length * 6.6 < cell;
  if (fits)
    group.append(
      svg("text", { class: "label", x: x - map.gap / 2, y: map.top - 28, "text-anchor": "middle" }, column.name),
    );
  return group;
}

function readHeat(root, map, cell, cursor) {
  let at = [0, 0];
  const read = (i, j, clientX, clientY) => {
    at = [i, j];
    cursor.setAttribute("x", map.left + cell * j);
    cursor.setAttribute("y", map.top + cell * i);
    cursor.setAttribute("visibility", "visible");
    showTooltip(map.describe(i, j), clientX, clientY);
  };
  const leave = () => {
    cursor.setAttribute("visibility", "hidden");
    hideTooltip();
  };
  root.addEventListener("pointermove", (event) => {
    const bounds = root.getBoundingClientRect();
    const scale = root.viewBox.baseVal.width / bounds.width;
    const j = Math.floor(((event.clientX - bounds.left) * scale - map.left) / cell);
    const i = Math.floor(((event.clientY - bounds.top) * scale - map.top) / cell);
    if (i >= 0 && j >= 0 && i < map.rows.length && j < map.columns.length) read(i, j, event.clientX, event.clientY);
    else leave();
  });
  root.addEventListener("pointerleave", leave);
  root.addEventListener("blur", leave);
  root.addEventListener("keydown", (event) => {
    const step = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }[event.key];
    if (!step) return;
    event.preventDefault();
    const fresh = cursor.getAttribute("visibility") === "hidden";
    const i = Math.max(0, Math.min(map.rows.length - 1, at[0] + (fresh ? 0 : step[0])));
    const j = Math.max(0, Math.min(map.columns.length - 1, at[1] + (fresh ? 0 : step[1])));
    const bounds = root.getBoundingClientRect();
    const scale = bounds.width / root.viewBox.baseVal.width;
    read(i, j, bounds.left + (map.left + cell * (j + 1)) * scale, bounds.top + (map.top + cell * (i + 0.5)) * scale);
  });
}

/** The scale of a heat map, as a strip. low, high: texts or elements. */
function rampStrip(low, high, stops = SEQUENTIAL) {
  const canvas = html("canvas", { width: 128, height: 10, "aria-hidden": "true" });
  themed(() => {
    const context = canvas.getContext("2d");
    ramp(stops).forEach((colour, i) => {
      context.fillStyle = `rgb(${colour.join()})`;
      context.fillRect(i / 2, 0, 1, 10);
    });
  });
  return html("p", { class: "ramp" }, low, canvas, high);
}
