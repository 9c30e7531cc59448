// The same point in another image: the most similar patch, with a line to it, in every model.

let pairs = [];

function arrangePairs() {
  const wanted = state.second ? (state.every ? [state.focus] : state.models) : [];
  find("#second-empty").hidden = Boolean(state.second);
  find("#second-clear").hidden = !state.second;
  if (wanted.join() === pairs.map((pair) => pair.model).join()) return;
  pairs = wanted.map((model) => {
    const canvas = html("canvas", { role: "img" });
    const told = html("p", { class: "told" });
    const title = html("h3", {}, markOf(model), models[model].title);
    return { model, canvas, told, element: html("figure", { class: "pair" }, title, canvas, told) };
  });
  find("#pairs").replaceChildren(...pairs.map((pair) => pair.element));
}

const pairTasks = () => pairs.map((pair) => () => drawPair(pair));

const matches = new Map(); // by model: the best match in the second image, for whoever looks under the bonnet

function drawPair({ model, canvas, told }) {
  const [first, second] = [traceOf(model, state.image), traceOf(model, state.second)];
  const [one, two] = [pictureOf(model, state.image), pictureOf(model, state.second)];
  const [height, width] = canvasSize(model);
  const gap = 24;
  if (canvas.width !== 2 * width + gap) [canvas.width, canvas.height] = [2 * width + gap, height];
  const context = canvas.getContext("2d");
  context.clearRect(0, 0, canvas.width, height);
  if (one) context.drawImage(one, 0, 0, width, height);
  if (!first || !second || !two) return;
  const layer = layerOf(model);
  const values = similarityMap(first, layer, patchAt(model, state.point), second);
  const best = values.reduce((top, value, i) => (value > values[top] ? i : top), 0);
  matches.set(model, { patch: best, score: values[best] });
  const low = values.reduce((a, b) => Math.min(a, b));
  context.translate(width + gap, 0);
  const map = { kind: "heat", values, low, high: Math.max(values[best], low + 1e-6) };
  const colours = state.view === "pca" ? coloursOf([first, second], layer, 1) : null;
  if (colours) paintCells(context, { kind: "colours", values: colours }, second.grid, 0, 0, width, height);
  else paintCells(context, map, second.grid, 0, 0, width, height, two);
  context.setTransform(1, 0, 0, 1, 0, 0);
  const [across, down] = middleOf(model, best);
  const from = [state.point[0] * width, state.point[1] * height];
  const to = [width + gap + across * width, down * height];
  for (const [colour, wide] of [["rgb(10 12 22 / 0.8)", 7], ["#ffffff", 3]]) {
    context.beginPath();
    line(context, ...from, ...to);
    context.lineWidth = wide;
    context.strokeStyle = colour;
    context.stroke();
  }
  ring(context, ...from, width / 45);
  ring(context, ...to, width / 45);
  told.textContent = `layer ${layer + 1}, best match ${number(values[best])}`;
  canvas.setAttribute("aria-label", `${models[model].title}: the point's best match in the second image, cosine similarity ${number(values[best])}`);
}
