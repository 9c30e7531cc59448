// Painting attention maps, one byte per cell, onto canvases.

/**
 * Paint map `index` of packed maps at (x, y), width x height in pixels of the context. least: a map's largest value
 * counts as at least this, so that an even map looks even. Aligned maps are painted on a square-root scale, since a
 * peak at one offset would hide the rest; maps of places on a linear one.
 */
function paintMap(context, packed, index, stops, x, y, width, height, least = 0) {
  const { width: w, height: h } = packed;
  const colours = ramp(stops);
  const image = new ImageData(w, h);
  const factor = least > 0 ? Math.sqrt(packed.top[index] / Math.max(packed.top[index], least)) : 1;
  const shade = (byte) => Math.round(stops === HEAT ? (byte * factor) ** 2 / 255 : byte * factor);
  for (let i = 0; i < w * h; i++) {
    const colour = colours[shade(packed.byte(index, i))];
    for (let channel = 0; channel < 3; channel++) image.data[4 * i + channel] = colour[channel];
    image.data[4 * i + 3] = 255;
  }
  const small = new OffscreenCanvas(w, h);
  small.getContext("2d").putImageData(image, 0, 0);
  context.imageSmoothingEnabled = false;
  context.drawImage(small, x, y, width, height);
}

/** Fill a whole canvas with one map, at a whole number of pixels per cell. */
function fillWithMap(canvas, packed, index, stops, least = 0) {
  const cell = Math.max(1, Math.round(320 / Math.max(packed.width, packed.height)));
  canvas.width = packed.width * cell;
  canvas.height = packed.height * cell;
  paintMap(canvas.getContext("2d"), packed, index, stops, 0, 0, canvas.width, canvas.height, least);
}

const GLOW = { light: HEAT.dark, dark: HEAT.dark }; // over a photo: dark where nobody looks, whatever the theme

/**
 * A picture with map `index` laid over it, at (x, y), width x height in pixels of the context. top: the value that is
 * painted brightest; opacity: of the map, 0 to 1.
 */
function layOver(context, picture, packed, index, top, opacity, x, y, width, height) {
  const { width: w, height: h } = packed;
  const colours = ramp(GLOW);
  const image = new ImageData(w, h);
  for (let i = 0; i < w * h; i++) {
    const share = top > 0 ? Math.min(1, packed.value(index, i) / top) : 0;
    const colour = colours[Math.round(255 * share)];
    for (let channel = 0; channel < 3; channel++) image.data[4 * i + channel] = colour[channel];
    image.data[4 * i + 3] = 255;
  }
  const small = new OffscreenCanvas(w, h);
  small.getContext("2d").putImageData(image, 0, 0);
  context.imageSmoothingEnabled = true;
  context.globalAlpha = 1;
  context.drawImage(picture, x, y, width, height);
  context.globalAlpha = opacity;
  context.drawImage(small, x, y, width, height);
  context.globalAlpha = 1;
}

/** Even attention over the model's grid, times five: below it, an aligned map is painted pale. */
const evenTimesFive = (model) => 5 / (models[model].grid[0] * models[model].grid[1]);

/** Three times a map's mean, the least scale of a map of places. */
const placeScale = (packed) => 3 / (packed.width * packed.height);
