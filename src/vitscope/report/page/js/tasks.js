// Why: each task's score at every layer.

function taskCharts() {
  for (const host of findAll("[data-task]")) {
    const task = study.tasks[Number(host.dataset.task)];
    const chart = { ...task, name: `${task.title}, ${task.dataset}`, floor: 0, height: 250, labels: false };
    takeAway(host.parentElement, {
      name: `${task.title}, ${task.dataset}`,
      draw: (stage) => drawLines(stage, { ...chart, labels: true, height: 380 }, WIDTH),
      rows: () => seriesRows(task.series, task),
    });
    responsive(host, (width) => drawLines(host, chart, width));
  }
}

/** The table of best layers can be taken along, too. */
function bestTable() {
  const figure = find("#chart-table");
  if (figure) takeAway(figure, { name: "Best layers", rows: () => tableRows(find("table", figure)) });
}
