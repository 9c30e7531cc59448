// Principal components of patch tokens, for colours.

const ROUNDS = 16;

/**
 * The first three principal components of rows (n, width): coordinates, n x 3. Found on the n x n Gram matrix by
 * orthogonal iteration with a few more vectors than are wanted, which makes it converge quickly. Signs are fixed: the
 * largest coordinate of each component is positive. Pauses every few milliseconds: it is too much for one frame.
 */
function* principalComponents(rows, n, width, wanted = 3) {
  const centred = centredRows(rows, n, width);
  const gram = new Float64Array(n * n);
  for (let i = 0; i < n; i++) {
    const a = centred.subarray(i * width, (i + 1) * width);
    for (let j = 0; j <= i; j++) {
      const b = centred.subarray(j * width, (j + 1) * width);
      let sum = 0;
      for (let k = 0; k < width; k++) sum += a[k] * b[k];
      gram[i * n + j] = gram[j * n + i] = sum;
    }
    if (i % 16 === 15) yield;
  }
  const size = Math.min(n, wanted + 7);
  let basis = Array.from({ length: size }, (_, v) =>
    Float64Array.from({ length: n }, (_, i) => Math.sin(1 + (i + 1) * (v + 1) * 0.7548776662)),
  );
  for (let round = 0; round < ROUNDS; round++) {
    basis = orthonormal(basis.map((vector) => times(gram, vector, n)));
    yield;
  }
  const { values, vectors } = rotated(gram, basis, n);
  const coordinates = new Float32Array(n * wanted);
  for (let c = 0; c < Math.min(wanted, size); c++) {
    let peak = 0;
    for (let i = 0; i < n; i++) if (Math.abs(vectors[c][i]) > Math.abs(vectors[c][peak])) peak = i;
    const factor = Math.sign(vectors[c][peak] || 1) * Math.sqrt(Math.max(0, values[c]));
    for (let i = 0; i < n; i++) coordinates[i * wanted + c] = vectors[c][i] * factor;
  }
  return coordinates;
}

function centredRows(rows, n, width) {
  const mean = new Float64Array(width);
  for (let i = 0; i < n; i++) for (let k = 0; k < width; k++) mean[k] += rows[i * width + k] / n;
  const out = new Float32Array(n * width);
  for (let i = 0; i < n; i++) for (let k = 0; k < width; k++) out[i * width + k] = rows[i * width + k] - mean[k];
  return out;
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
