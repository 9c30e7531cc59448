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

/** Products of all pairs of rows (n, width): (n, n). */
function productsOfRows(rows, n, width) {
  const out = new Float64Array(n * n);
  for (let i = 0; i < n; i++) {
    for (let j = 0; j <= i; j++) {
      let sum = 0;
      for (let k = 0, a = i * width, b = j * width; k < width; k++, a++, b++) sum += rows[a] * rows[b];
      out[i * n + j] = out[j * n + i] = sum;
    }
  }
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
  const [columns, m] = narrow ? [transposed(rows, n, width), width] : [rows, n];
  const matrix = productsOfRows(columns, m, narrow ? n : width);
  const size = Math.min(m, wanted + 7);
  let basis = Array.from({ length: size }, (_, v) =>
    Float64Array.from({ length: m }, (_, i) => Math.sin(1 + (i + 1) * (v + 1) * 0.7548776662)),
  );
  let found = { values: [], vectors: [] };
  for (let round = 1; round <= MOST_ROUNDS; round++) {
    basis = orthonormal(basis.map((vector) => times(matrix, vector, m)));
    if (round % 10 !== 0) continue;
    const before = found.vectors;
    found = rotated(matrix, basis, m);
    const stays = (c) => before[c] && Math.abs(dot(before[c], found.vectors[c])) > 1 - 1e-7;
    if (Array.from({ length: Math.min(wanted, size) }, (_, c) => c).every(stays)) break;
  }
  const coordinates = new Float32Array(n * wanted);
  for (let c = 0; c < Math.min(wanted, size); c++) {
    const vector = found.vectors[c];
    const length = Math.sqrt(Math.max(0, found.values[c]));
    const at = narrow
      ? (i) => dot(vector, rows.subarray(i * width, (i + 1) * width))
      : (i) => vector[i] * length;
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

function times(matrix, vector, n) {
  const out = new Float64Array(n);
  for (let i = 0; i < n; i++) {
    let sum = 0;
    for (let j = 0, k = i * n; j < n; j++, k++) sum += matrix[k] * vector[j];
    out[i] = sum;
  }
  return out;
}

function dot(a, b) {
  let sum = 0;
  for (let i = 0; i < a.length; i++) sum += a[i] * b[i];
  return sum;
}

/** Gram-Schmidt, twice, which is enough; what vanishes becomes zero. */
function orthonormal(vectors) {
  const done = [];
  for (const vector of vectors) {
    for (let twice = 0; twice < 2; twice++) {
      for (const other of done) {
        const share = dot(vector, other);
        for (let i = 0; i < vector.length; i++) vector[i] -= share * other[i];
      }
    }
    const length = Math.sqrt(dot(vector, vector));
    for (let i = 0; i < vector.length; i++) vector[i] = length > 1e-12 ? vector[i] / length : 0;
    done.push(vector);
  }
  return done;
}

/** Eigenvectors within the space of a basis, largest eigenvalue first: Jacobi rotations of the small matrix. */
function rotated(matrix, basis, n) {
  const size = basis.length;
  const images = basis.map((vector) => times(matrix, vector, n));
  const small = basis.map((a) => images.map((b) => dot(a, b)));
  const turn = basis.map((_, i) => basis.map((_, j) => Number(i === j)));
  for (let sweep = 0; sweep < 24; sweep++) {
    for (let p = 0; p < size; p++) {
      for (let q = p + 1; q < size; q++) {
        if (Math.abs(small[p][q]) < 1e-14) continue;
        const angle = 0.5 * Math.atan2(2 * small[p][q], small[p][p] - small[q][q]);
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
  const order = basis.map((_, i) => i).sort((a, b) => small[b][b] - small[a][a]);
  return {
    values: order.map((i) => small[i][i]),
    vectors: order.map((i) =>
      Float64Array.from({ length: n }, (_, row) => basis.reduce((sum, b, k) => sum + b[row] * turn[k][i], 0)),
    ),
  };
}
