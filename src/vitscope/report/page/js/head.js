// The picked head: its maps large, its kind, its numbers.

function headPanel() {
  const host = find("#head");
  if (!host) return;
  const draw = () =>
    selection.head && study.heads[selection.head.model] && host.replaceChildren(...headParts(selection.head));
  const home = host.parentElement;
  const narrow = matchMedia("(max-width: 900px)");
  const settle = () => {
    const grid = selection.head && find(`#atlas-grids [data-model="${selection.head.model}"]`);
    if (narrow.matches && grid) grid.after(host);
    else home.append(host);
  };
  narrow.addEventListener("change", settle);
  whenPicked(settle);
  whenPicked(draw);
  themed(draw);
  whenIsolated(followIsolation);
}

/** When the model of the picked head is put aside, the same layer and head of one that is shown is picked. */
function followIsolation() {
  if (!selection.head || visible(selection.head.model)) return;
  const model = study.heads.findIndex((heads, i) => heads && visible(i));
  if (model < 0) return;
  const { layers, heads } = study.heads[model];
  pickHead(model, Math.min(selection.head.layer, layers - 1), Math.min(selection.head.head, heads - 1));
}

function headParts({ model, layer, head }) {
  const heads = study.heads[model];
  const index = layer * heads.heads + head;
  const views = [
    headMap(
      maps(heads.aligned),
      index,
      SEQUENTIAL,
      evenTimesFive(model),
      "by offset from the token that looks",
      offsetText,
    ),
    ...SOURCES.filter(([name]) => heads.maps[name] && name !== "rollout").map(([name, title]) => {
      const packed = maps(heads.maps[name]);
      return headMap(packed, index, HEAT, placeScale(packed), `by place, from ${title}`, placeText);
    }),
  ];
  const stability = heads.stability?.[index];
  const late = heads.late?.[index] ?? -1;
  return [
    html(
      "h3",
      {},
      modelMark(model),
      html("span", {}, models[model].title),
      html("span", { class: "quiet" }, `layer ${layer + 1}, head ${head + 1}`),
    ),
    html("div", { class: "head-maps" }, views),
    html(
      "p",
      { class: "head-kind" },
      swatch(heads.kind[index]),
      html(
        "span",
        {},
        html("b", {}, kindText(model, index)),
        `: ${study.kinds[heads.kind[index]].words}.`,
        late >= 0 ? ` Its maps look ${study.late[late].name}: ${study.late[late].words}.` : "",
      ),
    ),
    html("dl", {}, numberRows(heads, index, stability)),
  ];
}

function numberRows(heads, index, stability) {
  const rows = heads.numbers
    .filter((one) => one.value[index] !== null)
    .flatMap((one) => [
      html("dt", {}, one.title),
      html("dd", {}, `${number(one.value[index])} `, html("small", {}, interval(one.low[index], one.high[index]))),
    ]);
  if (stability !== null && stability !== undefined) {
    rows.push(
      html("dt", {}, "stability of its kind"),
      html("dd", {}, `${Math.round(100 * stability)} `, html("small", {}, "% of resamples")),
    );
  }
  return rows;
}

function headMap(packed, index, stops, least, caption, words) {
  const canvas = html("canvas", { role: "img", "aria-label": `Attention ${caption}` });
  fillWithMap(canvas, packed, index, stops, least);
  canvas.addEventListener("pointermove", (event) => {
    const bounds = canvas.getBoundingClientRect();
    const i = Math.min(
      packed.height - 1,
      Math.max(0, Math.floor(((event.clientY - bounds.top) / bounds.height) * packed.height)),
    );
    const j = Math.min(
      packed.width - 1,
      Math.max(0, Math.floor(((event.clientX - bounds.left) / bounds.width) * packed.width)),
    );
    const value = packed.value(index, i * packed.width + j);
    showTooltip([html("b", {}, `${number(100 * value)} %`), ` ${words(packed, i, j)}`], event.clientX, event.clientY);
  });
  canvas.addEventListener("pointerleave", hideTooltip);
  return html("div", { class: "head-map" }, canvas, html("p", {}, caption[0].toUpperCase() + caption.slice(1)));
}

function offsetText(packed, i, j) {
  const [down, across] = [i - (packed.height - 1) / 2, j - (packed.width - 1) / 2];
  return down === 0 && across === 0 ? "on the token itself" : `of the attention, ${direction([down, across]).words}`;
}

const placeText = (packed, i, j) => `in row ${i + 1}, column ${j + 1}`;
