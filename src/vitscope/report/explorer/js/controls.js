// Sliders, chips and keys.

const sliders = {};

function startControls() {
  models.forEach((_, i) => addChip(i));
  startTyping();
  const views = VIEWS.map(({ key, title, says }, i) => {
    const button = html("button", { type: "button", class: "view", "data-show": key, title: `${says} (key ${i + 1})` }, title);
    button.addEventListener("click", () => change({ view: key }));
    return button;
  });
  find("#views").append(...views);
  const listen = (id, event, act) => find(id).addEventListener(event, act);
  listen("#layer", "input", (event) => change({ layer: Number(event.target.value) - 1 }));
  listen("#head", "input", (event) => change({ head: headFromSlider(Number(event.target.value)) }));
  listen("#mass", "input", (event) => change({ mass: Number(event.target.value) }));
  listen("#over", "change", (event) => change({ over: event.target.checked }));
  listen("#every", "change", (event) => change({ every: event.target.checked }));
  listen("#play", "click", togglePlay);
  addEventListener("keydown", keys);
  find("#image").addEventListener("keydown", moveByKeys);
}

function addChip(model) {
  const button = html("button", { type: "button", class: "chip", "data-choose": model }, markOf(model), models[model].title);
  button.addEventListener("click", () => choose(model));
  find("#models").append(button);
}

/** Any model can be typed in, where a server knows what its name means. */
function startTyping() {
  const form = find("#add-model");
  if (!form) return;
  const field = find("input", form);
  find("datalist", form).append(...(boot.proposals ?? []).map((value) => html("option", { value })));
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const text = field.value.trim();
    if (!text) return;
    progress.note = `looking for ${text}`;
    showProgress();
    try {
      const { number, model } = await source.model(text);
      if (!models[number]) {
        models[number] = model;
        addChip(number);
      }
      field.value = "";
      if (!state.models.includes(number)) choose(number);
    } catch (error) {
      complain(error);
    } finally {
      progress.note = "";
      showProgress();
    }
  });
}

/** Take a model in, or out; the fifth replaces the oldest. */
function choose(model) {
  const there = state.models.includes(model);
  if (there && state.models.length === 1) return;
  const chosen = there ? state.models.filter((other) => other !== model) : [...state.models, model].slice(-MOST_MODELS);
  change({ models: chosen, focus: there ? state.focus : model });
}

const headFromSlider = (value) => (value === 0 ? "mean" : value === 1 ? "rollout" : value - 2);
const headToSlider = (head) => (head === "mean" ? 0 : head === "rollout" ? 1 : head + 2);
const headWords = (head) => (Number.isInteger(head) ? `${head + 1}` : head === "mean" ? "mean of all" : "rollout");

function showControls() {
  const view = viewOf(state.view);
  findAll("[data-choose]").forEach((chip) =>
    chip.setAttribute("aria-pressed", state.models.includes(Number(chip.dataset.choose))),
  );
  findAll("[data-show]").forEach((button) => button.setAttribute("aria-pressed", button.dataset.show === state.view));
  const bar = find("#views");
  if (bar.dataset.view !== state.view && bar.scrollWidth > bar.clientWidth) {
    bar.scrollLeft = find(`[data-show=${state.view}]`).offsetLeft - bar.offsetLeft - 40;
  }
  bar.dataset.view = state.view;
  const layer = find("#layer");
  layer.max = depthShown();
  layer.value = state.layer + 1;
  find("#layer-value").textContent = state.layer + 1;
  const head = find("#head");
  head.max = headsShown() + 1;
  head.value = headToSlider(state.head);
  head.setAttribute("aria-valuetext", headWords(state.head));
  find("#head-value").textContent = headWords(state.head);
  find("#head-picker").classList.toggle("idle", !view.heads && !state.every);
  find("#mass").value = state.mass;
  find("#mass-value").textContent = percent(state.mass);
  find("#mass-picker").hidden = !view.mass && !state.every;
  find("#over").checked = state.over;
  find("#every").checked = state.every;
  find("#says").textContent = state.every
    ? `Everything that ${models[state.focus].title} makes of the image.`
    : `${view.says[0].toUpperCase()}${view.says.slice(1)}.`;
  find("#scale").hidden = !state.every && !view.heat;
  showStudy();
}

/** The classes that the segmentations show, and their colours. */
function showLegend() {
  const maps = shown.filter((one) => one.map?.kind === "labels").map((one) => one.map.values);
  const there = [...new Set(maps.flatMap((values) => Array.from(values)))].filter(Boolean).sort((a, b) => a - b);
  const host = find("#classes");
  if (host.dataset.there === there.join()) return;
  host.dataset.there = there.join();
  host.replaceChildren(
    ...there.map((label) => {
      const swatch = html("i", { class: "swatch" });
      swatch.style.background = labelColour(label);
      return html("li", {}, swatch, boot.classes[label - 1]);
    }),
  );
}

/** What the study says of the models that are shown: the layer that it would take for each task. */
function showStudy() {
  const host = find("#study");
  const now = `${state.models} ${state.layer}`;
  if (host.dataset.now === now) return;
  host.dataset.now = now;
  const known = state.models.filter((model) => studyOf(model)?.tasks.length);
  host.hidden = !known.length;
  if (!known.length) return;
  const tasks = [...new Set(known.flatMap((model) => studyOf(model).tasks.map((task) => `${task.task}\n${task.dataset}\n${task.score}`)))];
  const head = html("tr", {}, html("th", { scope: "col" }, "task"), known.map((model) => html("th", { scope: "col" }, markOf(model), models[model].title)));
  const rows = tasks.map((key) => {
    const [task, dataset, score] = key.split("\n");
    const cells = known.map((model) => {
      const found = studyOf(model).tasks.find((one) => one.task === task && one.dataset === dataset && one.score === score);
      if (!found) return html("td", {}, "–");
      const button = html("button", { type: "button", class: "go" }, `layer ${found.layer}`);
      button.addEventListener("click", () => change({ layer: found.layer - 1, focus: model }));
      return html("td", { class: found.layer - 1 === layerOf(model) ? "here" : null }, html("b", {}, found.value), " ", button);
    });
    return html("tr", {}, html("th", { scope: "row" }, task, html("small", {}, `${dataset}, ${score}`)), cells);
  });
  find("#study-table").replaceChildren(html("thead", {}, head), html("tbody", {}, rows));
}

let playing = 0;
function togglePlay() {
  const button = find("#play");
  if (playing) {
    clearInterval(playing);
    playing = 0;
  } else {
    playing = setInterval(() => change({ layer: (state.layer + 1) % depthShown() }), 420);
  }
  button.setAttribute("aria-pressed", Boolean(playing));
  button.setAttribute("aria-label", playing ? "Stop" : "Play through the layers");
}

function keys(event) {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.target.closest("input, select, textarea") || event.target.id === "image") return;
  const steps = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] }[event.key];
  if (steps) {
    const layer = Math.min(depthShown() - 1, Math.max(0, state.layer + steps[0]));
    const head = Math.min(headsShown() + 1, Math.max(0, headToSlider(state.head) + steps[1]));
    change({ layer, head: headFromSlider(head) });
  } else if (/^[1-9]$/.test(event.key) && VIEWS[event.key - 1]) change({ view: VIEWS[event.key - 1].key });
  else if (event.key === " " && !event.target.closest("button, a, summary")) togglePlay();
  else if (event.key === "r" && source.roll) change({ image: source.roll() });
  else if (event.key === "o") change({ over: !state.over });
  else if (event.key === "e") change({ every: !state.every });
  else return;
  event.preventDefault();
}

/** On the image, arrow keys move the point from patch to patch. */
function moveByKeys(event) {
  const steps = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[event.key];
  if (!steps) return;
  event.preventDefault();
  const [h, w] = models[state.models[0]].grid;
  const [across, down] = middleOf(state.models[0], patchAt(state.models[0], state.point));
  const within = (value) => Math.min(0.9999, Math.max(0, value));
  change({ point: [within(across + steps[0] / w), within(down + steps[1] / h)] });
  settle();
}
