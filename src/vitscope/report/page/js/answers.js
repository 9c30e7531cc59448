// Why: what the best layer of each model answers, as pictures.

function answersFigure() {
  const figure = find("#chart-answers");
  if (!figure) return;
  const datasets = (kind) => new Set(study.answers.filter((one) => one.kind === kind).map((one) => one.dataset));
  const kindOf = ({ kind, dataset }) => (datasets(kind).size > 1 ? `${kind}, ${shortName(dataset)}` : kind);
  const kinds = [...new Set(study.answers.map(kindOf))];
  const image = html("img", { class: "answer" });
  find(".answers", figure).append(image);
  const state = { kind: kinds[0], which: study.answers[0].which, whose: null };
  const offered = () => study.answers.filter((answer) => kindOf(answer) === state.kind);
  const isShown = (answer) => answer.model === null || visible(answer.model);

  const draw = () => {
    const shown = offered().filter(isShown);
    const answers = shown.length ? shown : offered();
    const chosen = answers.find((answer) => answer.which === state.which) ?? answers[0];
    state.which = chosen.which;
    state.whose.set(chosen.which);
    image.src = chosen.image;
    image.alt = `${chosen.kind} of ${chosen.dataset}: ${chosen.which}`;
  };
  const choose = (which) => {
    state.which = which;
    if (offered().some((answer) => answer.which === which && !isShown(answer))) showAll();
    draw();
  };
  const build = () => {
    const answers = offered();
    const name = answers[0].model === null ? "Video" : "Model";
    const options = answers.map(({ which }) => [which, which]);
    const whose = picker(name, options, choose, 8);
    if (state.whose) state.whose.element.replaceWith(whose.element);
    else find(".pickers", figure).append(whose.element);
    state.whose = whose;
    draw();
  };
  const pick = (kind) => {
    state.kind = kind;
    build();
  };
  const options = kinds.map((kind) => [kind, kind]);
  if (kinds.length > 1) find(".pickers", figure).append(picker("Answers", options, pick).element);
  build();
  whenIsolated(draw);
}
