// What of the folder is most like the point and the image; segmentations by its labelled patches; kinds of heads.

const segmentations = new Map(); // by "model image": labels of all layers, or nothing while they are on their way

/** Labels (N,) of a trace's patches at a layer, or null until they are there. */
function segmentation(trace, layer) {
  if (!source.segmentation || !banksDone.has(trace.model)) return null;
  const key = `${trace.model} ${state.image}`;
  if (!segmentations.has(key)) {
    if (segmentations.size > 40) segmentations.clear();
    segmentations.set(key, null);
    source.segmentation(trace.model, state.image).then(
      (found) => {
        segmentations.set(key, found.labels.data);
        redraw();
      },
      (error) => {
        segmentations.delete(key);
        forgotten(trace.model, error);
      },
    );
  }
  return segmentations.get(key)?.subarray(layer * trace.count, (layer + 1) * trace.count) ?? null;
}

const banksDone = new Map(); // by model: how many images it looked at
const bankProgress = new Map();
let growing = false;

/** Have every chosen model look at the folder, a few images at a time; what is looked at now comes first. */
async function growBanks() {
  if (!source.bank || growing) return;
  growing = true;
  try {
    for (let next; (next = state.models.find((model) => !banksDone.has(model) && traceOf(model, state.image))) !== undefined; ) {
      const { done, planned, kinds } = await source.bank(next);
      bankProgress.set(next, [done, planned]);
      if (done >= planned) {
        banksDone.set(next, planned);
        bankProgress.delete(next);
        if (kinds) kindsKnown.set(next, kinds);
        askNeighbours();
        redraw();
      }
      showProgress();
    }
  } catch (error) {
    complain(error);
  } finally {
    growing = false;
  }
}

/** A bank that the server gave up for other models is made again. */
function forgotten(model, error) {
  if (error.status !== 409) return complain(error);
  banksDone.delete(model);
  growBanks();
}

let asking = null;
/** Ask for the neighbours of the point, after it has come to rest. */
const askNeighbours = settled(async () => {
  if (!source.neighbours) return;
  asking?.abort();
  asking = new AbortController();
  const { signal } = asking;
  const host = find("#neighbours");
  const ready = state.models.filter((model) => banksDone.has(model) && traceOf(model, state.image));
  const rows = await Promise.all(
    ready.map(async (model) => {
      try {
        return neighbourRow(model, await source.neighbours(model, state.image, layerOf(model), patchAt(model, state.point), signal));
      } catch (error) {
        if (!signal.aborted) forgotten(model, error);
        return null;
      }
    }),
  );
  const there = rows.filter(Boolean);
  if (!signal.aborted && there.length) host.replaceChildren(...there);
}, 180);

function neighbourRow(model, found) {
  const patches = Array.from(found.patches.data, (patch, i) =>
    patchTile(model, `g${found.patch_images.data[i]}`, patch, found.patch_scores.data[i]),
  );
  const images = Array.from(found.images.data, (image, i) =>
    imageTile(model, `g${image}`, found.image_scores.data[i]),
  );
  return html(
    "div",
    { class: "near", "data-model": model },
    html("h3", {}, markOf(model), models[model].title),
    html("p", { class: "quiet" }, banksDone.get(model) < source.gallery.length ? `patches, of ${banksDone.get(model)} of the images` : "patches"),
    html("div", { class: "near-tiles patches" }, patches),
    html("p", { class: "quiet" }, "images"),
    html("div", { class: "near-tiles" }, images),
  );
}

const titleOf = (name) => source.gallery.find((entry) => entry.name === name)?.title ?? "image";

/** A patch with what is around it. */
function patchTile(model, name, patch, score) {
  const canvas = html("canvas", { width: 84, height: 84, role: "img", "aria-label": `patch of ${titleOf(name)}` });
  source.picture(model, name).then((picture) => {
    const [h, w] = models[model].grid;
    const [dx, dy] = [picture.naturalWidth / w, picture.naturalHeight / h];
    const around = Math.max(2, Math.round(Math.min(h, w) / 7));
    const [x, y] = [((patch % w) - around) * dx, (Math.floor(patch / w) - around) * dy];
    const [wide, high] = [(2 * around + 1) * dx, (2 * around + 1) * dy];
    const context = canvas.getContext("2d");
    context.fillStyle = "#888";
    context.drawImage(picture, x, y, wide, high, 0, 0, 84, 84);
    const edge = 84 / (2 * around + 1);
    context.lineWidth = 2;
    context.strokeStyle = "#ffffff";
    context.strokeRect(around * edge, around * edge, edge, edge);
  }, () => {});
  return nearTile(name, canvas, score);
}

const imageTile = (model, name, score) =>
  nearTile(name, html("img", { src: source.thumb(model, name), alt: titleOf(name), width: 84, height: 84 }), score);

function nearTile(name, content, score) {
  const button = html("button", { type: "button", class: "near-tile", title: titleOf(name) }, content, html("span", {}, score.toFixed(2)));
  button.addEventListener("click", () => change({ second: name }));
  return button;
}
