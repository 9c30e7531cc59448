// Images to the size a network takes: bicubic with a filter as wide as the reduction, as Pillow does it.

function cubic(x) {
  const at = Math.abs(x);
  if (at < 1) return (1.5 * at - 2.5) * at * at + 1;
  return at < 2 ? ((-0.5 * at + 2.5) * at - 4) * at + 2 : 0;
}

/** For every output position the first input one and the weights from there on. */
function taps(from, to) {
  const scale = from / to;
  const wide = Math.max(1, scale);
  return Array.from({ length: to }, (_, i) => {
    const centre = (i + 0.5) * scale;
    const first = Math.max(0, Math.floor(centre - 2 * wide + 0.5));
    const last = Math.min(from, Math.floor(centre + 2 * wide + 0.5));
    const weights = Array.from({ length: last - first }, (_, k) => cubic((first + k - centre + 0.5) / wide));
    const total = weights.reduce((sum, weight) => sum + weight, 0);
    return { first, weights: weights.map((weight) => weight / total) };
  });
}

const byte = (value) => Math.min(255, Math.max(0, Math.round(value)));

/** RGBA bytes (h, w, 4) resized to (height, width): rows first, then columns, rounded to bytes after each. */
function resized(pixels, [h, w], [height, width]) {
  const across = taps(w, width);
  const half = new Uint8ClampedArray(h * width * 4);
  for (let y = 0; y < h; y++) {
    for (let x = 0; x < width; x++) {
      const { first, weights } = across[x];
      for (let channel = 0; channel < 4; channel++) {
        let sum = 0;
        for (let k = 0; k < weights.length; k++) sum += weights[k] * pixels[4 * (y * w + first + k) + channel];
        half[4 * (y * width + x) + channel] = byte(sum);
      }
    }
  }
  const down = taps(h, height);
  const out = new Uint8ClampedArray(height * width * 4);
  for (let y = 0; y < height; y++) {
    const { first, weights } = down[y];
    for (let x = 0; x < 4 * width; x++) {
      let sum = 0;
      for (let k = 0; k < weights.length; k++) sum += weights[k] * half[(first + k) * 4 * width + x];
      out[y * 4 * width + x] = byte(sum);
    }
  }
  return out;
}
