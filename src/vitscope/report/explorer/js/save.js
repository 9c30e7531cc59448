// Taking it along: a link, an image, and the lines of Python that make the same arrays.

const ROOM_FOR_TITLE = 34;

/** Panels with their titles: where each stands. */
function sheetLayout() {
  const columns = Math.min(4, panels.length);
  const [high, wide] = [Math.max(...panels.map((p) => p.canvas.height)), Math.max(...panels.map((p) => p.canvas.width))];
  const places = panels.map((panel, i) => ({
    panel,
    x: 16 + (i % columns) * (wide + 16),
    y: 16 + Math.floor(i / columns) * (high + 2 * ROOM_FOR_TITLE),
  }));
  const rows = Math.ceil(panels.length / columns);
  return { places, width: 16 + columns * (wide + 16), height: 16 + rows * (high + 2 * ROOM_FOR_TITLE) };
}

const titleText = ({ model, view }) =>
  state.every ? `${models[model].title}: ${viewOf(view).title}` : models[model].title;

function sheetAsPng() {
  const { places, width, height } = sheetLayout();
  const canvas = new OffscreenCanvas(width, height);
  const context = canvas.getContext("2d");
  context.fillStyle = isDark() ? "#12141b" : "#ffffff";
  context.fillRect(0, 0, width, height);
  for (const { panel, x, y } of places) {
    context.fillStyle = isDark() ? "#eceae4" : "#1c1e2a";
    context.font = "600 17px sans-serif";
    context.fillText(titleText(panel), x, y + 20);
    context.drawImage(panel.canvas, x, y + ROOM_FOR_TITLE);
    context.font = "13px sans-serif";
    context.fillText(panel.told.textContent, x, y + ROOM_FOR_TITLE + panel.canvas.height + 18);
  }
  return canvas.convertToBlob({ type: "image/png" });
}

function sheetAsSvg() {
  const { places, width, height } = sheetLayout();
  const ink = isDark() ? "#eceae4" : "#1c1e2a";
  const text = (x, y, size, weight, words) =>
    svg("text", { x, y, fill: ink, "font-family": "sans-serif", "font-size": size, "font-weight": weight }, words);
  const parts = places.flatMap(({ panel, x, y }) => [
    text(x, y + 20, 17, 600, titleText(panel)),
    svg("image", { x, y: y + ROOM_FOR_TITLE, width: panel.canvas.width, height: panel.canvas.height, href: panel.canvas.toDataURL("image/png") }),
    text(x, y + ROOM_FOR_TITLE + panel.canvas.height + 18, 13, 400, panel.told.textContent),
  ]);
  const ground = svg("rect", { width, height, fill: isDark() ? "#12141b" : "#ffffff" });
  const sheet = svg("svg", { xmlns: "http://www.w3.org/2000/svg", viewBox: `0 0 ${width} ${height}`, width, height }, ground, parts);
  return new Blob([new XMLSerializer().serializeToString(sheet)], { type: "image/svg+xml" });
}

/** A Python string: JSON has the same escapes. */
const quoted = JSON.stringify;

/** Python that makes an image: a picture of the menagerie is rendered anew, any other is a file of the reader's. */
function imageLine(variable, name) {
  const number = Number(name.slice(1));
  const split = name[0] === "m" ? "rolled" : boot.menagerie && /^[gf]/.test(name) ? "shelf" : null;
  if (split) return `${variable} = Image.fromarray(render(World().scene("${split}", ${number}), 224).image)`;
  return `${variable} = ${quoted(name[0] === "u" ? (fileNames.get(name) ?? "image.png") : titleOf(name))}`;
}

/** The lines that make what the first panel shows. */
function pythonLines() {
  const { model, view, layer } = shown[0];
  const { load, prefix, hasCls, grid } = models[model];
  const patch = patchAt(model, state.point);
  const head = headOf(model);
  const about = viewOf(view);
  const second = view === "pca" && state.second;
  const imports = new Set(["import vitscope", "from vitscope.models.kept import trace_image"]);
  const images = [imageLine("image", state.image), ...(second ? [imageLine("second", second)] : [])];
  if (images.some((line) => line.includes("World"))) {
    imports.add("from PIL import Image").add("from vitscope.menagerie import World, render");
  }
  const lines = [
    ...images,
    `model = ${load}`,
    "kept = trace_image(model, image)  # model.trace, with everything kept",
    `layer, patch = ${layer}, ${patch}  # counted from 0; the grid is ${grid[0]} x ${grid[1]}`,
  ];
  const from = about.point ? `${prefix} + patch` : hasCls ? "0" : `slice(${prefix}, None)`;
  if (about.heads && head === "rollout") {
    imports.add("from vitscope.attention.rollout import rollout");
    lines.push(
      "source = kept.attention.new_zeros(kept.layout.tokens)",
      `source[${from}] = 1`,
      "source /= source.sum()",
      `shown = rollout(list(kept.attention.mean(1)), source)[layer, ${prefix}:]`,
    );
  } else if (about.heads) {
    const which = head === "mean" ? "kept.attention[layer].mean(0)" : `kept.attention[layer, ${head}]`;
    lines.push(`shown = ${which}[${from}, ${prefix}:]${!about.point && !hasCls ? ".mean(0)" : ""}`);
  } else lines.push(...tokenLines(view, prefix, imports));
  if (view === "mask") {
    imports.add("from vitscope.attention.saliency import top_mass_mask");
    lines.push(`shown = top_mass_mask(shown, ${state.mass})`);
  }
  lines.push(`shown = shown.reshape(*kept.layout.grid${view === "pca" ? ", 3" : ""})`);
  return `${[...imports].join("\n")}\n\n${lines.join("\n")}\n`;
}

/** Those of views that are made of tokens. */
function tokenLines(view, prefix, imports) {
  const tokens = (kept) => `${kept}.tokens[layer, ${prefix}:]`;
  if (view === "norms") return [`shown = ${tokens("kept")}.norm(dim=1)  # of the patches, (N,)`];
  imports.add("from torch.nn.functional import normalize");
  const lines = [`patches = normalize(${tokens("kept")}, dim=1)  # (N, D)`];
  if (view === "similar") return [...lines, "shown = patches @ patches[patch]"];
  if (view === "pca") {
    imports.add("import torch").add("from vitscope.features.projection import pca");
    const both = `[patches, normalize(${tokens("trace_image(model, second)")}, dim=1)]`;
    const space = state.second ? `torch.cat(${both})` : "patches";
    return [
      ...lines,
      `colours, _ = pca(${space}, 3)  # in one space`,
      'low, high = (colours.quantile(q, 0, interpolation=i) for q, i in ((0.02, "lower"), (0.98, "higher")))',
      "shown = ((colours - low) / (high - low)).clamp(0, 1)[: len(patches)]",
    ];
  }
  imports.add("from vitscope.report.explorer.bank import Bank").add("from vitscope.report.explorer.gallery import open_gallery");
  const folder = boot.menagerie ? "None" : 'Path(".")';
  if (!boot.menagerie) imports.add("from pathlib import Path");
  const own = state.image[0] === "g" ? state.image.slice(1) : "None";
  return [
    ...lines,
    `bank = Bank(model, open_gallery(${folder}))  # ${boot.menagerie ? "the menagerie" : "the folder of images"}`,
    "bank.grow(lambda: False)  # look at all of it",
    `shown = bank.segment(layer, patches, ${own})["labels"]  # 0 is background`,
  ];
}

async function copy(text, words) {
  try {
    await navigator.clipboard.writeText(text);
    notice(`${words} copied`);
  } catch {
    notice(text); // a browser that gives no clipboard: to be copied by hand
  }
}

function startSaving() {
  const on = (id, act) => find(id).addEventListener("click", act);
  on("#copy-link", () => copy(location.href.split("#")[0] + toHash(), "link"));
  on("#copy-python", () => copy(pythonLines(), "Python lines"));
  on("#save-png", async () => download(await sheetAsPng(), "vitscope.png"));
  on("#save-svg", () => download(sheetAsSvg(), "vitscope.svg"));
}
