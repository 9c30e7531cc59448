// Curves over depth, one per model: bands, marks, dots for heads, a cursor for pointer and keys.

/**
 * host: element to draw into. chart: {name, axis, floor, log, line, lineTitle, series, chance, height, labels, mean}.
 * A series: {model, layer[], value[], low[]?, high[]?, heads[][]?, ring?}.
 */
function drawLines(host, chart, width) {
  const mean = chart.mean ?? true;
  const labels = chart.labels && mean && width > 560;
  const height = chart.height ?? Math.max(240, Math.min(400, width * 0.52));
  const room = 22 + 6.6 * Math.max(14, ...chart.series.map((one) => briefTitles[one.model].length)); // of a name at its end
  const box = { left: 42, right: width - (labels ? room : 12), top: 30, bottom: height - 34 };
  const x = depthScale(box.left + 8, box.right - 8);
  const scale = verticalScale(allValues(chart), chart, box.top, box.bottom);
  const root = svg("svg", {
    class: "chart",
    viewBox: `0 0 ${width} ${height}`,
    width,
    height,
    tabindex: "0",
    role: "img",
    "aria-label": `${chart.name}: ${chart.axis}. Curves over depth; arrow keys read values layer by layer.`,
  });
  root.append(
    ...frame(chart, box, x, scale, width),
    svg("line", { class: "cursor", y1: box.top, y2: box.bottom, visibility: "hidden" }),
  );
  const dots = [];
  for (const one of chart.series) {
    root.append(drawSeries(one, x, scale.y, dots, mean));
  }
  for (const one of chart.chance ?? []) {
    const points = pointsOf(one, x, scale.y);
    root.append(
      svg(
        "g",
        { "data-model": one.model, class: modelClass(one.model) },
        svg("path", { class: "chance", d: linePath(points) }),
      ),
    );
  }
  if (chart.lineTitle) {
    root.append(svg("text", { class: "line-title", x: box.left + 4, y: scale.y(chart.line) - 5 }, chart.lineTitle));
  }
  if (labels) root.append(...endLabels(chart.series, x, scale.y, box));
  host.replaceChildren(root);
  fade(host);
  followPointer(root, chart, { x, y: scale.y, dots, box });
}

const allValues = (chart) =>
  [...chart.series, ...(chart.chance ?? [])].flatMap((one) => [
    ...one.value,
    ...(one.low ?? []),
    ...(one.high ?? []),
    ...(one.heads ?? []).flat().map((head) => head[1]),
  ]);

const pointsOf = (one, x, y) =>
  one.layer
    .map((layer, i) => ({ layer, i, at: position(one.model, layer), value: one.value[i] }))
    .filter((point) => point.value !== null)
    .map((point) => ({ ...point, x: x(point.at), y: y(point.value) }));

const linePath = (points) => points.map((p, i) => `${i ? "L" : "M"}${p.x.toFixed(1)} ${p.y.toFixed(1)}`).join("");

function frame(chart, box, x, scale, width) {
  const parts = [svg("text", { class: "axis-title", x: 2, y: 14 }, chart.axis)];
  for (const tick of scale.ticks) {
    const y = scale.y(tick);
    parts.push(svg("line", { class: tick === 0 ? "base" : "grid", x1: box.left, x2: box.right, y1: y, y2: y }));
    const text = tick < 1e5 ? String(Number(tick.toPrecision(6))) : tick.toLocaleString("en", { notation: "compact" });
    parts.push(svg("text", { x: box.left - 8, y: y + 4, "text-anchor": "end" }, text));
  }
  for (const [at, text] of depthTicks((box.right - box.left) / 26)) {
    parts.push(svg("text", { x: x(at), y: box.bottom + 18, "text-anchor": "middle" }, text));
  }
  parts.push(
    svg(
      "text",
      { x: (box.left + box.right) / 2, y: box.bottom + 32, "text-anchor": "middle" },
      sameDepth ? "layer" : "depth",
    ),
  );
  if (chart.line !== null && chart.line !== undefined) {
    const y = scale.y(chart.line);
    parts.push(svg("line", { class: "reference", x1: box.left, x2: box.right, y1: y, y2: y }));
  }
  return parts;
}

function drawSeries(one, x, y, dots, mean) {
  const group = svg("g", { "data-model": one.model, class: modelClass(one.model) });
  const points = pointsOf(one, x, y);
  const banded = points.filter((p) => one.low && one.low[p.i] !== null && one.high[p.i] !== null);
  if (banded.length > 1) {
    const up = banded.map((p) => ({ x: p.x, y: y(one.high[p.i]) }));
    const down = banded.map((p) => ({ x: p.x, y: y(one.low[p.i]) })).reverse();
    group.append(svg("path", { class: "band", d: `${linePath([...up, ...down])}Z` }));
  }
  for (const p of points) {
    for (const [head, value, low, high] of one.heads?.[p.i] ?? []) {
      if (value === null) continue;
      dots.push({ model: one.model, layer: p.layer, head, value, low, high, x: p.x, y: y(value) });
      group.append(svg("circle", { class: "head-dot", cx: p.x.toFixed(1), cy: y(value).toFixed(1), r: 2.6 }));
    }
  }
  if (!mean) return group;
  group.append(
    svg("path", { class: "curve", d: linePath(points), "stroke-dasharray": models[one.model].dash || null }),
  );
  group.append(...points.map((p) => chartMark(one.model, p.x, p.y, 0.8)));
  const ringed = points.find((p) => p.layer === one.ring);
  if (ringed) group.append(svg("circle", { class: "ring", cx: ringed.x, cy: ringed.y, r: 8.5 }));
  return group;
}

/** Names at the ends of curves, pushed apart so that none covers another. */
function endLabels(series, x, y, box) {
  const ends = series
    .map((one) => ({ model: one.model, ...pointsOf(one, x, y).at(-1) }))
    .filter((end) => end.y !== undefined);
  ends.sort((a, b) => a.y - b.y);
  const gap = 15;
  ends.forEach((end, i) => (end.at = i ? Math.max(end.y, ends[i - 1].at + gap) : Math.max(end.y, box.top + 4)));
  for (let i = ends.length - 1, limit = box.bottom; i >= 0; i--, limit -= gap) ends[i].at = Math.min(ends[i].at, limit);
  return ends.map((end) => {
    return svg(
      "g",
      { "data-model": end.model, class: modelClass(end.model) },
      svg("path", {
        class: "curve",
        d: `M${box.right - 4} ${end.y}L${box.right + 6} ${end.at}`,
        "stroke-opacity": 0.45,
        "stroke-width": 1,
      }),
      svg("text", { class: "label", x: box.right + 10, y: end.at + 4 }, briefTitles[end.model]),
    );
  });
}
