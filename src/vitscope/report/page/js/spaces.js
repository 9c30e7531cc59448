// What: the pictures of each model's last layer, projected to the plane.

const PROJECTIONS = [
  ["tsne", "t-SNE"],
  ["pca", "principal components"],
];

function spacesFigure() {
  const figure = find("#chart-spaces");
  if (!figure) return;
  const offered = PROJECTIONS.filter(([name]) => study.spaces.some((space) => space.points[name]));
  const state = { projection: offered[0][0] };
  const tiles = study.spaces.map((space) => {
    const canvas = html("canvas", {
      width: 360,
      height: 360,
      role: "img",
      "aria-label": `Pictures as ${models[space.model].title} places them`,
    });
    const note = html("p", { class: "note" });
    const element = html(
      "div",
      { class: "panel", "data-model": space.model },
      html("h4", {}, modelTitle(space.model)),
      canvas,
      note,
    );
    return { element, draw: () => drawSpace(space, state.projection, canvas, note) };
  });
  find(".drawing", figure).append(
    html(
      "div",
      { class: "spaces" },
      tiles.map((tile) => tile.element),
    ),
  );
  const draw = () => tiles.forEach((tile) => tile.draw());
  if (offered.length > 1) {
    find(".pickers", figure).append(
      picker("Projection", offered, (value) => {
        state.projection = value;
        draw();
      }).element,
    );
  }
  takeAway(find("figcaption", figure), {
    name: () => `The space that pictures live in, ${Object.fromEntries(PROJECTIONS)[state.projection]}`,
    canvases: () => study.spaces.map((space, i) => [models[space.model].title, find("canvas", tiles[i].element)]),
  });
  themed(draw);
  fade(figure);
}

/** Colours of classes: round the wheel by the golden angle, so that neighbours differ. */
const classColour = (label, dark) =>
  `hsl(${(label * 137.5) % 360} ${dark ? 62 : 58}% ${(dark ? 64 : 42) + (label % 3) * 6}%)`;

function drawSpace(space, projection, canvas, note) {
  const context = canvas.getContext("2d");
  context.clearRect(0, 0, canvas.width, canvas.height);
  const share = projection === "pca" && space.share;
  note.textContent = share ? `${Math.round(100 * (share[0] + share[1]))} % of the variance` : "";
  if (!space.points[projection]) return;
  const places = atob(space.points[projection]);
  const radius = places.length > 2400 ? 2.2 : 3.2;
  const dark = isDark();
  context.globalAlpha = 0.78;
  for (let i = 0; i < places.length / 2; i++) {
    context.fillStyle = space.labels ? classColour(space.labels[i], dark) : dark ? "#9fb3c8" : "#46607a";
    context.beginPath();
    context.arc(
      8 + (places.charCodeAt(2 * i) / 255) * 344,
      352 - (places.charCodeAt(2 * i + 1) / 255) * 344,
      radius,
      0,
      2 * Math.PI,
    );
    context.fill();
  }
}
