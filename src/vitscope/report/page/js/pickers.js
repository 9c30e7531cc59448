// Controls: one of a few as buttons, one of many as a list.

let pickerCount = 0;

/** options: [[value, title]], a title being text or an element; calls change(value). Returns {element, get, set}. */
function picker(name, options, change, few = 5) {
  const id = `picker-${(pickerCount += 1)}`;
  if (options.length > few || options.some(([, title]) => title.length > 34))
    return listPicker(id, name, options, change);
  const inputs = options.map(([value], i) => html("input", { type: "radio", name: id, value, checked: i === 0 }));
  const element = html(
    "fieldset",
    { class: "picker" },
    html("legend", {}, name),
    html(
      "div",
      { class: "options" },
      options.map(([, title], i) => html("label", {}, inputs[i], html("span", {}, title))),
    ),
  );
  element.addEventListener("change", () => change(inputs.find((input) => input.checked).value));
  const get = () => inputs.find((input) => input.checked).value;
  const set = (value) => inputs.forEach((input) => (input.checked = input.value === String(value)));
  return { element, get, set };
}

function listPicker(id, name, options, change) {
  const select = html(
    "select",
    { id },
    options.map(([value, title]) => html("option", { value }, title)),
  );
  select.addEventListener("change", () => change(select.value));
  const element = html("div", { class: "picker" }, html("label", { for: id }, name), select);
  return { element, get: () => select.value, set: (value) => (select.value = String(value)) };
}

/** A slider from `low` to `high`, its value beside its name. */
function slider(name, high, value, change, low = 1) {
  const id = `picker-${(pickerCount += 1)}`;
  const output = html("output", { for: id }, String(value));
  const input = html("input", { type: "range", id, min: low, max: high, value });
  input.addEventListener("input", () => {
    output.textContent = input.value;
    change(Number(input.value));
  });
  const element = html("div", { class: "picker" }, html("label", { for: id }, `${name} `, output), input);
  const set = (next) => {
    input.value = next;
    output.textContent = String(next);
  };
  return { element, get: () => Number(input.value), set };
}
