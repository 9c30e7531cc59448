// Maps onto canvases: cells alone, or over the image.

const LABEL_COLOURS = [
  "#0072B2", "#E69F00", "#009E73", "#CC79A7", "#F0E442", "#D55E00", "#8F6FD1", "#7A5230", "#56B4E9", "#00A6A6", "#B0B0B0",
]; // prettier-ignore
const channels = (hex) => [1, 3, 5].map((i) => parseInt(hex.slice(i, i + 2), 16));
/** [r, g, b] of each class: fixed ones first, then hues as far apart as any number of them can be. */
const LABEL_CHANNELS = (boot.classes ?? []).map((_, i) => {
  if (i < LABEL_COLOURS.length) return channels(LABEL_COLOURS[i]);
  const light = 0.62 - 0.17 * (i % 3);
  const channel = (n) => {
    const k = (n + i * 137.508 / 30) % 12;
    return Math.round(255 * (light - 0.6 * Math.min(light, 1 - light) * Math.max(-1, Math.min(k - 3, 9 - k, 1))));
  };
  return [channel(0), channel(8), channel(4)];
});
const labelColour = (label) => `rgb(${LABEL_CHANNELS[label - 1].join(" ")})`;
/** The ramp of maps, dark to bright in either theme, as they lie over images. */
const GLOW = (() => {
  const anchors = HEAT.dark.map(channels);
  return Array.from({ length: 256 }, (_, i) => {
    const at = (i / 255) * (anchors.length - 1);
    const left = Math.min(Math.floor(at), anchors.length - 2);
    return anchors[left].map((c, k) => Math.round(c + (at - left) * (anchors[left + 1][k] - c)));
  });
})();

const SHADE = [10, 12, 22];

const muted = new WeakMap();
/** A picture nearly without its colours, so that those of a map are read as they are. */
function mutedPicture(picture) {
  if (!muted.has(picture)) {
    const canvas = new OffscreenCanvas(picture.naturalWidth, picture.naturalHeight);
    const context = canvas.getContext("2d");
    context.filter = "grayscale(0.85)";
    context.drawImage(picture, 0, 0);
    muted.set(picture, canvas);
  }
  return muted.get(picture);
}

const scratches = new Map();
/** A canvas and pixels of one per patch, used again and again. */
function scratch(w, h) {
  const key = `${w} ${h}`;
  if (!scratches.has(key)) {
    const canvas = new OffscreenCanvas(w, h);
    scratches.set(key, { canvas, context: canvas.getContext("2d"), pixels: new ImageData(w, h) });
  }
  return scratches.get(key);
}

/** Fill pixels, one per patch, with a map. over: see-through, to lie on an image. */
function cells(map, pixels, over) {
  const { data } = pixels;
  const { values } = map;
  const count = data.length / 4;
  const blank = isDark() ? [26, 29, 39] : [236, 234, 227];
  const put = (i, colour, alpha) => {
    data[4 * i] = colour[0];
    data[4 * i + 1] = colour[1];
    data[4 * i + 2] = colour[2];
    data[4 * i + 3] = alpha;
  };
  if (map.kind === "heat") {
    const factor = 1 / (map.high - map.low || 1);
    for (let i = 0; i < count; i++) {
      const share = Math.min(1, Math.max(0, (values[i] - map.low) * factor));
      put(i, GLOW[Math.round(255 * share)], over ? 125 + 75 * share : 255);
    }
  } else if (map.kind === "colours") {
    for (let i = 0; i < count; i++) {
      for (let channel = 0; channel < 3; channel++) data[4 * i + channel] = 22 + 218 * values[3 * i + channel]; // no glare
      data[4 * i + 3] = 255;
    }
  } else if (map.kind === "mask") {
    for (let i = 0; i < count; i++) {
      if (over) put(i, SHADE, values[i] ? 0 : 190);
      else put(i, GLOW[values[i] ? 225 : 12], 255);
    }
  } else {
    for (let i = 0; i < count; i++) {
      if (values[i]) put(i, LABEL_CHANNELS[values[i] - 1], over ? 190 : 255);
      else put(i, over ? SHADE : blank, over ? 110 : 255);
    }
  }
}

/** Paint a map of a grid at (x, y), width x height. picture: the image to lie over, if it is to. */
function paintCells(context, map, [h, w], x, y, width, height, picture = null) {
  const { canvas, context: small, pixels } = scratch(w, h);
  const over = picture !== null && map.kind !== "colours";
  cells(map, pixels, over);
  small.putImageData(pixels, 0, 0);
  if (over) context.drawImage(map.kind === "mask" ? picture : mutedPicture(picture), x, y, width, height);
  context.imageSmoothingEnabled = over && map.kind === "heat";
  context.imageSmoothingQuality = "high";
  context.drawImage(canvas, x, y, width, height);
  if (map.kind === "mask" && over) outline(context, map.values, [h, w], x, y, width, height);
}

/** The edge between patches inside and outside of a mask. */
function outline(context, values, [h, w], x, y, width, height) {
  const [dx, dy] = [width / w, height / h];
  const inside = (r, c) => r >= 0 && c >= 0 && r < h && c < w && values[r * w + c] > 0;
  context.beginPath();
  for (let r = 0; r < h; r++) {
    for (let c = 0; c < w; c++) {
      if (!inside(r, c)) continue;
      const [left, top, right, bottom] = [x + c * dx, y + r * dy, x + (c + 1) * dx, y + (r + 1) * dy];
      if (!inside(r - 1, c)) line(context, left, top, right, top);
      if (!inside(r + 1, c)) line(context, left, bottom, right, bottom);
      if (!inside(r, c - 1)) line(context, left, top, left, bottom);
      if (!inside(r, c + 1)) line(context, right, top, right, bottom);
    }
  }
  context.lineWidth = Math.max(1.5, width / 180);
  context.strokeStyle = "#ffd166";
  context.stroke();
}

function line(context, x1, y1, x2, y2) {
  context.moveTo(x1, y1);
  context.lineTo(x2, y2);
}

/** Frames around single patches. */
function frame(context, patches, [h, w], width, height, colour = "#ffffff") {
  context.lineWidth = Math.max(1.5, width / 220);
  for (const patch of patches) {
    const [left, top] = [((patch % w) * width) / w, (Math.floor(patch / w) * height) / h];
    context.strokeStyle = "rgb(10 12 22 / 0.9)";
    context.strokeRect(left - 0.5, top - 0.5, width / w + 1, height / h + 1);
    context.strokeStyle = colour;
    context.strokeRect(left + 1, top + 1, width / w - 2, height / h - 2);
  }
}

/** The point: a ring that can be seen on anything. */
function ring(context, x, y, radius, colour = "#ffffff") {
  context.beginPath();
  context.arc(x, y, radius, 0, 2 * Math.PI);
  context.lineWidth = radius * 0.62;
  context.strokeStyle = "rgb(10 12 22 / 0.85)";
  context.stroke();
  context.lineWidth = radius * 0.3;
  context.strokeStyle = colour;
  context.stroke();
}
