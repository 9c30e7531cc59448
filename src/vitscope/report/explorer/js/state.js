// What is looked at: everything that a link restores. Layers and heads are 0-based here and 1-based for people.

const boot = JSON.parse(find("#explorer").textContent);
const { models } = boot;
const MOST_MODELS = 4;

const state = {
  image: "",
  second: "",
  models: [], // which are side by side
  focus: 0, // the one whose heads are shown
  view: "cls",
  layer: 0,
  head: "mean", // "mean", "rollout", or a number
  point: [0.5, 0.5], // across and down, from 0 to 1
  mass: 0.6,
  every: false, // every view of one model instead of one view of every model
  over: true, // maps lie over the image
};

const depthShown = () => Math.max(...state.models.map((model) => models[model].depth));
const headsShown = () => Math.max(...state.models.map((model) => models[model].heads));
const layerOf = (model) => Math.min(state.layer, models[model].depth - 1);
const headOf = (model) => (Number.isInteger(state.head) ? Math.min(state.head, models[model].heads - 1) : state.head);

/** The patch of a model's grid that a point lies in. */
function patchAt(model, [across, down]) {
  const [h, w] = models[model].grid;
  const row = Math.min(h - 1, Math.max(0, Math.floor(down * h)));
  return row * w + Math.min(w - 1, Math.max(0, Math.floor(across * w)));
}

/** The middle of a patch, as a point. */
function middleOf(model, patch) {
  const [h, w] = models[model].grid;
  return [((patch % w) + 0.5) / w, (Math.floor(patch / w) + 0.5) / h];
}

function toHash() {
  const parts = {
    i: state.image,
    j: state.second,
    m: state.models.map((model) => encodeURIComponent(models[model].name)).join("+"),
    f: models[state.focus].name,
    v: state.view,
    l: state.layer + 1,
    h: Number.isInteger(state.head) ? state.head + 1 : state.head,
    p: state.point.map((value) => Number(value.toFixed(4))).join(","),
    k: state.mass,
    e: state.every ? 1 : 0,
    o: state.over ? 1 : 0,
  };
  return `#${new URLSearchParams(parts)}`;
}

/** What a hash says, as far as it makes sense: links come from strangers. */
function fromHash(hash) {
  const said = new URLSearchParams(hash.replace(/^#/, ""));
  const found = {};
  const named = (name) => models.findIndex((model) => model.name === name);
  const between = (text, low, high) => {
    const value = Number(text);
    return text && Number.isFinite(value) ? Math.min(high, Math.max(low, value)) : null;
  };
  if (/^[gmuf][0-9a-f]{1,32}$/.test(said.get("i") ?? "")) found.image = said.get("i");
  if (/^([gmuf][0-9a-f]{1,32})?$/.test(said.get("j") ?? "-")) found.second = said.get("j");
  const chosen = (said.get("m") ?? "").split("+").map((part) => named(safely(part)));
  const known = [...new Set(chosen.filter((model) => model >= 0))].slice(0, MOST_MODELS);
  if (known.length) found.models = known;
  if (named(said.get("f")) >= 0) found.focus = named(said.get("f"));
  if (VIEWS.some((view) => view.key === said.get("v"))) found.view = said.get("v");
  const layer = between(said.get("l"), 1, 1000);
  if (layer !== null) found.layer = Math.round(layer) - 1;
  const head = said.get("h");
  if (head === "mean" || head === "rollout") found.head = head;
  else if (between(head, 1, 1000) !== null) found.head = Math.round(between(head, 1, 1000)) - 1;
  const point = (said.get("p") ?? "").split(",").map((part) => between(part, 0, 1));
  if (point.length === 2 && !point.includes(null)) found.point = point;
  if (between(said.get("k"), 0.05, 1) !== null) found.mass = between(said.get("k"), 0.05, 1);
  if (said.has("e")) found.every = said.get("e") === "1";
  if (said.has("o")) found.over = said.get("o") === "1";
  return found;
}

function safely(part) {
  try {
    return decodeURIComponent(part);
  } catch {
    return "";
  }
}
