// The legend isolates models, series and teachings, everywhere at once.

function startLegend() {
  const legend = find(".legend");
  const members = (chip) => chip.dataset.members.split(",").map(Number);
  const chips = findAll(".chip:not(.all)", legend);
  for (const chip of chips) chip.addEventListener("click", () => toggleOnly(members(chip)));
  const all = find("#show-all");
  all.addEventListener("click", () => {
    showAll();
    chips[0]?.focus();
  });
  addEventListener("keydown", (event) => event.key === "Escape" && selection.only.size && showAll());
  whenIsolated(() => {
    for (const chip of chips)
      chip.setAttribute(
        "aria-pressed",
        members(chip).every((model) => selection.only.has(model)),
      );
    all.hidden = selection.only.size === 0;
  });
}
