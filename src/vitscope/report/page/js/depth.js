// What: every layer with every layer, of one model or of two.

const NOTHING = 255;

/** Similarity of sites of models a and b; {rows, columns, value(i, j)} or null. */
function depthMatrix(tokens, a, b) {
  const [first, second] = a <= b ? [a, b] : [b, a];
  const packed = study.similarity.depth[tokens]?.[`${first}/${second}`];
  if (!packed) return null;
  packed.bytes ??= Uint8Array.from(atob(packed.data), (character) => character.charCodeAt(0));
  const [high, wide] = packed.size;
  const byte = (i, j) => packed.bytes[i * wide + j];
  const at = a <= b ? byte : (i, j) => byte(j, i);
  const value = (i, j) => (at(i, j) === NOTHING ? null : at(i, j) / 254);
  return a <= b ? { rows: high, columns: wide, value } : { rows: wide, columns: high, value };
}

/** What a site is called: with two sites per block, after which norm; else the layer. */
function siteName(model, site, count) {
  const perBlock = Math.round(count / models[model].depth);
  const layer = Math.floor(site / perBlock) + 1;
  return perBlock < 2 ? `layer ${layer}` : `layer ${layer}, ${site % perBlock ? "before the MLP" : "before attention"}`;
}

const siteTicks = (model, count) => {
  const perBlock = Math.round(count / models[model].depth);
  const every = models[model].depth > 12 ? 4 : models[model].depth > 6 ? 2 : 1;
  return Array.from({ length: count }, (_, site) => {
    const layer = Math.floor(site / perBlock) + 1;
    return { name: site % perBlock === 0 && (layer === 1 || layer % every === 0) ? String(layer) : "" };
  });
};

function depthFigure() {
  const figure = find("#chart-depth");
  if (!figure) return;
  const host = find(".drawing", figure);
  const area = html("div", { class: "heat" });
  const thumbs = html("div", { class: "thumbs", role: "group", "aria-label": "Each model with itself" });
  host.append(area, rampStrip("0", "1"), thumbs);
  const present = Object.keys(study.similarity.depth);
  const state = { tokens: present[0], a: 0, b: 0 };
  const firstPair = Object.keys(study.similarity.depth[state.tokens])[0].split("/").map(Number);
  [state.a, state.b] = firstPair;

  const draw = () => {
    const matrix = depthMatrix(state.tokens, state.a, state.b);
    if (!matrix) return area.replaceChildren(html("p", { class: "absent" }, "This study has no such comparison."));
    const [down, across] = [models[state.a].title, models[state.b].title];
    state.matrix = matrix;
    state.map = {
      label: `Similarity of layers: ${down} (rows) with ${across} (columns)`,
      text: false,
      gap: 0,
      left: 30,
      top: 24,
      rows: siteTicks(state.a, matrix.rows),
      columns: siteTicks(state.b, matrix.columns),
      value: matrix.value,
      shown: () => true,
      describe: (i, j) => [
        html("b", {}, matrix.value(i, j) === null ? "no similarity" : `CKA ${matrix.value(i, j).toFixed(2)}`),
        html("br"),
        `${down}, ${siteName(state.a, i, matrix.rows)}`,
        html("br"),
        `${across}, ${siteName(state.b, j, matrix.columns)}`,
      ],
    };
    drawHeat(area, state.map, Math.min(host.clientWidth, 520), 22);
    const where = matrix.rows > models[state.a].depth ? "goes into attention and into the MLP of" : "leaves";
    const sides = `Down: layers of ${down}. Across: layers of ${across}.`;
    find(".note", figure).textContent = `${sides} Compared is what ${where} every block.`;
    findAll(".thumb", thumbs).forEach((thumb) =>
      thumb.setAttribute("aria-pressed", state.a === state.b && Number(thumb.dataset.model) === state.a),
    );
  };
  const drawThumbs = () =>
    thumbs.replaceChildren(
      ...models
        .map((_, model) =>
          depthThumb(state.tokens, model, () => {
            [state.a, state.b] = [model, model];
            rows.set(model);
            columns.set(model);
            draw();
          }),
        )
        .filter(Boolean),
    );
  const all = () => {
    drawThumbs();
    draw();
    fade(thumbs);
  };
  const titles = models.map((model, i) => [String(i), model.title]);
  const pick = (key) => (value) => {
    state[key] = Number(value);
    draw();
  };
  const rows = picker("Down", titles, pick("a"), 0);
  const columns = picker("Across", titles, pick("b"), 0);
  const tokens = picker(
    "Of",
    present.map((key) => [key, study.similarity.tokens[key]]),
    (value) => {
      state.tokens = value;
      all();
    },
  );
  find(".pickers", figure).append(rows.element, columns.element, ...(present.length > 1 ? [tokens.element] : []));
  takeAway(find("figcaption", figure), {
    name: () => state.map.label,
    draw: (stage) => drawHeat(stage, state.map, WIDTH, 22),
    rows: () => depthRows(state),
  });
  responsive(host, all);
  themeListeners.push(all);
}

function depthThumb(tokens, model, choose) {
  const matrix = depthMatrix(tokens, model, model);
  if (!matrix) return null;
  const side = 104;
  const canvas = html("canvas", { width: 2 * side, height: 2 * side, "aria-hidden": "true" });
  Object.assign(canvas.style, { width: `${side}px`, height: `${side}px` });
  const context = canvas.getContext("2d");
  const cell = (2 * side) / matrix.rows;
  const colours = ramp(SEQUENTIAL);
  for (let i = 0; i < matrix.rows; i++) {
    for (let j = 0; j < matrix.columns; j++) {
      if (matrix.value(i, j) === null) continue;
      context.fillStyle = `rgb(${colours[Math.round(255 * matrix.value(i, j))].join()})`;
      context.fillRect(Math.floor(j * cell), Math.floor(i * cell), Math.ceil(cell), Math.ceil(cell));
    }
  }
  const thumb = html(
    "button",
    { type: "button", class: "thumb panel", "data-model": model, "aria-pressed": "false" },
    html("span", {}, modelTitle(model)),
    canvas,
  );
  thumb.addEventListener("click", choose);
  return thumb;
}

/** A row for each pair of sites. */
function depthRows({ a, b, tokens, matrix }) {
  const rows = [["model", "site", "other_model", "other_site", "measure", "variant", "value"]];
  for (let i = 0; i < matrix.rows; i++) {
    for (let j = 0; j < matrix.columns; j++) {
      const [here, there] = [siteName(a, i, matrix.rows), siteName(b, j, matrix.columns)];
      rows.push([models[a].title, here, models[b].title, there, "cka_depth", tokens, matrix.value(i, j)]);
    }
  }
  return rows;
}
