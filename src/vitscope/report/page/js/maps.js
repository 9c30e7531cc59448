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

/** A picture in the light of map `index`: as dark as it is little attended, compared with the most attended cell. */
function lightUp(canvas, picture, packed, index) {
  const { width: w, height: h } = packed;
  const shadow = new ImageData(w, h);
  for (let i = 0; i < w * h; i++) {
    const light = (packed.byte(index, i) / 255) ** 2;
    shadow.data[4 * i + 3] = Math.round(225 * (1 - light) ** 1.5);
  }
  const small = new OffscreenCanvas(w, h);
  small.getContext("2d").putImageData(shadow, 0, 0);
  [canvas.width, canvas.height] = [2 * picture.naturalWidth, 2 * picture.naturalHeight];
  const context = canvas.getContext("2d");
  context.drawImage(picture, 0, 0, canvas.width, canvas.height);
  context.drawImage(small, 0, 0, canvas.width, canvas.height);
}

/** Even attention over the model's grid, times five: below it, an aligned map is painted pale. */
const evenTimesFive = (model) => 5 / (models[model].grid[0] * models[model].grid[1]);

/** Three times a map's mean, the least scale of a map of places. */
const placeScale = (packed) => 3 / (packed.width * packed.height);
