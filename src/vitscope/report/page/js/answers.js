// Why: what the best layer of every model answers, as pictures: successes and failures, models side by side.

function answersFigure() {
  const figure = find("#chart-answers");
  if (!figure) return;
  const datasets = (kind) => new Set(study.answers.filter((one) => one.kind === kind).map((one) => one.dataset));
  const kindOf = ({ kind, dataset }) => (datasets(kind).size > 1 ? `${kind}, ${shortName(dataset)}` : kind);
  const kinds = [...new Set(study.answers.map(kindOf))];
  const image = html("img", { class: "answer" });
  find(".answers", figure).append(image);
  const state = { kind: kinds[0], which: null };
  const offered = () => study.answers.filter((answer) => kindOf(answer) === state.kind);

  const show = (which) => {
    const chosen = offered().find((answer) => answer.which === which);
    image.src = chosen.image;
    image.alt = `${chosen.kind} of ${chosen.dataset}: ${chosen.which}`;
  };
  const build = () => {
    const answers = offered();
    const name = answers[0].kind === "video" ? "Video" : "Question";
    const which = picker(
      name,
      answers.map((answer) => [answer.which, answer.which]),
      show,
      8,
    );
    if (state.which) state.which.element.replaceWith(which.element);
    else find(".pickers", figure).append(which.element);
    state.which = which;
    show(answers[0].which);
  };
  const pick = (kind) => {
    state.kind = kind;
    build();
  };
  const options = kinds.map((kind) => [kind, kind]);
  if (kinds.length > 1) find(".pickers", figure).append(picker("Answers", options, pick).element);
  build();
  takeAway(find("figcaption", figure), { name: () => image.alt, canvases: () => [["", imageAsCanvas(image)]] });
}

/** Pictures that stand in the page already. */
function pictureFigures() {
  for (const figure of findAll("#chart-pictures, #chart-growing")) {
    const shown = () => findAll("img", figure).filter((image) => image.checkVisibility());
    takeAway(find("figcaption", figure), {
      name: find("h3, .see", figure).textContent.slice(0, 40),
      canvases: () => shown().map((image) => [image.alt, imageAsCanvas(image)]),
    });
  }
}

function imageAsCanvas(image) {
  const canvas = new OffscreenCanvas(image.naturalWidth, image.naturalHeight);
  canvas.getContext("2d").drawImage(image, 0, 0);
  return canvas;
}
