// A Vision Transformer's forward pass: pre-norm blocks, learned positions, and rotary ones where the network has them.

/** out (n, outs) = x (n, ins) times weight (outs, ins) transposed, plus bias; four rows at a time stay in registers. */
function linear(x, weight, bias, n, ins, outs) {
  const out = new Float32Array(n * outs);
  let i = 0;
  for (; i + 3 < n; i += 4) {
    const a = i * ins;
    const b = a + ins;
    const c = b + ins;
    const d = c + ins;
    for (let o = 0; o < outs; o++) {
      const start = o * ins;
      let s0 = bias[o];
      let s1 = s0;
      let s2 = s0;
      let s3 = s0;
      for (let k = 0; k < ins; k++) {
        const w = weight[start + k];
        s0 += x[a + k] * w;
        s1 += x[b + k] * w;
        s2 += x[c + k] * w;
        s3 += x[d + k] * w;
      }
      out[i * outs + o] = s0;
      out[(i + 1) * outs + o] = s1;
      out[(i + 2) * outs + o] = s2;
      out[(i + 3) * outs + o] = s3;
    }
  }
  for (; i < n; i++) {
    for (let o = 0; o < outs; o++) {
      let sum = bias[o];
      for (let k = 0; k < ins; k++) sum += x[i * ins + k] * weight[o * ins + k];
      out[i * outs + o] = sum;
    }
  }
  return out;
}

function layerNorm(x, weight, bias, n, width, eps) {
  const out = new Float32Array(n * width);
  for (let i = 0; i < n; i++) {
    const start = i * width;
    let mean = 0;
    for (let k = 0; k < width; k++) mean += x[start + k];
    mean /= width;
    let variance = 0;
    for (let k = 0; k < width; k++) variance += (x[start + k] - mean) ** 2;
    const factor = 1 / Math.sqrt(variance / width + eps);
    for (let k = 0; k < width; k++) out[start + k] = (x[start + k] - mean) * factor * weight[k] + bias[k];
  }
  return out;
}

const ERFC = [
  -1.26551223, 1.00002368, 0.37409196, 0.09678418, -0.18628806, 0.27886807, -1.13520398, 1.48851587, -0.82215223,
  0.17087277,
];
/** The error function by a Chebyshev fit (Numerical Recipes, erfcc): wrong by less than 1.2e-7 everywhere. */
function erf(x) {
  const t = 1 / (1 + 0.5 * Math.abs(x));
  let sum = 0;
  for (let i = ERFC.length - 1; i >= 0; i--) sum = sum * t + ERFC[i];
  const rest = t * Math.exp(-x * x + sum);
  return x >= 0 ? 1 - rest : rest - 1;
}

function gelu(x) {
  for (let i = 0; i < x.length; i++) x[i] = 0.5 * x[i] * (1 + erf(x[i] * Math.SQRT1_2));
  return x;
}

/** Turn the pairs of queries or keys of the patches by their place. x: (T, 3 D) of one block's qkv; at: 0 or D. */
function rotate(x, rope, at, { tokens, prefix, width, heads }) {
  const head = width / heads;
  for (let t = prefix; t < tokens; t++) {
    const angles = (t - prefix) * 2 * head; // sines, then cosines
    for (let start = t * 3 * width + at; start < t * 3 * width + at + width; start += head) {
      for (let k = 0; k < head; k += 2) {
        const [even, odd] = [x[start + k], x[start + k + 1]];
        x[start + k] = even * rope[angles + head + k] - odd * rope[angles + k];
        x[start + k + 1] = odd * rope[angles + head + k + 1] + even * rope[angles + k + 1];
      }
    }
  }
}

/** Attention of one block: probabilities go to `kept` (H, T, T); returns what the heads read, (T, D). */
function attend(qkv, kept, { tokens, width, heads }) {
  const head = width / heads;
  const scale = 1 / Math.sqrt(head);
  const out = new Float32Array(tokens * width);
  for (let h = 0; h < heads; h++) {
    for (let s = 0; s < tokens; s++) {
      const query = s * 3 * width + h * head;
      const row = (h * tokens + s) * tokens;
      let top = -Infinity;
      for (let d = 0; d < tokens; d++) {
        const key = d * 3 * width + width + h * head;
        let sum = 0;
        for (let k = 0; k < head; k++) sum += qkv[query + k] * qkv[key + k];
        sum *= scale;
        kept[row + d] = sum;
        if (sum > top) top = sum;
      }
      let total = 0;
      for (let d = 0; d < tokens; d++) total += kept[row + d] = Math.exp(kept[row + d] - top);
      const place = s * width + h * head;
      for (let d = 0; d < tokens; d++) {
        const share = (kept[row + d] /= total);
        const value = d * 3 * width + 2 * width + h * head;
        for (let k = 0; k < head; k++) out[place + k] += share * qkv[value + k];
      }
    }
  }
  return out;
}

/** Patches of an image: pixels (h, w, 4) bytes, normalised, flattened as the first convolution reads them. */
function patchRows(pixels, { size, patch, mean, std }) {
  const [height, width] = size;
  const [ph, pw] = patch;
  const [rows, columns] = [height / ph, width / pw];
  const out = new Float32Array(rows * columns * 3 * ph * pw);
  let at = 0;
  for (let r = 0; r < rows; r++) {
    for (let c = 0; c < columns; c++) {
      for (let channel = 0; channel < 3; channel++) {
        for (let y = 0; y < ph; y++) {
          for (let x = 0; x < pw; x++) {
            const value = pixels[4 * ((r * ph + y) * width + c * pw + x) + channel];
            out[at++] = (value / 255 - mean[channel]) / std[channel];
          }
        }
      }
    }
  }
  return out;
}

/** Attention (L, H, T, T) averaged over heads: (L, T, T). */
function headMeans(attention, depth, heads, tokens) {
  const size = tokens * tokens;
  const out = new Float32Array(depth * size);
  for (let layer = 0; layer < depth; layer++) {
    for (let head = 0; head < heads; head++) {
      const start = (layer * heads + head) * size;
      for (let i = 0; i < size; i++) out[layer * size + i] += attention[start + i] / heads;
    }
  }
  return out;
}

/**
 * Everything a network makes of an image. network: {weights: {name: Float32Array}, depth, width, heads, hidden, eps,
 * size, patch, mean, std}. pause: awaited before every block. Returns attention (L, H, T, T), its means over heads
 * (L, T, T) and tokens (L, T, D).
 */
async function forward(network, pixels, pause) {
  const { weights, depth, width, heads, hidden, eps } = network;
  const patches = patchRows(pixels, network);
  const length = 3 * network.patch[0] * network.patch[1];
  const count = patches.length / length;
  const prefix = weights["prefix"].length / width;
  const shape = { tokens: prefix + count, prefix, width, heads };
  const n = shape.tokens;
  let x = new Float32Array(n * width);
  x.set(weights["prefix"]);
  x.set(linear(patches, weights["patch.weight"], weights["patch.bias"], count, length, width), prefix * width);
  for (let i = 0; i < x.length; i++) x[i] += weights["positions"][i];
  const attention = new Float32Array(depth * heads * n * n);
  const tokens = new Float32Array(depth * n * width);
  for (let layer = 0; layer < depth; layer++) {
    await pause();
    const of = (name) => weights[`${layer}.${name}`];
    const normed = layerNorm(x, of("norm1.weight"), of("norm1.bias"), n, width, eps);
    const qkv = linear(normed, of("qkv.weight"), of("qkv.bias"), n, width, 3 * width);
    if (weights["rope"]) for (const at of [0, width]) rotate(qkv, weights["rope"], at, shape);
    const kept = attention.subarray(layer * heads * n * n, (layer + 1) * heads * n * n);
    const read = attend(qkv, kept, shape);
    const written = linear(read, of("proj.weight"), of("proj.bias"), n, width, width);
    for (let i = 0; i < x.length; i++) x[i] += written[i];
    const again = layerNorm(x, of("norm2.weight"), of("norm2.bias"), n, width, eps);
    const inner = gelu(linear(again, of("fc1.weight"), of("fc1.bias"), n, width, hidden));
    const added = linear(inner, of("fc2.weight"), of("fc2.bias"), n, hidden, width);
    for (let i = 0; i < x.length; i++) x[i] += added[i];
    tokens.set(x, layer * n * width);
  }
  return {
    attention: { dtype: "F32", shape: [depth, heads, n, n], data: attention },
    means: { dtype: "F32", shape: [depth, n, n], data: headMeans(attention, depth, heads, n) },
    tokens: { dtype: "F32", shape: [depth, n, width], data: tokens },
  };
}
