// Principal components of patch tokens, as colours. Done beside the page (`aside.js`).

const MOST_ROUNDS = 100;

/** Rows (n, width) scaled to length 1, minus their mean. */
function centredUnits(rows, n, width) {
  const out = new Float32Array(rows);
  const mean = new Float64Array(width);
  for (let i = 0, start = 0; i < n; i++, start += width) {
    let square = 0;
    for (let k = start; k < start + width; k++) square += out[k] * out[k];
    const factor = square > 0 ? 1 / Math.sqrt(square) : 0;
    for (let k = 0; k < width; k++) mean[k] += (out[start + k] *= factor) / n;
  }
  for (let i = 0, start = 0; i < n; i++, start += width) for (let k = 0; k < width; k++) out[start + k] -= mean[k];
  return out;
}

function transposed(rows, n, width) {
  const out = new Float32Array(rows.length);
  for (let i = 0; i < n; i++) for (let k = 0; k < width; k++) out[k * n + i] = rows[i * width + k];
  return out;
}

/**
 * The first principal components of centred rows (n, width): coordinates, n x wanted. Eigenvectors of the smaller of the
 * two product matrices, by orthogonal iteration with a few more vectors than are wanted, until they stay where they
 * are. Signs are fixed: the largest coordinate of each component is positive.
 */
function principalComponents(rows, n, width, wanted = 3) {
  const narrow = width < n;
  const [sides, m, length] = narrow ? [transposed(rows, n, width), width, n] : [rows, n, width];
  const zeros = new Float32Array(m);
  const matrix = linear(sides, sides, zeros, m, length, m); // symmetric: products of all pairs
  const size = Math.min(m, wanted + 7);
  const times = (vectors) => linear(vectors, matrix, zeros, size, m, m);
  let basis = Float32Array.from({ length: size * m }, (_, i) => Math.sin(1 + ((i % m) + 1) * (Math.floor(i / m) + 1) * 0.7548776662));
  let found = null;
  for (let round = 1; round <= MOST_ROUNDS; round++) {
    basis = orthonormal(times(basis), size, m);
    if (round % 8 !== 0) continue;
    const before = found;
    found = rotated(basis, times(basis), size, m);
    const stays = (c) => Math.abs(dot(before.vectors[c], found.vectors[c])) > 1 - 1e-6;
    if (before && before.vectors.slice(0, wanted).every((_, c) => stays(c))) break;
  }
  const coordinates = new Float32Array(n * wanted);
  for (let c = 0; c < Math.min(wanted, size); c++) {
    const vector = found.vectors[c];
    const factor = Math.sqrt(Math.max(0, found.values[c]));
    const at = narrow ? (i) => dot(vector, rows.subarray(i * width, (i + 1) * width)) : (i) => vector[i] * factor;
    let peak = 0;
    for (let i = 0; i < n; i++) {
      coordinates[i * wanted + c] = at(i);
      if (Math.abs(coordinates[i * wanted + c]) > Math.abs(coordinates[peak * wanted + c])) peak = i;
    }
    if (coordinates[peak * wanted + c] < 0) for (let i = 0; i < n; i++) coordinates[i * wanted + c] *= -1;
  }
  return coordinates;
}

/** Tokens (n, width) as colours (n x 3, 0..1): components between their 2nd and 98th percentile. */
function componentColours(tokens, width) {
  const n = tokens.length / width;
  const colours = principalComponents(centredUnits(tokens, n, width), n, width);
  for (let c = 0; c < 3; c++) {
    const sorted = Float32Array.from({ length: n }, (_, i) => colours[3 * i + c]).sort();
    const [low, high] = [sorted[Math.floor(0.02 * (n - 1))], sorted[Math.ceil(0.98 * (n - 1))]];
    for (let i = 0; i < n; i++) {
      const share = high > low ? (colours[3 * i + c] - low) / (high - low) : 0.5;
      colours[3 * i + c] = Math.min(1, Math.max(0, share));
    }
  }
  return colours;
}

function dot(a, b) {
  let sum = 0;
  for (let i = 0; i < a.length; i++) sum += a[i] * b[i];
  return sum;
}

/** Gram-Schmidt of vectors (size, m), twice, which is enough; what vanishes becomes zero. */
function orthonormal(vectors, size, m) {
  for (let v = 0; v < size; v++) {
    const vector = vectors.subarray(v * m, (v + 1) * m);
    const largest = vector.reduce((top, value) => Math.max(top, Math.abs(value)), 0);
    for (let twice = 0; twice < 2; twice++) {
      for (let o = 0; o < v; o++) {
        const other = vectors.subarray(o * m, (o + 1) * m);
        const share = dot(vector, other);
        for (let i = 0; i < m; i++) vector[i] -= share * other[i];
      }
    }
    const length = Math.sqrt(dot(vector, vector));
    for (let i = 0; i < m; i++) vector[i] = length > 1e-6 * largest ? vector[i] / length : 0;
  }
  return vectors;
}

/** Eigenvectors within the space of a basis (size, m), largest first; images: the basis times the matrix. By Jacobi. */
function rotated(basis, images, size, m) {
  const part = (vectors, v) => vectors.subarray(v * m, (v + 1) * m);
  const all = Array.from({ length: size }, (_, i) => i);
  const small = all.map((i) => all.map((j) => dot(part(basis, i), part(images, j))));
  const turn = all.map((i) => all.map((j) => Number(i === j)));
  for (let sweep = 0; sweep < 12; sweep++) {
    for (let p = 0; p < size; p++) {
      for (let q = p + 1; q < size; q++) {
        const angle = 0.5 * Math.atan2(small[p][q] + small[q][p], small[p][p] - small[q][q]);
        const [c, s] = [Math.cos(angle), Math.sin(angle)];
        for (let k = 0; k < size; k++) {
          [small[k][p], small[k][q]] = [c * small[k][p] + s * small[k][q], c * small[k][q] - s * small[k][p]];
        }
        for (let k = 0; k < size; k++) {
          [small[p][k], small[q][k]] = [c * small[p][k] + s * small[q][k], c * small[q][k] - s * small[p][k]];
          [turn[k][p], turn[k][q]] = [c * turn[k][p] + s * turn[k][q], c * turn[k][q] - s * turn[k][p]];
        }
      }
    }
  }
  const order = [...all].sort((a, b) => small[b][b] - small[a][a]);
  return {
    values: order.map((i) => small[i][i]),
    vectors: order.map((i) => {
      const vector = new Float64Array(m);
      for (const k of all) for (let row = 0; row < m; row++) vector[row] += basis[k * m + row] * turn[k][i];
      return vector;
    }),
  };
}
