// Kinds of heads: a square for every head, row by row of layers, sorted within a row by kind.

const ARROWS = [
  ["↖", "↑", "↗"],
  ["←", "·", "→"],
  ["↙", "↓", "↘"],
];
const NAMES = [
  ["up-left", "up", "up-right"],
  ["left", "itself", "right"],
  ["down-left", "down", "down-right"],
];

/** Where an offset head looks, as an arrow and in words. */
function direction([down, across]) {
  const far = Math.max(Math.abs(down), Math.abs(across));
  const [i, j] = [Math.sign(down) + 1, Math.sign(across) + 1];
  const straight = far <= 1 || down === 0 || across === 0 || Math.abs(down) === Math.abs(across);
  const steps = [
    down && `${Math.abs(down)} ${down > 0 ? "down" : "up"}`,
    across && `${Math.abs(across)} ${across > 0 ? "right" : "left"}`,
  ];
  return {
    arrow: ARROWS[i][j] + (far > 1 ? far : ""),
    words: straight && far <= 1 ? NAMES[i][j] : steps.filter(Boolean).join(", "),
  };
}

/** The kind of a head in words, with direction or axis. */
function kindText(model, index) {
  const heads = study.heads[model];
  const name = study.kinds[heads.kind[index]].name;
  if (name === "offset local" && heads.offset) return `${name}: ${direction(heads.offset[index]).words}`;
  if (name === "axial local" && heads.axis) return `${name}: ${heads.axis[index] ? "column" : "row"}`;
  return name;
}

const headName = (model, index) => {
  const { heads } = study.heads[model];
  return `${models[model].title}, layer ${Math.floor(index / heads) + 1}, head ${(index % heads) + 1}`;
};

const swatch = (kind) => html("span", { class: `swatch k-${kind}`, "aria-hidden": "true" });

function kindsFigure() {
  const host = find("#kinds");
  if (!host) return;
  const panels = html("div", { class: "panels" });
  study.heads.forEach((heads, model) => heads && panels.append(kindPanel(heads, model)));
  host.append(panels);
  const counts = study.kinds.map((_, kind) =>
    study.heads.reduce((sum, heads) => sum + (heads ? heads.kind.filter((k) => k === kind).length : 0), 0),
  );
  find("#kind-key").append(
    ...study.kinds
      .map(
        (kind, i) =>
          counts[i] && html("li", {}, swatch(i), html("span", {}, html("b", {}, kind.name), ` ${kind.words}`)),
      )
      .filter(Boolean),
  );
  takeAway(find("#chart-kinds figcaption"), { name: "Kinds of heads", rows: kindRows });
  fade(host);
  whenPicked(({ model, layer, head }) => {
    const index = study.heads[model] ? layer * study.heads[model].heads + head : -1;
    findAll(".unit", host).forEach((unit) =>
      unit.classList.toggle("picked", unit.dataset.head === `${model}/${index}`),
    );
  });
}

function kindPanel(heads, model) {
  const rows = [];
  for (let layer = 0; layer < heads.layers; layer++) {
    const row = Array.from({ length: heads.heads }, (_, head) => layer * heads.heads + head).sort(
      (a, b) => heads.kind[a] - heads.kind[b],
    );
    const units = row.map((index) =>
      html("span", { class: `unit k-${heads.kind[index]}`, "data-head": `${model}/${index}` }),
    );
    rows.push(html("span", { class: "row-name" }, String(layer + 1)), html("div", { class: "unit-row" }, units));
  }
  const grid = html("div", { class: "units", role: "img", "aria-label": kindSummary(heads, model) }, rows);
  grid.style.setProperty("--unit", `${Math.max(7, Math.min(18, Math.round(150 / heads.heads)))}px`);
  grid.addEventListener("click", (event) => {
    const index = event.target.dataset.head?.split("/")[1];
    if (index !== undefined) pickHead(model, Math.floor(index / heads.heads), index % heads.heads);
  });
  grid.addEventListener("pointermove", (event) => {
    const index = event.target.dataset.head?.split("/")[1];
    if (index === undefined) return hideTooltip();
    showTooltip(
      [html("b", {}, headName(model, Number(index))), html("br"), kindText(model, Number(index))],
      event.clientX,
      event.clientY,
    );
  });
  grid.addEventListener("pointerleave", hideTooltip);
  return html("div", { class: "panel", "data-model": model }, html("h4", {}, modelTitle(model)), grid);
}

function kindSummary(heads, model) {
  const counts = study.kinds
    .map((kind, i) => [kind.name, heads.kind.filter((k) => k === i).length])
    .filter(([, count]) => count);
  return `${models[model].title}: ${counts.map(([name, count]) => `${count} ${name}`).join(", ")}`;
}

/** A row for each head. */
const kindRows = () => [
  ["model", "layer", "head", "kind", "stability"],
  ...study.heads.flatMap((heads, model) =>
    (heads?.kind ?? []).map((kind, index) => [
      models[model].title,
      Math.floor(index / heads.heads) + 1,
      (index % heads.heads) + 1,
      study.kinds[kind].name,
      heads.stability?.[index],
    ]),
  ),
];
