// One image seen by one model: attention and tokens of every block, and what follows from them, computed once.

class Trace {
  /** attention: (L, H, T, T), tokens: (L, T, D) arrays; scale: of each layer's tokens, or nothing. */
  constructor(model, { attention, tokens, scale }) {
    Object.assign(this, { model, attention, tokens, scale: scale ? floats(scale) : null });
    const { grid, prefix, hasCls, depth, heads } = models[model];
    Object.assign(this, { grid, prefix, hasCls, depth, heads });
    this.count = grid[0] * grid[1];
    this.size = prefix + this.count;
    this.width = tokens.shape[2];
    this.means = new Array(depth); // head means, (T, T) each
    this.units = new Array(depth); // patches scaled to length 1, (N, D) each
    this.lengths = new Array(depth); // and how long they were
    this.spatial = new Map(); // mean attention of all patches, by layer and head
  }

  /** Attention of a token: what it looks at, (T,). */
  row(layer, head, token) {
    const start = ((layer * this.heads + head) * this.size + token) * this.size;
    return floats(this.attention, start, this.size);
  }

  /** The same, averaged over heads. */
  meanRow(layer, token) {
    if (this.means[layer]) return this.means[layer].subarray(token * this.size, (token + 1) * this.size);
    const sum = new Float32Array(this.size);
    for (let head = 0; head < this.heads; head++) {
      const row = this.row(layer, head, token);
      for (let i = 0; i < sum.length; i++) sum[i] += row[i] / this.heads;
    }
    return sum;
  }

  /** Attention averaged over heads, (T, T). */
  meanMatrix(layer) {
    if (!this.means[layer]) {
      const size = this.size * this.size;
      const sum = new Float32Array(size);
      for (let head = 0; head < this.heads; head++) {
        const one = floats(this.attention, (layer * this.heads + head) * size, size);
        for (let i = 0; i < size; i++) sum[i] += one[i];
      }
      for (let i = 0; i < size; i++) sum[i] /= this.heads;
      this.means[layer] = sum;
    }
    return this.means[layer];
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
      const unit = Float32Array.from(floats(this.tokens, start, this.count * this.width));
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
      const matrix = this.meanMatrix(at);
      const next = new Float32Array(this.size);
      for (let s = 0; s < this.size; s++) {
        const weight = row[s];
        if (weight === 0) continue;
        for (let d = 0, k = s * this.size; d < this.size; d++, k++) next[d] += weight * matrix[k];
      }
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
    super(model, { attention: null, tokens });
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

  meanMatrix(layer) {
    if (!this.means[layer]) {
      const whole = new Float32Array(this.size * this.size);
      for (let token = 0; token < this.size; token++) whole.set(this.meanRow(layer, token), token * this.size);
      this.means[layer] = whole;
    }
    return this.means[layer];
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
