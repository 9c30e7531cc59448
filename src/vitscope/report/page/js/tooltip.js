// The one tooltip; also read aloud, since it is a status region.

const tooltip = find("#tooltip");

/** Show content beside a point of the window. content: nodes or text. */
function showTooltip(content, x, y) {
  tooltip.replaceChildren(...[content].flat());
  tooltip.hidden = false;
  const { width, height } = tooltip.getBoundingClientRect();
  const within = (value, most) => `${Math.max(8, Math.min(value, most - 8))}px`;
  const left = x + 16 + width < innerWidth - 8 ? x + 16 : x - 16 - width;
  const beside = left >= 8;
  const above = y - 20 - height >= 8 ? y - 20 - height : y + 24; // no room beside: never on top of what is read
  tooltip.style.left = within(beside ? left : x - width / 2, innerWidth - width);
  tooltip.style.top = within(beside ? y - height / 2 : above, innerHeight - height);
}

function hideTooltip() {
  tooltip.hidden = true;
}

/** A small table: heading, then rows of {model, text, value, low, high, nearest}. */
function valueTable(heading, rows, note = "") {
  const table = html(
    "table",
    {},
    rows.map((row) =>
      html(
        "tr",
        { class: row.nearest ? "nearest" : null },
        html("td", {}, modelMark(row.model)),
        html("td", {}, row.text ?? models[row.model].title),
        html("td", {}, number(row.value)),
        html("td", {}, row.range ?? interval(row.low, row.high)),
      ),
    ),
  );
  return [html("b", {}, heading), table, note ? html("span", { class: "quiet" }, note) : ""];
}

addEventListener("scroll", hideTooltip, { passive: true });
addEventListener("keydown", (event) => event.key === "Escape" && hideTooltip());
