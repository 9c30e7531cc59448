// Figures with curves: pick measure, token, data and protocol; read the sentence; see the chart.

const shortName = (dataset) => dataset.split(/[\\/]/).filter(Boolean).at(-1) ?? dataset;
const curveFigures = new Map();

function curveFigure(figure) {
  const chart = study.curves[figure.dataset.curves];
  const host = find(".drawing", figure);
  const state = { measure: Object.keys(chart.measures)[0] };
  const dimensions = [
    ["variant", "Of", (value) => chart.variants[value] || "all"],
    ["dataset", "Images", shortName],
    ["protocol", "Protocol", (value) => value],
  ];

  const offered = (key) => {
    const there = new Set(chart.series.filter((one) => one.measure === state.measure).map((one) => one[key]));
    return key === "variant" ? Object.keys(chart.variants).filter((variant) => there.has(variant)) : [...there];
  };
  const shown = (list) =>
    list.filter((one) => one.measure === state.measure && dimensions.every(([key]) => one[key] === state[key]));

  const build = () => {
    const pickers = [];
    const measures = Object.entries(chart.measures).map(([measure, { title }]) => [measure, title]);
    if (measures.length > 1) pickers.push(["Measure", measures, "measure"]);
    for (const [key, name, title] of dimensions) {
      const values = offered(key);
      if (!values.includes(state[key])) state[key] = values[0];
      if (values.length > 1) pickers.push([name, values.map((value) => [value, title(value)]), key]);
    }
    find(".pickers", figure).replaceChildren(
      ...pickers.map(([name, options, key]) => {
        const made = picker(name, options, (value) => choose(key, value));
        made.element.dataset.key = key;
        made.set(state[key]);
        return made.element;
      }),
    );
  };
  const draw = (width) => {
    const about = chart.measures[state.measure];
    const series = shown(chart.series);
    const drawn = { ...about, name: chart.title, series, chance: shown(chart.chance), labels: true };
    drawLines(host, drawn, width);
    find(".see", figure).textContent = about.see;
    say(find(".reading", figure), about, series);
    find(".note", figure).textContent = noteOn(series, chart.band, drawn.chance.length > 0, about.mean);
  };
  const choose = (key, value) => {
    const focused = document.activeElement?.closest?.(".picker")?.dataset.key;
    state[key] = value;
    if (key === "measure") build();
    draw(host.clientWidth);
    if (focused) find(`.picker[data-key="${focused}"] :is(input:checked, select)`, figure)?.focus();
  };

  build();
  responsive(host, draw);
  whenIsolated(() => say(find(".reading", figure), chart.measures[state.measure], shown(chart.series)));
  takeAway(find("figcaption", figure), {
    name: () => `${chart.title}: ${chart.measures[state.measure].title}`,
    draw: (stage) =>
      drawLines(
        stage,
        {
          ...chart.measures[state.measure],
          name: "",
          series: shown(chart.series),
          chance: shown(chart.chance),
          labels: true,
        },
        WIDTH,
      ),
    rows: () => seriesRows(shown(chart.series)),
  });
  curveFigures.set(figure.id, (measure) => measure in chart.measures && choose("measure", measure));
}

/** The one sentence that this chart is worth, of the models that are shown. */
function say(paragraph, about, series) {
  const points = series
    .filter((one) => visible(one.model))
    .flatMap((one) =>
      one.layer.map((layer, i) => ({
        model: one.model,
        layer,
        value: one.value[i],
        low: one.low?.[i],
        high: one.high?.[i],
        last: i === one.layer.length - 1,
      })),
    )
    .filter((point) => point.value !== null);
  const pool = about.say === "last" ? points.filter((point) => point.last) : points;
  paragraph.hidden = about.say === "none" || !pool.length;
  if (paragraph.hidden) return;
  const highest = pool.reduce((a, b) => (b.value > a.value ? b : a));
  const lowest = pool.reduce((a, b) => (b.value < a.value ? b : a));
  const told = (point, word) => `${models[point.model].title} is ${word} (${number(point.value)})`;
  const where = (point) =>
    `${models[point.model].title} at ${layerName(point.model, point.layer)}: ${number(point.value)}`;
  const range = (point) => (interval(point.low, point.high) ? `, interval ${interval(point.low, point.high)}` : "");
  if (highest.value - lowest.value < 1e-9) {
    const place = about.say === "last" ? "At the last layer" : "Everywhere";
    paragraph.textContent = `${place}: ${number(highest.value)}.`;
    return;
  }
  const sentences = {
    last: `At the last layer, ${told(highest, "highest")} and ${told(lowest, "lowest")}.`,
    peak: `Highest anywhere is ${where(highest)}${range(highest)}.`,
    lowest: `Lowest anywhere is ${where(lowest)}${range(lowest)}.`,
  };
  paragraph.textContent = sentences[about.say];
}

function noteOn(series, band, chance, mean) {
  const counts = [...new Set(series.map((one) => one.n))].filter(Boolean);
  const what = series.some((one) => one.variant.startsWith("regions")) ? "regions" : "images";
  const many = counts.length ? `${counts.map((n) => n.toLocaleString("en")).join(" or ")} ${what}` : "";
  const data = [...new Set(series.map((one) => one.dataset))].map(shortName).join(", ");
  const heads = series.some((one) => one.heads);
  const lines = mean ? "dots are heads, lines their mean" : "dots are heads";
  const parts = [many && data ? `${many} of ${data}` : many || data, heads ? lines : band];
  if (chance) parts.push("dotted: chance");
  const text = parts.filter(Boolean).join("; ");
  return `${text[0].toUpperCase()}${text.slice(1)}.`;
}
