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

function download(blob, name) {
  const address = URL.createObjectURL(blob);
  html("a", { href: address, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(address), 10_000);
}

/** A Python string: JSON has the same escapes. */
const quoted = JSON.stringify;

/** The lines that make what the first panel shows. */
function pythonLines() {
  const { model, view, layer } = shown[0];
  const { name, prefix, hasCls, grid } = models[model];
  const patch = patchAt(model, state.point);
  const head = headOf(model);
  const about = viewOf(view);
  const gallery = state.image.startsWith("g") ? titleOf(state.image) : "image.png";
  const lines = [
    "import vitscope",
    "from vitscope.models.kept import trace_image",
    "",
    `model = vitscope.load_model(${quoted(name)})`,
    `kept = trace_image(model, ${quoted(gallery)})  # model.trace, with everything kept`,
    `layer, patch = ${layer}, ${patch}  # counted from 0; the grid is ${grid[0]} x ${grid[1]}`,
  ];
  const from = about.point ? `${prefix} + patch` : hasCls ? "0" : `slice(${prefix}, None)`;
  if (about.heads && head === "rollout") {
    lines.push(
      "from vitscope.attention.rollout import rollout",
      "source = kept.attention.new_zeros(kept.layout.tokens)",
      `source[${from}] = 1`,
      "source /= source.sum()",
      `shown = rollout(list(kept.attention.mean(1)), source)[layer, ${prefix}:]`,
    );
  } else if (about.heads) {
    const which = head === "mean" ? "kept.attention[layer].mean(0)" : `kept.attention[layer, ${head}]`;
    lines.push(`shown = ${which}[${from}, ${prefix}:]${!about.point && !hasCls ? ".mean(0)" : ""}`);
  } else {
    lines.push(`patches = kept.tokens[layer, ${prefix}:]  # (N, D)`);
    const unit = "torch.nn.functional.normalize(patches, dim=1)";
    if (view !== "norms") lines.splice(1, 0, "import torch");
    if (view === "norms") lines.push("shown = patches.norm(dim=1)");
    if (view === "similar") lines.push(`patches = ${unit}`, "shown = patches @ patches[patch]");
    if (view === "pca") {
      lines.push("from vitscope.features.projection import pca", `shown, _ = pca(${unit}, 3)  # (N, 3), scaled to colours for the page`);
    }
    if (view === "segments") lines.push(`shown = ${unit}  # asked among the labelled patches of the folder`);
  }
  if (view === "mask") {
    lines.push("from vitscope.attention.saliency import top_mass_mask", `shown = top_mass_mask(shown, ${state.mass})`);
  }
  if (view !== "pca" && view !== "segments") lines.push("shown = shown.reshape(kept.layout.grid)");
  return `${lines.join("\n")}\n`;
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
