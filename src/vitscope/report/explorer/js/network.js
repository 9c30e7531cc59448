// Networks that this page runs itself: weights of 8 bits inside it, unpacked when a network is first used.

const sent = new Map(); // networks that the worker has, or will have: promises by model

/** Weights by name, float32. Matrices are bytes with a scale for each row; everything else is there as it is. */
function unpackedNetwork(arrays) {
  const weights = {};
  for (const [name, array] of Object.entries(arrays)) {
    if (name.endsWith(".scale")) continue;
    const scale = arrays[`${name}.scale`];
    weights[name] = scale ? dequantised(array, scale) : Float32Array.from(floats(array));
  }
  return weights;
}

/** Attention, head means and tokens of an image, computed beside the page. pixels: bytes (h, w, 4). */
async function ran(model, pixels, signal) {
  if (!sent.has(model)) {
    const settings = { ...models[model], ...models[model].network };
    sent.set(model, embedded(`network-${model}`).then((bytes) => aside("network", { model, bytes, settings })));
  }
  await sent.get(model);
  return aside("forward", { model, pixels }, { signal });
}

/** The bytes (h, w, 4) that a network sees of a picture: the middle of it, resized. */
function seenBy(picture, [height, width]) {
  const canvas = new OffscreenCanvas(picture.width, picture.height);
  const context = canvas.getContext("2d", { willReadFrequently: true });
  context.drawImage(picture, 0, 0);
  const [h, w] = [picture.height, picture.width];
  const { data } = context.getImageData(0, 0, w, h);
  const narrow = w * height <= h * width; // as the package resizes: until the size is covered, the rest truncated
  const to = narrow ? [Math.floor((width * h) / w), width] : [height, Math.floor((height * w) / h)];
  const whole = to[0] === h && to[1] === w ? data : resized(data, [h, w], to);
  const [top, left] = [Math.round((to[0] - height) / 2), Math.round((to[1] - width) / 2)];
  const out = new Uint8ClampedArray(4 * height * width);
  for (let y = 0; y < height; y++) {
    const start = 4 * ((top + y) * to[1] + left);
    out.set(whole.subarray(start, start + 4 * width), 4 * y * width);
  }
  return out;
}
