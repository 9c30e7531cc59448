// The study inside this page.

const study = JSON.parse(find("#study").textContent);
const { models } = study;

/** Titles short enough for an axis. Of a long one the start is kept, or both ends where another starts the same way. */
const LONGEST = 21;
const clip = (text, most = LONGEST) => (text.length > most ? `${text.slice(0, most - 1)}…` : text);
const briefTitles = models.map(({ title }) => {
  const alike = models.filter((other) => clip(other.title) === clip(title)).length > 1;
  return title.length > LONGEST && alike ? `${title.slice(0, 9)}…${title.slice(-11)}` : clip(title);
});

const sameDepth = new Set(models.map((model) => model.depth)).size <= 1;

/** Where a layer stands on a depth axis: its number if all models are equally deep, else its share of the depth. */
const position = (model, layer) => (sameDepth ? layer : layer / models[model].depth);

const layerName = (model, layer) => (sameDepth ? `layer ${layer}` : `layer ${layer} of ${models[model].depth}`);

/** Maps packed as one byte per cell on a square-root scale: {size: [h, w], top: [largest], data: base64}. */
class PackedMaps {
  constructor({ size, top, data }) {
    [this.height, this.width] = size;
    this.top = top;
    this.bytes = Uint8Array.from(atob(data), (character) => character.charCodeAt(0));
  }

  /** Byte of cell i of map `index`. */
  byte(index, i) {
    return this.bytes[index * this.height * this.width + i];
  }

  value(index, i) {
    return (this.byte(index, i) / 255) ** 2 * this.top[index];
  }

  get count() {
    return this.top.length;
  }
}

const unpacked = new Map();
function maps(packed) {
  if (!unpacked.has(packed)) unpacked.set(packed, new PackedMaps(packed));
  return unpacked.get(packed);
}
