// The mark of each model, in charts and in text.

const SHAPES = {
  circle: "M4.4 0A4.4 4.4 0 1 1-4.4 0A4.4 4.4 0 1 1 4.4 0Z",
  square: "M-4-4H4V4H-4Z",
  "triangle-up": "M0-4.8L5 4H-5Z",
  "triangle-down": "M0 4.8L5-4H-5Z",
  "triangle-right": "M4.8 0L-4 5V-5Z",
  "triangle-left": "M-4.8 0L4 5V-5Z",
  hexagon: "M0-5L4.3-2.5V2.5L0 5L-4.3 2.5V-2.5Z",
  octagon: "M-1.9-4.6H1.9L4.6-1.9V1.9L1.9 4.6H-1.9L-4.6 1.9V-1.9Z",
  star: "M0-5.6L1.5-2L5.4-1.7L2.4.8L3.4 4.6L0 2.5L-3.4 4.6L-2.4.8L-5.4-1.7L-1.5-2Z",
  chevron: "M-4-5H.4L5 0L.4 5H-4L0 0Z",
  "thin-diamond": "M0-5.6L3.2 0L0 5.6L-3.2 0Z",
  diamond: "M0-5.4L5.4 0L0 5.4L-5.4 0Z",
  cross: "M-1.8-5H1.8V-1.8H5V1.8H1.8V5H-1.8V1.8H-5V-1.8H-1.8Z",
  stroke: "M-5-3.2L-3.2-5L0-1.8L3.2-5L5-3.2L1.8 0L5 3.2L3.2 5L0 1.8L-3.2 5L-5 3.2L-1.8 0Z",
};

/** Class of everything that is drawn for a model. */
const modelClass = (model) => `m-${model}${models[model].filled ? "" : " hollow"}`;

/** A mark inside text. */
function modelMark(model) {
  const shape = svg("path", { d: SHAPES[models[model].shape] });
  return svg("svg", { class: `mark ${modelClass(model)}`, viewBox: "-6 -6 12 12", "aria-hidden": "true" }, shape);
}

/** A mark inside a chart. */
function chartMark(model, x, y, size = 1) {
  const transform = `translate(${x.toFixed(1)} ${y.toFixed(1)}) scale(${size})`;
  return svg("path", { class: "symbol", d: SHAPES[models[model].shape], transform });
}

/** Title of a model beside its mark. */
const modelTitle = (model) => {
  const parts = models[model].title.split(/(?<=_)/); // a long architecture's name may break after these
  return [modelMark(model), html("span", {}, ...parts.flatMap((part, i) => (i ? [html("wbr"), part] : [part])))];
};
