// One image seen by one model: attention and tokens of every block, and what follows from them, computed once.

class Trace {
  /** attention: (L, H, T, T), means: (L, T, T), tokens: (L, T, D) arrays; scale: of each layer's tokens, or nothing. */
  constructor(model, { attention, means, tokens, scale }) {
    Object.assign(this, { model, attention, means, tokens, scale: scale ? floats(scale) : null });
    const { grid, prefix, hasCls, depth, heads } = models[model];
    Object.assign(this, { grid, prefix, hasCls, depth, heads });
    this.count = grid[0] * grid[1];
    this.size = prefix + this.count;
    this.width = tokens.shape[2];
    this.units = new Array(depth); // patches scaled to length 1, (N, D) each
    this.lengths = new Array(depth); // and how long they were
    this.spatial = new Map(); // mean attention of all patches, by layer and head
    this.colours = new Map(); // by layer and second image: principal components as colours
  }

  /** Attention of a token: what it looks at, (T,). */
  row(layer, head, token) {
    return floats(this.attention, ((layer * this.heads + head) * this.size + token) * this.size, this.size);
  }

  /** The same, averaged over heads. */
  meanRow(layer, token) {
    return floats(this.means, (layer * this.size + token) * this.size, this.size);
  }

  /** Add a mean row, times a weight, to a sum (T,). */
  addMeanRow(layer, token, weight, sum) {
    const { data, dtype } = this.means;
    const start = (layer * this.size + token) * this.size;
    if (dtype === "F16") for (let i = 0; i < sum.length; i++) sum[i] += weight * HALF[data[start + i]];
    else for (let i = 0; i < sum.length; i++) sum[i] += weight * data[start + i];
  }

  /** Attention averaged over all patches that look, (T,); head: a number or "mean". */
  spatialRow(layer, head) {
    const key = `${layer} ${head}`;
    if (!this.spatial.has(key)) {
      const sum = new Float32Array(this.size);
      for (let token = this.prefix; token < this.size; token++) {
        const row = head === "mean" ? this.meanRow(layer, token) : this.row(layer, head, token);
        for (let i = 0; i < sum.length; i++) sum[i] += row[i] / this.count;
      }
      this.spatial.set(key, sum);
    }
    return this.spatial.get(key);
  }

  /** Patch tokens of a layer scaled to length 1, (N, D). */
  patches(layer) {
    if (!this.units[layer]) {
      const start = (layer * this.size + this.prefix) * this.width;
      const unit = new Float32Array(floats(this.tokens, start, this.count * this.width));
      const lengths = new Float32Array(this.count);
      for (let i = 0; i < this.count; i++) {
        let square = 0;
        for (let k = i * this.width; k < (i + 1) * this.width; k++) square += unit[k] * unit[k];
        const length = Math.sqrt(square);
        lengths[i] = length * (this.scale ? this.scale[layer] : 1);
        if (length > 0) for (let k = i * this.width; k < (i + 1) * this.width; k++) unit[k] /= length;
      }
      this.units[layer] = unit;
      this.lengths[layer] = lengths;
    }
    return this.units[layer];
  }

  /** How long the patch tokens of a layer are, (N,). */
  norms(layer) {
    this.patches(layer);
    return this.lengths[layer];
  }

  /** How much of the input a token sees through all layers up to one: the product of (A + I) / 2, heads averaged. */
  rollout(layer, token) {
    let row = new Float32Array(this.size);
    if (token === null) row.fill(1 / this.count, this.prefix);
    else row[token] = 1;
    for (let at = layer; at >= 0; at--) {
      const next = new Float32Array(this.size);
      for (let s = 0; s < this.size; s++) if (row[s] !== 0) this.addMeanRow(at, s, row[s], next);
      for (let d = 0; d < this.size; d++) next[d] = 0.5 * (next[d] + row[d]);
      row = next;
    }
    return row;
  }
}

/**
 * A trace of a frozen page: heads are kept for some sources only, in 8 bits on a square-root scale; their mean for all.
 * heads: (L, H, S, T), means: (L, T, T), bytes; headTops, meanTops: the largest value of each row; sources: (S,) tokens.
 */
class FrozenTrace extends Trace {
  constructor(model, arrays) {
    const tokens = { dtype: "F32", shape: arrays.tokens.shape, data: dequantised(arrays.tokens, arrays.scales) };
    super(model, { attention: null, means: null, tokens });
    this.kept = arrays;
    this.nearest = this.nearestSources(arrays.sources.data);
    this.given = arrays.norms ? arrays.norms : null;
  }

  norms(layer) {
    return floats(this.given, layer * this.count, this.count);
  }

  /** For every token the position in `sources` of the nearest one that was kept. */
  nearestSources(sources) {
    const [, w] = this.grid;
    const place = (token) => [Math.floor((token - this.prefix) / w), (token - this.prefix) % w];
    return Array.from({ length: this.size }, (_, token) => {
      const exact = sources.indexOf(token);
      if (exact >= 0 || token < this.prefix) return Math.max(0, exact);
      let best = [0, Infinity];
      sources.forEach((source, i) => {
        if (source < this.prefix) return;
        const [[a, b], [c, d]] = [place(token), place(source)];
        const distance = (a - c) ** 2 + (b - d) ** 2;
        if (distance < best[1]) best = [i, distance];
      });
      return best[0];
    });
  }

  row(layer, head, token) {
    const { heads, headTops, sources } = this.kept;
    return this.roots(heads.data, headTops, (layer * this.heads + head) * sources.data.length + this.nearest[token]);
  }

  meanRow(layer, token) {
    return this.roots(this.kept.means.data, this.kept.meanTops, layer * this.size + token);
  }

  addMeanRow(layer, token, weight, sum) {
    const { means, meanTops } = this.kept;
    const index = layer * this.size + token;
    const factor = (weight * floats(meanTops, index, 1)[0]) / 255 ** 2;
    for (let i = 0, at = index * this.size; i < sum.length; i++, at++) sum[i] += factor * means.data[at] * means.data[at];
  }

  roots(bytes, tops, index) {
    const top = floats(tops, index, 1)[0];
    const out = new Float32Array(this.size);
    for (let i = 0; i < this.size; i++) out[i] = (bytes[index * this.size + i] / 255) ** 2 * top;
    return out;
  }
}

/** Signed bytes times the scale of their row, as float32; scales: one per row of the last axis. */
function dequantised({ shape, data }, scales) {
  const row = shape.at(-1);
  const factors = floats(scales);
  const out = new Float32Array(data.length);
  for (let i = 0; i < data.length; i++) out[i] = data[i] * factors[Math.floor(i / row)];
  return out;
}
