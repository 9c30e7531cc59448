// Start: each part draws itself from the study.

/** Mark the chapter that is being read. */
function followChapters() {
  const links = findAll(".bar nav a");
  const seen = new Map();
  const observer = new IntersectionObserver(
    (entries) => {
      entries.forEach((entry) => seen.set(entry.target.id, entry.isIntersecting));
      const current = links.filter((link) => seen.get(link.hash.slice(1))).at(-1);
      links.forEach((link) =>
        link === current ? link.setAttribute("aria-current", "true") : link.removeAttribute("aria-current"),
      );
    },
    { rootMargin: "-20% 0px -70% 0px" },
  );
  links
    .map((link) => find(link.hash))
    .forEach((section, i) => (section ? observer.observe(section) : links[i].remove()));
}

/** A finding's link chooses the measure it rests on before the page scrolls there. */
function followFindings() {
  for (const link of findAll("a[data-measure]")) {
    link.addEventListener("click", () => curveFigures.get(link.hash.slice(1))?.(link.dataset.measure));
  }
}

/** What is wider than its place says so, and fades at the side where it goes on. */
function showScrolling() {
  for (const area of findAll(".scroll, .bar nav, .legend")) {
    const table = area.matches(".scroll");
    const hint = table && html("p", { class: "scrolls", "aria-hidden": "true", hidden: true }, "scrolls sideways →");
    if (hint) area.before(hint);
    const show = () => {
      area.classList.toggle("more", area.scrollLeft + area.clientWidth < area.scrollWidth - 4);
      if (hint) hint.hidden = area.scrollWidth <= area.clientWidth + 4 || !area.clientWidth;
    };
    area.addEventListener("scroll", show, { passive: true });
    const observer = new ResizeObserver(show);
    [area, ...area.children].forEach((part) => observer.observe(part));
  }
}

/** Paper has no clicks: what is folded is printed open. */
function openForPrint() {
  const opened = [];
  addEventListener("beforeprint", () =>
    findAll("details:not([open])").forEach((part) => {
      part.open = true;
      opened.push(part);
    }),
  );
  addEventListener("afterprint", () => opened.splice(0).forEach((part) => (part.open = false)));
}

/** Begin with a head worth seeing: the first one that looks at a fixed neighbour, or simply the first. */
function firstHead() {
  const model = study.heads.findIndex(Boolean);
  if (model < 0) return;
  const { kind, heads } = study.heads[model];
  const index = Math.max(
    0,
    kind.findIndex((one) => study.kinds[one].name === "offset local"),
  );
  pickHead(model, Math.floor(index / heads), index % heads);
}

startTheme(); // first, so that nothing is drawn twice
findAll("[data-curves]").forEach(curveFigure);
kindsFigure();
atlasGrids();
headPanel();
firstHead();
viewsFigure();
similarityFigure();
depthFigure();
spacesFigure();
taskCharts();
bestTable();
answersFigure();
pictureFigures();
citation();
startLegend();
followChapters();
followFindings();
showScrolling();
openForPrint();
