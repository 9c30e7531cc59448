// Why: each task's score at every layer.

function taskCharts() {
  for (const host of findAll("[data-task]")) {
    const task = study.tasks[Number(host.dataset.task)];
    const chart = { ...task, name: `${task.title}, ${task.dataset}`, floor: 0, height: 250, labels: false };
    responsive(host, (width) => drawLines(host, chart, width));
  }
}
