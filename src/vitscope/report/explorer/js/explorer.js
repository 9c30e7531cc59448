// The page as a whole: what is needed is fetched, what is there is drawn, and old wishes are forgotten.

const MOST_TRACES = 24; // kept in this page
const FRAME = 9; // milliseconds of a frame for what is not the large maps
const traces = new Map(); // by "model image": traces that are there
const wishes = new Map(); // by the same: what is under way
const images = new Map(); // by "aspect image": pictures that are there
const troubles = new Map(); // by "model image": why it is not
const frames = []; // milliseconds of scripting of the last frames
const progress = { note: "" };

const traceOf = (model, image) => traces.get(`${model} ${image}`) ?? null;
const shapeOf = (model) => (models[model].size[0] / models[model].size[1]).toFixed(4);
const pictureOf = (model, image) => images.get(`${shapeOf(model)} ${image}`) ?? null;

/** Change what is looked at; everything follows. */
function change(update) {
  Object.assign(state, update);
  normalise();
  keepHash();
  refresh();
}

/** The address follows when the hand rests: browsers refuse to change it at every move. */
const keepHash = settled(() => history.replaceState(null, "", toHash()), 120);

function normalise() {
  if (!state.models.includes(state.focus)) state.focus = state.models[0];
  state.layer = Math.min(state.layer, depthShown() - 1);
  if (Number.isInteger(state.head)) state.head = Math.min(state.head, headsShown() - 1);
  if (!viewOf(state.view)) state.view = VIEWS[0].key;
}

function refresh() {
  arrangePanels();
  arrangeStrip();
  arrangeAtlas();
  arrangePairs();
  showControls();
  markGallery();
  wish();
  redraw();
  settle();
}

/** Ask for what is needed and not there; give up what is no longer needed. */
function wish() {
  const wanted = [state.image, state.second].filter(Boolean).flatMap((image) => state.models.map((model) => [model, image]));
  const keys = new Set(wanted.map(([model, image]) => `${model} ${image}`));
  for (const [key, controller] of wishes) {
    if (keys.has(key)) continue;
    controller.abort();
    wishes.delete(key);
  }
  for (const [model, image] of wanted) {
    wishPicture(model, image);
    const key = `${model} ${image}`;
    if (traces.has(key)) {
      const trace = traces.get(key);
      traces.delete(key); // to the end: used last
      traces.set(key, trace);
    } else if (!wishes.has(key)) wishTrace(model, image, key);
  }
  for (const key of traces.keys()) {
    if (traces.size <= MOST_TRACES) break;
    if (!keys.has(key)) traces.delete(key);
  }
  showProgress();
}

function wishPicture(model, image) {
  const key = `${shapeOf(model)} ${image}`;
  if (images.has(key)) return;
  source.picture(model, image).then(
    (picture) => {
      images.set(key, picture);
      if (images.size > 60) images.delete(images.keys().next().value);
      redraw();
    },
    (error) => complain(error),
  );
}

async function wishTrace(model, image, key) {
  const controller = new AbortController();
  wishes.set(key, controller);
  troubles.delete(key);
  try {
    traces.set(key, await source.trace(model, image, controller.signal));
  } catch (error) {
    if (controller.signal.aborted) return;
    troubles.set(key, error.message);
    complain(error);
  }
  if (wishes.get(key) === controller) wishes.delete(key);
  showProgress();
  redraw();
  settle();
}

function showProgress() {
  const bar = find("#progress");
  const waiting = [...wishes.keys()].map((key) => models[key.split(" ")[0]].title);
  const [banking] = bankProgress;
  let words = progress.note;
  let share = 0.3;
  if (waiting.length) {
    const all = state.models.length * (state.second ? 2 : 1);
    share = (all - waiting.length) / all;
    words = `${waiting[0]} looks at the image`;
  } else if (banking) {
    const [model, [done, planned]] = banking;
    share = done / planned;
    words = `${models[model].title} looks at the folder: ${done} of ${planned}`;
  }
  bar.classList.toggle("busy", Boolean(words));
  find("#progress-share").style.width = `${Math.round(100 * Math.max(0.06, share))}%`;
  find("#progress-words").textContent = words;
}

function notice(words) {
  const host = find("#notice");
  host.textContent = words;
  host.hidden = false;
  clearTimeout(notice.timer);
  notice.timer = setTimeout(() => (host.hidden = true), 4500);
}

const complain = (error) => error.name !== "AbortError" && notice(error.message);

/** A function that is called once, when its wishes have come to rest. */
function settled(act, milliseconds) {
  let timer = 0;
  return () => {
    clearTimeout(timer);
    timer = setTimeout(act, milliseconds);
  };
}

/** What can wait until the hand rests: neighbours soon, the folder when nothing else is asked for. */
function settle() {
  askNeighbours();
  growLater();
}

const growLater = settled(() => (wishes.size ? growLater() : growBanks()), 900);

let queued = false;
let tasks = [];
/** Draw at the next frame: the large maps at once, the small ones as far as a frame's time goes. */
function redraw() {
  if (queued) return;
  queued = true;
  requestAnimationFrame(() => {
    queued = false;
    const start = performance.now();
    drawImage();
    drawPanels();
    tasks = [...stripTasks(), ...pairTasks(), ...atlasTasks()];
    work(start);
  });
}

/** As much as a frame has time for; the rest at the next ones. */
function work(start) {
  while (tasks.length && performance.now() - start < FRAME) tasks.shift()();
  frames.push(performance.now() - start);
  if (frames.length > 600) frames.shift();
  if (tasks.length && !queued) requestAnimationFrame(() => !queued && work(performance.now()));
}

/** The image itself, with the point. */
function drawImage() {
  const canvas = find("#image");
  const model = state.models[0];
  const [height, width] = canvasSize(model);
  if (canvas.width !== width || canvas.height !== height) [canvas.width, canvas.height] = [width, height];
  const context = canvas.getContext("2d");
  const picture = pictureOf(model, state.image);
  context.clearRect(0, 0, width, height);
  if (picture) context.drawImage(picture, 0, 0, width, height);
  ring(context, state.point[0] * width, state.point[1] * height, width / 40);
}

function start() {
  const preferred = ["dino", "fs", "mae", "clip"].map((key) => models.findIndex((model) => model.teaching === key));
  const given = boot.given ?? 0; // models that were named come first
  const chosen = given ? models.slice(0, given).map((_, i) => i) : preferred.filter((model) => model >= 0);
  state.models = (chosen.length ? chosen : models.map((_, i) => i)).slice(0, MOST_MODELS);
  [state.focus] = state.models;
  state.layer = Math.max(0, depthShown() - 1);
  state.image = boot.first?.[0] ?? source.gallery[0]?.name ?? source.roll?.() ?? "";
  state.second = boot.first?.[1] ?? "";
  Object.assign(state, fromHash(location.hash));
  normalise();
  startTheme();
  startControls();
  startImages();
  startAtlas();
  startSaving();
  pointable(find("#image"));
  addEventListener("hashchange", () => {
    Object.assign(state, fromHash(location.hash));
    normalise();
    refresh();
  });
  themed(redraw);
  history.replaceState(null, "", toHash());
  refresh();
}

globalThis.vitscope = { state, shown, models, matches, frames, traceOf, change, pythonLines, ran };
start();
