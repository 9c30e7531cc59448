// The views: what is drawn for a model, as numbers. One value per patch, row by row.

const VIEWS = [
  { key: "cls", heat: true, title: "CLS attention", heads: true, says: "where CLS looks" },
  { key: "point", heat: true, title: "Point attention", heads: true, point: true, says: "where the patch under the point looks" },
  { key: "similar", heat: true, title: "Similarity", point: true, says: "cosine similarity of each patch to the one under the point" },
  { key: "pca", title: "PCA colours", says: "the first three principal components of the patches as red, green and blue" },
  { key: "norms", heat: true, title: "Token norms", says: "how long each patch token is; outliers are framed" },
  { key: "mask", title: "Saliency mask", heads: true, mass: true, says: "the fewest patches that hold the chosen share of CLS attention" },
  ...(boot.classes?.length
    ? [{ key: "segments", title: "Segmentation", says: "what each patch is, by a vote of the nearest labelled patches" }]
    : []),
];
const viewOf = (key) => VIEWS.find((view) => view.key === key);

/** Attention on the patches, (N,). token: who looks; null for CLS, or for all patches where there is none. */
function attentionMap(trace, layer, head, token) {
  const from = token ?? (trace.hasCls ? 0 : null);
  let row;
  if (head === "rollout") row = trace.rollout(layer, from);
  else if (from === null) row = trace.spatialRow(layer, head);
  else row = head === "mean" ? trace.meanRow(layer, from) : trace.row(layer, head, from);
  return row.subarray(trace.prefix);
}

/** Cosine similarity of one patch with all patches of a trace (its own, or another image's), (N,). */
function similarityMap(trace, layer, patch, other = trace) {
  const { width } = trace;
  const mine = trace.patches(layer).subarray(patch * width, (patch + 1) * width);
  const theirs = other.patches(layer);
  const out = new Float32Array(other.count);
  for (let i = 0; i < other.count; i++) {
    let sum = 0;
    for (let k = 0, at = i * width; k < width; k++, at++) sum += mine[k] * theirs[at];
    out[i] = sum;
  }
  return out;
}

/** The smallest set of top patches that holds at least `mass` of a map, the crossing one kept: 1 inside, 0 outside. */
function massMask(values, mass) {
  const order = Array.from(values.keys()).sort((a, b) => values[b] - values[a]);
  const total = values.reduce((sum, value) => sum + value, 0);
  const mask = new Float32Array(values.length);
  let before = 0;
  for (const patch of order) {
    if (!(total > 0) || before >= mass * total) break;
    mask[patch] = 1;
    before += values[patch];
  }
  return mask;
}

const GAP = 1.5; // norms on both sides of a gap differ by half
/** Patches beyond the widest gap in the upper half of the sorted norms, if it is a gap at all. */
function outliers(norms) {
  const order = Array.from(norms.keys()).sort((a, b) => norms[a] - norms[b]);
  let [widest, cut] = [GAP, order.length];
  for (let i = Math.ceil(order.length / 2); i < order.length; i++) {
    const ratio = norms[order[i]] / norms[order[i - 1]];
    if (ratio > widest) [widest, cut] = [ratio, i];
  }
  return order.slice(cut);
}

/**
 * Colours (N x 3, 0..1) of the trace at a position of traces that share a colour space. They are computed once, beside
 * the page; null until they are there.
 */
function coloursOf(traces, layer, position) {
  const [first] = traces;
  const key = `${layer} ${traces[1]?.serial ?? ""}`;
  if (!first.colours.has(key)) {
    first.colours.set(key, null);
    const parts = traces.map((trace) => {
      const start = (layer * trace.size + trace.prefix) * trace.width;
      return { dtype: trace.tokens.dtype, data: trace.tokens.data.slice(start, start + trace.count * trace.width) };
    });
    const looked = () => traces.every((trace, i) => trace === traceOf(trace.model, i ? state.second : state.image));
    const urgency = () => (looked() ? Math.abs(layer - state.layer) : Infinity);
    aside("colours", { parts, width: first.width }, { urgency }).then(
      (found) => {
        first.colours.set(key, found);
        redraw();
      },
      (error) => {
        first.colours.delete(key);
        complain(error);
      },
    );
  }
  const start = 3 * traces.slice(0, position).reduce((sum, trace) => sum + trace.count, 0);
  return first.colours.get(key)?.subarray(start, start + 3 * traces[position].count) ?? null;
}

/**
 * What a view shows of a trace: {kind, values, low, high, framed}. kind: "heat" (values from low to high), "colours"
 * (N x 3), "mask" (0 or 1) or "labels" (0 background, else 1 + class). Nothing while it is not there yet.
 */
function shownMap(trace, view, layer, { head = state.head, second = null } = {}) {
  const own = Number.isInteger(head) ? Math.min(head, trace.heads - 1) : head;
  const patch = patchAt(trace.model, state.point);
  if (view === "cls") return heat(attentionMap(trace, layer, own, null));
  if (view === "point") return heat(attentionMap(trace, layer, own, trace.prefix + patch));
  if (view === "similar") {
    const values = similarityMap(trace, layer, patch);
    return { kind: "heat", values, low: values.reduce((a, b) => Math.min(a, b)), high: 1 };
  }
  if (view === "pca") {
    const traces = second ? [trace, second] : [trace];
    const values = coloursOf(traces, layer, 0);
    return values && { kind: "colours", values };
  }
  if (view === "norms") {
    const values = trace.norms(layer);
    const low = values.reduce((a, b) => Math.min(a, b));
    return { ...heat(values), low, framed: outliers(values) };
  }
  if (view === "mask") {
    const values = massMask(attentionMap(trace, layer, own, null), state.mass);
    return { kind: "mask", values, low: 0, high: 1 };
  }
  const labels = segmentation(trace, layer);
  return labels && { kind: "labels", values: labels };
}

/** From zero to nearly the largest value: the few strongest patches share the brightest colour, or nothing else shows. */
function heat(values) {
  const sorted = Float32Array.from(values).sort();
  const high = Math.max(sorted[Math.floor(0.985 * (sorted.length - 1))], 0.35 * sorted.at(-1), 1e-12);
  return { kind: "heat", values, low: 0, high };
}
