// What the reader has chosen: models that are isolated, and one head. Everything on the page follows.

const selection = { only: new Set(), head: null };
const isolationListeners = [];
const headListeners = [];

const visible = (model) => selection.only.size === 0 || selection.only.has(model);

/** Fade what belongs to models that are not chosen, everywhere within `root`. */
function fade(root = document) {
  for (const element of findAll("[data-model]", root)) {
    element.classList.toggle("away", !visible(Number(element.dataset.model)));
  }
}

/** Add these models to the chosen ones, or take them out if all are chosen already. */
function toggleOnly(members) {
  const all = members.every((model) => selection.only.has(model));
  members.forEach((model) => (all ? selection.only.delete(model) : selection.only.add(model)));
  if (selection.only.size === models.length) selection.only.clear();
  isolationChanged();
}

function showAll() {
  selection.only.clear();
  isolationChanged();
}

function isolationChanged() {
  const anchor = document.elementFromPoint(innerWidth / 2, innerHeight / 2);
  const before = anchor?.getBoundingClientRect().top;
  document.body.classList.toggle("isolating", selection.only.size > 0);
  fade();
  isolationListeners.forEach((listener) => listener());
  const after = anchor?.getBoundingClientRect();
  if (after?.height) scrollBy({ top: after.top - before, behavior: "instant" }); // what was being read stays in place
}

/** Choose a head; layer and head are 0-based. */
function pickHead(model, layer, head) {
  selection.head = { model, layer, head };
  headListeners.forEach((listener) => listener(selection.head));
}

const whenIsolated = (listener) => isolationListeners.push(listener);
const whenPicked = (listener) => headListeners.push(listener);
