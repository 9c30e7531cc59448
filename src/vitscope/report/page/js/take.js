// Taking a chart along: as SVG or PNG for a paper, its rows as CSV for everything else.

const WIDTH = 720; // of a chart that is taken along, whatever the window
const INLINED = [
  "fill",
  "stroke",
  "stroke-width",
  "stroke-dasharray",
  "stroke-linejoin",
  "paint-order",
  "opacity",
  "font-family",
  "font-size",
  "font-weight",
  "text-anchor",
];

/**
 * Buttons below `host`. what: {name, draw(host)?, texts()?, canvases()?, rows()?}. draw: draws the chart as SVG into an
 * element; texts: SVGs, each a file of its own; canvases: [[title, canvas]]; rows: [[cell]], the first being names of
 * columns. name: text, or a function that tells it.
 */
function takeAway(host, what) {
  const name = () => (typeof what.name === "function" ? what.name() : what.name);
  const file = () =>
    name()
      .normalize("NFKD")
      .replace(/[^A-Za-z0-9]+/g, "-")
      .replace(/^-|-$/g, "")
      .toLowerCase() || "chart";
  const offers = [];
  const texts = what.draw ? () => [svgText(what.draw, name())] : what.texts;
  if (texts) offers.push(["SVG", () => texts().map(svgBlob)]);
  if (texts) offers.push(["PNG", () => texts().map(svgAsPng)]);
  if (what.canvases) offers.push(["PNG", () => [canvasesAsPng(what.canvases(), name())]]);
  if (what.rows) offers.push(["CSV", () => [new Blob([csv(what.rows())], { type: "text/csv" })]]);
  const heading = find("h3", host.closest(".multiple, figure"))?.textContent.trim() ?? "this chart";
  const buttons = offers.map(([kind, make]) => {
    const button = html("button", { type: "button", "aria-label": `${kind}: save ${heading}` }, kind);
    button.addEventListener("click", async () => {
      for (const [i, blob] of make().entries())
        download(await blob, `${file()}${i ? `-${i + 1}` : ""}.${kind.toLowerCase()}`);
    });
    return button;
  });
  host.append(html("p", { class: "saving" }, html("span", {}, "Save as"), buttons));
}

const svgBlob = (text) => new Blob([text], { type: "image/svg+xml" });

/** A chart drawn out of sight, with every colour and letter written into it, so that it stands on its own. */
function svgText(draw, title) {
  const stage = html("div", { class: "offstage" });
  document.body.append(stage);
  draw(stage);
  const root = find("svg", stage);
  findAll(".away, .cursor, .heat-cursor", root).forEach((part) => part.remove());
  const { width, height } = root.viewBox.baseVal;
  for (const part of [root, ...findAll("*", root)]) {
    const style = getComputedStyle(part);
    for (const key of INLINED) part.setAttribute(key, style.getPropertyValue(key));
    ["class", "data-model", "tabindex", "role"].forEach((key) => part.removeAttribute(key));
  }
  const { backgroundColor, color } = getComputedStyle(document.body);
  root.prepend(
    svg("rect", { x: -8, y: -34, width: width + 16, height: height + 42, fill: backgroundColor }),
    svg("text", { x: 2, y: -12, fill: color, "font-family": "sans-serif", "font-size": 15, "font-weight": 600 }, title),
  );
  root.setAttribute("viewBox", `-8 -34 ${width + 16} ${height + 42}`);
  root.setAttribute("width", width + 16);
  root.setAttribute("height", height + 42);
  root.setAttribute("xmlns", "http://www.w3.org/2000/svg");
  stage.remove();
  return new XMLSerializer().serializeToString(root);
}

async function svgAsPng(text) {
  const image = new Image();
  image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(text)}`;
  await image.decode();
  const canvas = new OffscreenCanvas(3 * image.width, 3 * image.height);
  canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
  return canvas.convertToBlob({ type: "image/png" });
}

/** Canvases in rows, each below its title. */
function canvasesAsPng(shown, title) {
  const columns = Math.min(4, shown.length);
  const wide = Math.max(...shown.map(([, canvas]) => canvas.width));
  const high = Math.max(...shown.map(([, canvas]) => canvas.height)) + 44;
  const sheet = new OffscreenCanvas(16 + columns * (wide + 16), 60 + Math.ceil(shown.length / columns) * high);
  const context = sheet.getContext("2d");
  const { backgroundColor, color } = getComputedStyle(document.body);
  context.fillStyle = backgroundColor;
  context.fillRect(0, 0, sheet.width, sheet.height);
  context.fillStyle = color;
  context.font = "600 24px sans-serif";
  context.fillText(title, 16, 36, sheet.width - 32);
  context.font = "20px sans-serif";
  shown.forEach(([name, canvas], i) => {
    const [x, y] = [16 + (i % columns) * (wide + 16), 60 + Math.floor(i / columns) * high];
    context.fillText(name, x, y + 22, wide);
    context.drawImage(canvas, x, y + 32);
  });
  return sheet.convertToBlob({ type: "image/png" });
}

/** Rows as CSV; a text that a spreadsheet would take for a formula stands behind an apostrophe. */
function csv(rows) {
  const cell = (value) => {
    if (value === null || value === undefined) return "";
    if (typeof value === "number") return String(value);
    const plain = /^[=+\-@\t\r]/.test(value) ? `'${value}` : value;
    return /[",\n\r]/.test(plain) ? `"${plain.replaceAll('"', '""')}"` : plain;
  };
  return `${rows.map((row) => row.map(cell).join(",")).join("\n")}\n`;
}

const COLUMNS = [
  "model",
  "dataset",
  "layer",
  "head",
  "measure",
  "variant",
  "protocol",
  "value",
  "ci_low",
  "ci_high",
  "n",
];

/** The rows of the tidy table that series of a chart show. */
function seriesRows(series, about = {}) {
  const rows = series
    .filter((one) => visible(one.model))
    .flatMap((one) => {
      const said = { ...about, ...one };
      const row = (layer, head, numbers) => [
        models[one.model].title,
        ...[said.dataset, layer, head, said.measure, said.variant, said.protocol, ...numbers, said.n],
      ];
      return one.layer.flatMap((layer, i) =>
        one.heads
          ? one.heads[i].map(([head, ...numbers]) => row(layer, head, numbers))
          : [row(layer, null, [one.value[i], one.low?.[i], one.high?.[i]])],
      );
    });
  return [COLUMNS, ...rows];
}

/** A table of the page. */
const tableRows = (table) =>
  findAll("tr", table).map((row) => [...row.cells].map((cell) => cell.innerText.replace(/\s+/g, " ").trim()));

/** The entries to cite, as a file. */
function citation() {
  const text = find("#cite pre");
  const button = find("#cite button");
  button.addEventListener("click", () => download(new Blob([text.textContent], { type: "text/plain" }), "study.bib"));
}
