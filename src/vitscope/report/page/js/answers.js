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

/** Pictures and charts that stand in the page already. */
function pictureFigures() {
  const pictures = find("#chart-pictures");
  if (pictures) {
    const shown = () => findAll("img", pictures).filter((image) => image.checkVisibility());
    takeAway(find("figcaption", pictures), {
      name: find("h3", pictures).textContent,
      canvases: () => shown().map((image) => [image.alt, imageAsCanvas(image)]),
    });
  }
  const growing = find("#chart-growing");
  if (growing) takeAway(find("figcaption", growing), drawn("growing up", growing, () => study.growing));
  const importance = find("#chart-importance");
  if (!importance) return;
  const lost = study.curves.writes.series.filter((one) => one.measure.startsWith("head_importance"));
  takeAway(find("figcaption", importance), drawn("which heads matter", importance, () => seriesRows(lost)));
}

/** A chart that came as an image is taken along as it is. */
const drawn = (name, figure, rows) => ({ name, texts: () => findAll("img", figure).map(imageText), rows });

const imageText = (image) =>
  new TextDecoder().decode(Uint8Array.from(atob(image.src.split(",")[1]), (character) => character.charCodeAt(0)));

function imageAsCanvas(image) {
  const canvas = new OffscreenCanvas(image.naturalWidth, image.naturalHeight);
  canvas.getContext("2d").drawImage(image, 0, 0);
  return canvas;
}
