// What takes longer than a frame is done beside the page: a worker, made of the very functions that stand here.

const WORKER_PARTS = [
  halfNumbers, floats, readArrays, dequantised, unpackedNetwork, centredUnits, transposed, principalComponents,
  componentColours, dot, orthonormal, rotated, linear, layerNorm, erf, gelu, rotate, attend, patchRows, headMeans, forward,
]; // prettier-ignore

/** What the worker does, by name. Each gets what was asked and `pause`, which lets other messages in, or gives up. */
const WORKER_JOBS = {
  colours: ({ parts, width }) => {
    const tokens = parts.map((part) => floats(part));
    const rows = new Float32Array(tokens.reduce((sum, part) => sum + part.length, 0));
    tokens.reduce((at, part) => (rows.set(part, at), at + part.length), 0);
    return componentColours(rows, width);
  },
  network: ({ model, bytes, settings }) => {
    networks.set(model, { weights: unpackedNetwork(readArrays(bytes)), ...settings });
  },
  forward: ({ model, pixels }, pause) => forward(networks.get(model), pixels, pause),
};

/** The worker's own script: it answers {id, found} or {id, error}; {stop: id} has a job end at its next pause. */
function workerBody() {
  const stopped = new Set();
  const breath = () =>
    new Promise((go) => {
      const { port1, port2 } = new MessageChannel();
      port1.onmessage = () => (port1.close(), go());
      port2.postMessage(0);
    });
  onmessage = async ({ data: { id, kind, asked, stop } }) => {
    if (stop !== undefined) return stopped.add(stop);
    try {
      const pause = async () => {
        await breath();
        if (stopped.has(id)) throw new Error("stopped");
      };
      const found = await jobs[kind](asked, pause);
      postMessage({ id, found }, buffersOf(found));
    } catch (error) {
      postMessage({ id, error: error.message });
    }
    stopped.delete(id);
  };
  const buffersOf = (found) =>
    Object.values(found instanceof Float32Array ? [found] : (found ?? {})).map((one) => (one.data ?? one).buffer);
}

function workerText() {
  const jobs = Object.entries(WORKER_JOBS).map(([name, job]) => `${name}: ${job}`);
  const constants = { KINDS_OF_NUMBERS: `{ ${Object.entries(KINDS_OF_NUMBERS).map(([key, kind]) => `${key}: ${kind.name}`)} }`, ERFC: JSON.stringify(ERFC), MOST_ROUNDS };
  return [
    "'use strict';",
    ...Object.entries(constants).map(([name, value]) => `const ${name} = ${value};`),
    ...WORKER_PARTS.map(String),
    "const HALF = halfNumbers(); const networks = new Map();",
    `const jobs = { ${jobs.join(",\n")} };`,
    `(${workerBody})();`,
  ].join("\n");
}

const waiting = []; // jobs; one at a time is under way
let underWay = null;
let worker = null;
let asideSerial = 0;

/**
 * Have a job done. urgency: asked when the worker is free, the smallest goes first, and what nobody looks at any more
 * (Infinity) is given up, as it is when the signal says so.
 */
function aside(kind, asked, { urgency = () => -1, signal = null } = {}) {
  return new Promise((go, fail) => {
    const job = { id: asideSerial++, kind, asked, urgency, go, fail };
    signal?.addEventListener("abort", () => {
      if (underWay === job) worker.postMessage({ stop: job.id });
      else if (waiting.includes(job)) waiting.splice(waiting.indexOf(job), 1);
      fail(signal.reason);
    });
    waiting.push(job);
    nextAside();
  });
}

function nextAside() {
  if (underWay) return;
  const jobs = waiting.splice(0).map((job) => ({ job, urgency: job.urgency() }));
  for (const { job, urgency } of jobs) {
    if (urgency === Infinity) job.fail(new DOMException("nobody looks at it", "AbortError"));
    else waiting.push(job);
  }
  const [first] = jobs.filter(({ urgency }) => urgency < Infinity).sort((a, b) => a.urgency - b.urgency);
  if (!first) return;
  worker ??= startWorker();
  underWay = first.job;
  waiting.splice(waiting.indexOf(underWay), 1);
  const { id, kind, asked } = underWay;
  worker.postMessage({ id, kind, asked });
}

function startWorker() {
  const made = new Worker(URL.createObjectURL(new Blob([workerText()], { type: "text/javascript" })));
  made.onmessage = ({ data: { found, error } }) => {
    const job = underWay;
    underWay = null;
    if (error) job.fail(new Error(error));
    else job.go(found);
    nextAside();
  };
  return made;
}
