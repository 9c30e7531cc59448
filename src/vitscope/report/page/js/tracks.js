// The overview: each task a rail from the first layer to the last, each model a mark at its best layer.

const STEP = 15; // pixels between marks that share a place

function trackCharts() {
  for (const host of findAll("[data-track]")) {
    const task = study.tasks[Number(host.dataset.track)];
    responsive(host, (width) => drawTrack(host, task, width));
  }
}

function drawTrack(host, task, width) {
  const marks = task.series.map((one) => ({
    ...one,
    at: position(one.model, one.ring),
    i: one.layer.indexOf(one.ring),
  }));
  // The best of those that share a place is on top; of equals, the first.
  marks.sort((a, b) => a.value[a.i] - b.value[b.i] || b.model - a.model);
  const stacks = new Map();
  for (const mark of marks) {
    const key = mark.at.toFixed(3);
    mark.level = stacks.get(key) ?? 0;
    stacks.set(key, mark.level + 1);
  }
  const tallest = Math.max(1, ...stacks.values());
  const rail = 34 + (tallest - 1) * STEP;
  const height = rail + 26;
  const x = depthScale(14, width - 24);
  const winner = marks.findLast((mark) => mark.best);
  const root = svg("svg", {
    class: "chart",
    viewBox: `0 0 ${width} ${height}`,
    width,
    height,
    role: "img",
    tabindex: "0",
    "aria-label": trackText(task, marks),
  });
  const ticks = depthTicks(width / 30);
  root.append(svg("line", { class: "rail", x1: x(sameDepth ? 1 : 0), x2: x(ticks.at(-1)[0]), y1: rail, y2: rail }));
  for (const [at, text] of ticks) {
    root.append(
      svg("circle", { class: "stop", cx: x(at), cy: rail, r: 2.5 }),
      svg("text", { x: x(at), y: rail + 20, "text-anchor": "middle" }, text),
    );
  }
  const levelOf = (mark) => rail - mark.level * STEP;
  for (const mark of marks) root.append(drawMark(mark, x(mark.at), levelOf(mark)));
  if (winner) {
    const beside = marks.filter((other) => Math.abs(x(other.at) - x(winner.at)) < 56).map(levelOf);
    root.append(winnerLabel(winner, x(winner.at), levelOf(winner), Math.min(...beside) - 14, width));
  }
  host.replaceChildren(root);
  fade(host);
  const describe = (mark, event) => {
    const row = { ...mark, value: mark.value[mark.i], low: mark.low[mark.i], high: mark.high[mark.i], text: task.axis };
    const bounds = root.getBoundingClientRect();
    const heading = `${models[mark.model].title}, ${layerName(mark.model, mark.ring)}`;
    showTooltip(
      valueTable(heading, [row]),
      event.clientX ?? bounds.left + bounds.width / 2,
      event.clientY ?? bounds.top,
    );
  };
  root.addEventListener("pointermove", (event) => {
    const group = event.target.closest("g[data-model]");
    const mark = group && marks.find((some) => some.model === Number(group.dataset.model) && visible(some.model));
    if (mark) describe(mark, event);
    else hideTooltip();
  });
  root.addEventListener("pointerleave", hideTooltip);
  root.addEventListener("blur", hideTooltip);
  let current = -1;
  root.addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    if (!step) return;
    event.preventDefault();
    const shown = marks.filter((mark) => visible(mark.model));
    current = (current + step + shown.length) % shown.length;
    describe(shown[current], {});
  });
}

function drawMark(mark, x, y) {
  const group = svg("g", { "data-model": mark.model, class: modelClass(mark.model) });
  group.append(svg("circle", { cx: x, cy: y, r: 9, fill: "transparent" }));
  if (mark.tied && !mark.best) group.append(svg("circle", { class: "tied", cx: x, cy: y, r: 8 }));
  group.append(chartMark(mark.model, x, y, mark.best ? 1.6 : 1));
  return group;
}

/** Name and score of the winner, at labelY: above whatever else is stacked nearby. */
function winnerLabel(mark, x, y, labelY, width) {
  const text = `${clip(models[mark.model].title, 24)} ${number(mark.value[mark.i])}`;
  const half = 3.8 * text.length;
  const anchor = x + half > width ? "end" : x < half ? "start" : "middle";
  const shift = { end: 10, start: -10, middle: 0 }[anchor];
  const group = svg("g", { "data-model": mark.model, class: modelClass(mark.model) });
  if (y - labelY > 20) group.append(svg("line", { class: "leader", x1: x, x2: x, y1: y - 9, y2: labelY + 4 }));
  group.append(svg("text", { class: "winner-label", x: x + shift, y: labelY, "text-anchor": anchor }, text));
  return group;
}

function trackText(task, marks) {
  const told = marks.map((mark) => {
    const where = `${models[mark.model].title} ${layerName(mark.model, mark.ring)}`;
    return `${where}, ${number(mark.value[mark.i])}`;
  });
  return `${task.title} on ${task.dataset}, best layers: ${told.join("; ")}`;
}
