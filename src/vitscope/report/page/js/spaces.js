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
    draw: (stage) => drawSpaces(stage, state.projection),
    rows: () => [
      ["model", "projection", "image", "class", "x", "y"],
      ...study.spaces.flatMap((space) =>
        placesOf(space, state.projection).map(([x, y], i) => [
          ...[models[space.model].title, state.projection, i + 1],
          ...[space.labels?.[i], Number(x.toFixed(3)), Number(y.toFixed(3))],
        ]),
      ),
    ],
  });
  themed(draw);
  fade(figure);
}

/** Colours of classes: round the wheel by the golden angle, so that neighbours differ. */
const classColour = (label, dark) =>
  `hsl(${(label * 137.5) % 360} ${dark ? 62 : 58}% ${(dark ? 64 : 42) + (label % 3) * 6}%)`;

const dotColour = (space, i, dark) =>
  space.labels ? classColour(space.labels[i], dark) : dark ? "#9fb3c8" : "#46607a";

/** Where pictures lie in a model's space, from 0 to 1 to the right and upwards. */
function placesOf(space, projection) {
  const packed = atob(space.points[projection] ?? "");
  const at = (i) => packed.charCodeAt(i) / 255;
  return Array.from({ length: packed.length / 2 }, (_, i) => [at(2 * i), at(2 * i + 1)]);
}

/** All spaces as one drawing, to be taken along. */
function drawSpaces(host, projection) {
  const [side, columns, dark] = [WIDTH / 4, 4, isDark()];
  const height = Math.ceil(study.spaces.length / columns) * (side + 14);
  const root = svg("svg", { class: "chart", viewBox: `0 0 ${WIDTH} ${height}` });
  study.spaces.forEach((space, k) => {
    const [left, top] = [(k % columns) * side, Math.floor(k / columns) * (side + 14)];
    root.append(svg("text", { class: "label", x: left + 4, y: top + 12 }, clip(models[space.model].title, 26)));
    placesOf(space, projection).forEach(([x, y], i) =>
      root.append(
        svg("circle", {
          cx: (left + 6 + x * (side - 18)).toFixed(1),
          cy: (top + 18 + (1 - y) * (side - 18)).toFixed(1),
          r: 1.6,
          fill: dotColour(space, i, dark),
        }),
      ),
    );
  });
  host.replaceChildren(root);
}

function drawSpace(space, projection, canvas, note) {
  const context = canvas.getContext("2d");
  context.clearRect(0, 0, canvas.width, canvas.height);
  const share = projection === "pca" && space.share;
  note.textContent = share ? `${Math.round(100 * (share[0] + share[1]))} % of the variance` : "";
  const places = placesOf(space, projection);
  const radius = places.length > 1200 ? 2.2 : 3.2;
  const dark = isDark();
  context.globalAlpha = 0.78;
  places.forEach(([x, y], i) => {
    context.fillStyle = dotColour(space, i, dark);
    context.beginPath();
    context.arc(8 + x * 344, 352 - y * 344, radius, 0, 2 * Math.PI);
    context.fill();
  });
}
