// Where traces and images come from: a server, this file, or networks that this page runs.

const SHOWN = 448; // pixels of the shorter side of an image on the page

async function answer(path, options = {}) {
  const response = await fetch(path, options);
  if (response.ok) return response;
  const said = await response.json().catch(() => ({}));
  throw Object.assign(new Error(said.error ?? `the server answered ${response.status}`), { status: response.status });
}

let serial = 0;
const numbered = (trace) => Object.assign(trace, { serial: serial++ });

const serverSource = {
  upload: async (blob) => (await (await answer("images", { method: "POST", body: blob })).json()).name,
  model: async (text) => (await answer("models", { method: "POST", body: text })).json(),
  roll: () => `m${Math.floor(Math.random() * 1e6)}`,
  picture: (model, name) => loaded(`pictures/${model}/${name}`),
  thumb: (model, name) => `thumbs/${model}/${name}`,
  trace: async (model, name, signal) => {
    const response = await answer(`traces/${model}/${name}`, { signal });
    return numbered(new Trace(model, readArrays(await response.arrayBuffer())));
  },
  gallery: boot.gallery.map((title, i) => ({ name: `g${i}`, title })),
  neighbours: async (model, name, layer, patch, signal) => {
    const response = await answer(`neighbours/${model}/${name}/${layer}/${patch}`, { signal });
    return readArrays(await response.arrayBuffer());
  },
  segmentation: async (model, name) => {
    const response = await answer(`segmentations/${model}/${name}`);
    return readArrays(await response.arrayBuffer());
  },
  bank: async (model, signal) => (await answer(`banks/${model}`, { signal })).json(),
};

/** Pictures that this file holds, by name. */
const heldPicture = (name) => boot.gallery.find((entry) => entry.name === name)?.picture;
const held = () => boot.gallery.map(({ name, title }) => ({ name, title }));

const frozenSource = {
  picture: (_model, name) => loaded(heldPicture(name)),
  thumb: (_model, name) => heldPicture(name),
  trace: async (model, name) => {
    const arrays = readArrays(await embedded(`trace-${model}-${name}`));
    return numbered(new FrozenTrace(model, arrays));
  },
};

const dropped = new Map(); // pictures that were dropped into a page without a server
const networkSource = {
  upload: async (blob) => {
    const picture = await createImageBitmap(blob).catch(() => {
      throw new Error("this is not an image that the browser can read");
    });
    const side = Math.min(picture.width, picture.height);
    const canvas = new OffscreenCanvas(SHOWN, SHOWN);
    const context = canvas.getContext("2d");
    context.fillStyle = "#ffffff"; // transparency is laid on white
    context.fillRect(0, 0, SHOWN, SHOWN);
    context.imageSmoothingQuality = "high";
    const [left, top] = [(picture.width - side) / 2, (picture.height - side) / 2];
    context.drawImage(picture, left, top, side, side, 0, 0, SHOWN, SHOWN);
    const name = `u${dropped.size}`;
    dropped.set(name, URL.createObjectURL(await canvas.convertToBlob({ type: "image/png" })));
    return name;
  },
  roll: () => boot.gallery[Math.floor(Math.random() * boot.gallery.length)].name,
  picture: (_model, name) => loaded(dropped.get(name) ?? heldPicture(name)),
  thumb: (_model, name) => dropped.get(name) ?? heldPicture(name),
  trace: async (model, name, signal) => {
    const pixels = seenBy(await networkSource.picture(model, name), models[model].size);
    return numbered(new Trace(model, await ran(model, pixels, signal)));
  },
};

const source =
  boot.source === "server"
    ? serverSource
    : { gallery: held(), ...(boot.source === "frozen" ? frozenSource : networkSource) };

const pictures = new Map();
/** An image that is ready to be drawn; the same address is loaded once. */
function loaded(address) {
  if (!address) return Promise.reject(new Error("this image is not part of this page: drop it in again"));
  if (!pictures.has(address)) {
    const image = new Image();
    image.src = address;
    const ready = image.decode().then(
      () => image,
      () => {
        pictures.delete(address);
        throw new Error("this image was dropped into another session, or long ago: drop it in again");
      },
    );
    pictures.set(address, ready);
    if (pictures.size > 200) pictures.delete(pictures.keys().next().value);
  }
  return pictures.get(address);
}
