// What: how alike the last layers of all models are.

function similarityFigure() {
  const figure = find("#chart-similarity");
  if (!figure) return;
  const { last, tokens } = study.similarity;
  const host = find(".drawing", figure);
  const area = html("div", { class: "heat" });
  host.append(area, rampStrip("0, nothing alike", "1, the same"));
  const state = { ...last[0] };
  const chosen = () =>
    last.find((one) => ["measure", "tokens", "dataset", "protocol"].every((key) => one[key] === state[key]));
  const distinct = (key, name) => [...new Map(last.map((one) => [one[key], name(one)]))];

  const build = () => {
    const dimensions = [
      ["tokens", "Of", distinct("tokens", (one) => tokens[one.tokens])],
      ["measure", "Measure", distinct("measure", (one) => one.title)],
      ["dataset", "Images", distinct("dataset", (one) => shortName(one.dataset))],
      ["protocol", "Protocol", distinct("protocol", (one) => one.protocol)],
    ];
    find(".pickers", figure).append(
      ...dimensions
        .filter(([, , options]) => options.length > 1)
        .map(([key, name, options]) => {
          const made = picker(name, options, (value) => {
            state[key] = value;
            draw();
          });
          return made.element;
        }),
    );
  };
  const draw = () => {
    const matrix = chosen();
    const reading = find(".reading", figure);
    reading.hidden = !matrix;
    if (!matrix) {
      area.replaceChildren(html("p", { class: "absent" }, "This study has no such comparison."));
      return;
    }
    const names = models.map((_, i) => ({ name: briefTitles[i], model: i }));
    const map = {
      label: `${matrix.title} of last layers, ${tokens[matrix.tokens]}`,
      rows: names,
      columns: names,
      text: true,
      gap: 3,
      left: 24 + 6.5 * Math.max(...briefTitles.map((title) => title.length)),
      top: 46,
      value: (i, j) => (i === j ? 1 : matrix.value[i][j]),
      shown: (i, j) => visible(i) || visible(j),
      describe: (i, j) => pairText(matrix, i, j),
    };
    drawHeat(area, map, host.clientWidth, 72);
    state.map = map;
    fade(area);
    reading.textContent = pairSentence(matrix);
    find(".note", figure).textContent =
      `${matrix.n.toLocaleString("en")} images of ${shortName(matrix.dataset)}. Unrelated features get their null, told with each value.`;
  };
  build();
  takeAway(find("figcaption", figure), {
    name: () => state.map.label,
    draw: (stage) => drawHeat(stage, state.map, WIDTH, 72),
    rows: () => pairRows(chosen()),
  });
  responsive(host, draw);
  themeListeners.push(draw);
  whenIsolated(draw);
}

function pairText(matrix, i, j) {
  const heading = html("b", {}, i === j ? models[i].title : `${models[i].title} and ${models[j].title}`);
  if (i === j) return [heading, html("br"), "the same model"];
  const value = matrix.value[i][j];
  if (value === null) return [heading, html("br"), "not comparable: one of them has no such tokens"];
  const range = interval(matrix.low[i][j], matrix.high[i][j]);
  const null_ = matrix.null[i][j];
  return [
    heading,
    html("br"),
    `${matrix.title} ${number(value)}${range ? ` (${range})` : ""}`,
    ...(null_ === null
      ? []
      : [html("br"), html("span", { class: "quiet" }, `null ${matrix.measure === "cka" ? "±" : ""}${number(null_)}`)]),
  ];
}

/** The most and the least alike pair of different models. */
function pairSentence(matrix) {
  const pairs = [];
  models.forEach((_, i) =>
    models.forEach(
      (_, j) =>
        i < j && matrix.value[i][j] !== null && (visible(i) || visible(j)) && pairs.push([i, j, matrix.value[i][j]]),
    ),
  );
  if (!pairs.length) return "No two models can be compared.";
  pairs.sort((a, b) => b[2] - a[2]);
  const told = ([i, j, value]) => `${models[i].title} and ${models[j].title} (${number(value)})`;
  if (pairs.length === 1) return `${matrix.title} of the two is ${number(pairs[0][2])}.`;
  return `Most alike are ${told(pairs[0])}; least, ${told(pairs.at(-1))}.`;
}

/** A row for each pair of models, as in the tidy table. */
function pairRows(matrix) {
  const { dataset, measure, tokens, protocol, value, low, high, n } = matrix;
  const rows = models.flatMap((model, i) =>
    models.slice(i + 1).map((other, k) => {
      const j = i + 1 + k;
      return [model.title, other.title, dataset, measure, tokens, protocol, value[i][j], low[i][j], high[i][j], n];
    }),
  );
  return [
    ["model", "other_model", "dataset", "measure", "variant", "protocol", "value", "ci_low", "ci_high", "n"],
    ...rows,
  ];
}
