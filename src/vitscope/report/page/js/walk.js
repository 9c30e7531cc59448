// Moving through the atlas: pick a head with the pointer or with arrow keys; show one kind only.

/** Pointer and keys in one grid: arrows move and pick; one cell of the grid is in the focus order. */
function walkGrid(cells, heads, model) {
  const cellAt = (index) => find(`[data-index="${index}"]`, cells);
  const pick = (index) => pickHead(model, Math.floor(index / heads.heads), index % heads.heads);
  cells.addEventListener("click", (event) => {
    const cell = event.target.closest(".cell");
    if (cell) pick(Number(cell.dataset.index));
  });
  cells.addEventListener("pointermove", (event) => {
    const cell = event.target.closest(".cell");
    if (!cell) return hideTooltip();
    const index = Number(cell.dataset.index);
    showTooltip(
      [html("b", {}, headName(model, index)), html("br"), kindText(model, index)],
      event.clientX,
      event.clientY,
    );
  });
  cells.addEventListener("pointerleave", hideTooltip);
  cells.addEventListener("keydown", (event) => {
    const index = Number(event.target.dataset?.index);
    const [row, column] = [Math.floor(index / heads.heads), index % heads.heads];
    const targets = {
      ArrowLeft: column > 0 ? index - 1 : index,
      ArrowRight: column < heads.heads - 1 ? index + 1 : index,
      ArrowUp: row > 0 ? index - heads.heads : index,
      ArrowDown: row < heads.layers - 1 ? index + heads.heads : index,
      Home: row * heads.heads,
      End: (row + 1) * heads.heads - 1,
      Enter: index,
      " ": index,
    };
    if (!(event.key in targets)) return;
    event.preventDefault();
    pick(targets[event.key]);
    cellAt(targets[event.key]).focus();
  });
  whenPicked((chosen) => {
    const index = chosen.model === model ? chosen.layer * heads.heads + chosen.head : -1;
    for (const cell of findAll('[aria-selected="true"]', cells)) cell.setAttribute("aria-selected", "false");
    if (index < 0) return;
    cellAt(index).setAttribute("aria-selected", "true");
    findAll('[tabindex="0"]', cells).forEach((cell) => cell.setAttribute("tabindex", "-1"));
    cellAt(index).setAttribute("tabindex", "0");
  });
}

function kindFilter() {
  const host = find("#kind-filter");
  let only = null;
  const show = () => {
    findAll(".chip", host).forEach((chip) => chip.setAttribute("aria-pressed", Number(chip.dataset.kind) === only));
    findAll(".cell").forEach((cell) =>
      cell.classList.toggle("unlike", only !== null && Number(cell.dataset.kind) !== only),
    );
  };
  study.kinds.forEach((kind, i) => {
    const count = study.heads.reduce((sum, heads) => sum + (heads ? heads.kind.filter((k) => k === i).length : 0), 0);
    if (!count) return;
    const chip = html(
      "button",
      { type: "button", class: "chip", "data-kind": i, "aria-pressed": "false" },
      swatch(i),
      `${kind.name} `,
      html("span", { class: "quiet" }, String(count)),
    );
    chip.addEventListener("click", () => {
      only = only === i ? null : i;
      show();
    });
    host.append(chip);
  });
}
