// Arrays from bytes: safetensors, as the server, a frozen page and shipped weights have them.

/** All 65,536 half-precision numbers: decoding one is looking it up. */
function halfNumbers() {
  const table = new Float32Array(65536);
  for (let bits = 0; bits < 65536; bits++) {
    const exponent = (bits >> 10) & 31;
    const fraction = bits & 1023;
    const sign = bits & 32768 ? -1 : 1;
    if (exponent === 0) table[bits] = sign * fraction * 2 ** -24;
    else if (exponent === 31) table[bits] = fraction ? NaN : sign * Infinity;
    else table[bits] = sign * (1 + fraction / 1024) * 2 ** (exponent - 15);
  }
  return table;
}
const HALF = halfNumbers();

const KINDS_OF_NUMBERS = { F32: Float32Array, F16: Uint16Array, I32: Int32Array, U8: Uint8Array, I8: Int8Array };

/** {name: {dtype, shape, data}} of a safetensors buffer; data is a typed array. */
function readArrays(buffer) {
  const view = new DataView(buffer);
  const start = 8 + Number(view.getBigUint64(0, true));
  const header = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 8, start - 8)));
  const arrays = {};
  for (const [name, { dtype, shape, data_offsets: offsets }] of Object.entries(header)) {
    if (name === "__metadata__") continue;
    const kind = KINDS_OF_NUMBERS[dtype];
    if (!kind) throw new Error(`${name} holds ${dtype}`);
    const [from, to] = [start + offsets[0], start + offsets[1]];
    const aligned = from % kind.BYTES_PER_ELEMENT === 0;
    const data = aligned
      ? new kind(buffer, from, (to - from) / kind.BYTES_PER_ELEMENT)
      : new kind(buffer.slice(from, to));
    arrays[name] = { dtype, shape, data };
  }
  return arrays;
}

/** Numbers `start` to `start + count` of an array as float32. */
function floats({ dtype, data }, start = 0, count = data.length - start) {
  if (dtype === "F32") return data.subarray(start, start + count);
  const out = new Float32Array(count);
  if (dtype === "F16") for (let i = 0; i < count; i++) out[i] = HALF[data[start + i]];
  else for (let i = 0; i < count; i++) out[i] = data[start + i];
  return out;
}

/** Bytes of an element that holds base64; gzip is undone. */
async function embedded(id, zipped = true) {
  const text = find(`#${id}`).textContent.trim();
  const bytes = Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
  if (!zipped) return bytes.buffer;
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Response(stream).arrayBuffer();
}
