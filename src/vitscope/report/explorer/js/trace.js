// One image seen by one model: attention and tokens of every block, and what follows from them, computed once.

class Trace {
  /** attention: (L, H, T, T), means: (L, T, T), tokens: (L, T, D) arrays; scale: of each layer's tokens, or nothing. */
  constructor(model, { attention, means, tokens, scale }) {
    Object.assign(this, { model, attention, means, tokens, scale: scale ? floats(scale) : null });
    const { grid, prefix, hasCls, depth, heads } = models[model];
    Object.assign(this, { grid, prefix, hasCls, depth, heads });
    this.count = grid[0] * grid[1];
    this.size = prefix + this.count;
    this.rows = 4 * Math.ceil(this.size / 4);
    this.width = tokens.shape[2];
    this.units = new Array(depth); // patches scaled to length 1, (N, D) each
    this.lengths = new Array(depth); // and how long they were
    this.matrices = new Array(depth); // attention averaged over heads
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

  /** All of them, unpacked once, and rows of zeros until their number is a multiple of four: (rows, T). */
  meanMatrix(layer) {
    if (!this.matrices[layer]) {
      const matrix = new Float32Array(this.rows * this.size);
      for (let token = 0; token < this.size; token++) matrix.set(this.meanRow(layer, token), token * this.size);
      this.matrices[layer] = matrix;
    }
    return this.matrices[layer];
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
    let row = new Float64Array(this.rows);
    if (token === null) row.fill(1 / this.count, this.prefix, this.size);
    else row[token] = 1;
    for (let at = layer; at >= 0; at--) {
      const next = times(row, this.meanMatrix(at), this.size);
      for (let d = 0; d < this.size; d++) next[d] = 0.5 * (next[d] + row[d]);
      row = next;
    }
    return Float32Array.from(row.subarray(0, this.size));
  }
}

/** row (rows,) times matrix (rows, size). Four rows at a time: each sum is fetched and stored a quarter as often. */
function times(row, matrix, size) {
  const sum = new Float64Array(row.length);
  for (let s = 0; s < row.length; s += 4) {
    const [a, b, c, d] = [row[s], row[s + 1], row[s + 2], row[s + 3]];
    if (a === 0 && b === 0 && c === 0 && d === 0) continue;
    const [second, third, fourth] = [(s + 1) * size, (s + 2) * size, (s + 3) * size];
    for (let i = 0, first = s * size; i < size; i++) {
      sum[i] += a * matrix[first + i] + b * matrix[second + i] + c * matrix[third + i] + d * matrix[fourth + i];
    }
  }
  return sum;
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
