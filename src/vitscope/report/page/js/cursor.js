// Reading a chart of curves: the values at one depth, by pointer, finger or arrow keys.

function followPointer(root, chart, { x, y, dots, box }) {
  const stops = [...new Set(chart.series.flatMap((one) => one.layer.map((layer) => position(one.model, layer))))].sort(
    (a, b) => a - b,
  );
  const line = find(".cursor", root);
  let current = stops.length - 1;

  const place = (event) => {
    const bounds = root.getBoundingClientRect();
    const scale = root.viewBox.baseVal.width / bounds.width;
    return [(event.clientX - bounds.left) * scale, (event.clientY - bounds.top) * scale];
  };
  const nearDot = (px, py) => {
    let best = null;
    let closest = 49;
    for (const dot of dots) {
      const distance = (dot.x - px) ** 2 + (dot.y - py) ** 2;
      if (distance < closest && visible(dot.model)) [best, closest] = [dot, distance];
    }
    return best;
  };
  const read = (stop, clientX, clientY, py = null) => {
    current = stop;
    const at = stops[stop];
    line.setAttribute("x1", x(at));
    line.setAttribute("x2", x(at));
    line.setAttribute("visibility", "visible");
    showTooltip(
      valueTable(
        stopName(at),
        valuesAt(chart, at, py === null ? null : (value) => Math.abs(y(value) - py)),
        chart.tooltipNote,
      ),
      clientX,
      clientY,
    );
  };

  root.addEventListener("pointermove", (event) => {
    const [px, py] = place(event);
    const dot = nearDot(px, py);
    root.classList.toggle("on-dot", Boolean(dot));
    if (dot) {
      line.setAttribute("visibility", "hidden");
      const heading = `${models[dot.model].title}, ${layerName(dot.model, dot.layer)}, head ${dot.head}`;
      showTooltip(valueTable(heading, [{ ...dot, text: chart.axis }]), event.clientX, event.clientY);
      return;
    }
    if (!stops.length || px < box.left - 12 || px > box.right + 12) return;
    const distances = stops.map((stop) => Math.abs(x(stop) - px));
    read(distances.indexOf(Math.min(...distances)), event.clientX, event.clientY, py);
  });
  root.addEventListener("click", (event) => {
    const dot = nearDot(...place(event));
    if (dot && study.heads[dot.model]) pickHead(dot.model, dot.layer - 1, dot.head - 1);
  });
  const leave = () => {
    line.setAttribute("visibility", "hidden");
    hideTooltip();
  };
  root.addEventListener("pointerleave", leave);
  root.addEventListener("blur", leave);
  root.addEventListener("keydown", (event) => {
    const moves = { ArrowLeft: -1, ArrowRight: 1, Home: -stops.length, End: stops.length };
    if (!(event.key in moves)) return;
    event.preventDefault();
    const fresh = line.getAttribute("visibility") === "hidden" && Math.abs(moves[event.key]) === 1;
    const stop = Math.max(0, Math.min(stops.length - 1, current + (fresh ? 0 : moves[event.key])));
    const bounds = root.getBoundingClientRect();
    read(
      stop,
      bounds.left + x(stops[stop]) * (bounds.width / root.viewBox.baseVal.width),
      bounds.top + bounds.height / 2,
    );
  });
}

const stopName = (at) => (sameDepth ? `Layer ${at}` : `${Math.round(100 * at)} % of the depth`);

/** Rows of the tooltip at one depth, the largest value first. */
function valuesAt(chart, at, distance) {
  const rows = [];
  for (const one of chart.series.filter((some) => visible(some.model))) {
    const reach = sameDepth ? 0.01 : 0.5 / models[one.model].depth + 1e-9;
    const gaps = one.layer.map((layer) => Math.abs(position(one.model, layer) - at));
    const i = gaps.indexOf(Math.min(...gaps));
    if (gaps[i] > reach || one.value[i] === null) continue;
    const heads = one.heads?.[i].map((head) => head[1]) ?? [];
    const range = heads.length > 1 ? `heads ${number(Math.min(...heads))}–${number(Math.max(...heads))}` : undefined;
    rows.push({ model: one.model, value: one.value[i], low: one.low?.[i], high: one.high?.[i], range });
  }
  if (distance && rows.length > 1) {
    rows.reduce((a, b) => (distance(a.value) <= distance(b.value) ? a : b)).nearest = true;
  }
  return rows.sort((a, b) => b.value - a.value);
}
