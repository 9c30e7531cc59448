// Getting images in: drop, paste, pick, roll, draw, or choose from the folder.

const fileNames = new Map(); // of uploaded images, as their owner calls them
let target = "image"; // whom the next image is for: "image" or "second"

async function take(blob, where = "image") {
  try {
    progress.note = "reading the image";
    showProgress();
    const name = await source.upload(blob);
    fileNames.set(name, blob.name ?? "drawing.png");
    change({ [where]: name });
  } catch (error) {
    complain(error);
  } finally {
    progress.note = "";
    showProgress();
  }
}

function startImages() {
  const picker = find("#file");
  findAll("[data-open]").forEach((button) => {
    button.hidden = !source.upload;
    button.addEventListener("click", () => {
      target = button.dataset.open;
      picker.click();
    });
  });
  picker.addEventListener("change", () => {
    if (picker.files.length) take(picker.files[0], target);
    picker.value = "";
  });
  findAll("[data-roll]").forEach((button) => {
    button.hidden = !source.roll;
    button.addEventListener("click", () => change({ [button.dataset.roll]: source.roll() }));
  });
  find("#second-clear").addEventListener("click", () => change({ second: "" }));
  if (source.upload) {
    addEventListener("dragover", (event) => {
      event.preventDefault();
      document.body.classList.add("dropping");
    });
    addEventListener("dragleave", (event) => event.relatedTarget ?? document.body.classList.remove("dropping"));
    addEventListener("drop", (event) => {
      event.preventDefault();
      document.body.classList.remove("dropping");
      const where = event.target.closest?.("#second") ? "second" : "image";
      if (event.dataTransfer.files.length) take(event.dataTransfer.files[0], where);
    });
    addEventListener("paste", (event) => {
      const file = [...event.clipboardData.items].find((item) => item.type.startsWith("image/"))?.getAsFile();
      if (file) take(file);
    });
    startDrawing();
  }
  find("#draw").hidden = !source.upload;
  const shelf = find("#gallery");
  const buttons = source.gallery.slice(0, 400).map(({ name, title }) => {
    const image = html("img", { src: source.thumb(0, name), alt: "", loading: "lazy", width: 56, height: 56 });
    const button = html("button", { type: "button", class: "thumb-image", "data-name": name, "aria-label": title, title }, image);
    button.addEventListener("click", (event) => change({ [event.shiftKey || event.altKey ? "second" : "image"]: name }));
    return button;
  });
  shelf.replaceChildren(...buttons);
}

function markGallery() {
  const host = find("#gallery");
  const now = `${state.image} ${state.second}`;
  if (host.dataset.now === now) return;
  host.dataset.now = now;
  findAll("#gallery [data-name]").forEach((button) => {
    button.setAttribute("aria-pressed", button.dataset.name === state.image);
    button.classList.toggle("second", button.dataset.name === state.second);
  });
  const chosen = find("[aria-pressed=true]", host);
  if (!chosen) return;
  const [across, down] = [chosen.offsetLeft - host.offsetLeft, chosen.offsetTop - host.offsetTop];
  if (across < host.scrollLeft || across + chosen.offsetWidth > host.scrollLeft + host.clientWidth) host.scrollLeft = across - 60;
  if (down < host.scrollTop || down + chosen.offsetHeight > host.scrollTop + host.clientHeight) host.scrollTop = down - 60;
}

/** A sheet to draw on: every stroke is looked at as soon as it ends. */
function startDrawing() {
  const dialog = find("#drawing");
  const canvas = find("#sheet");
  const context = canvas.getContext("2d");
  let [colour, last] = ["#1c1e2a", null];
  const clear = () => {
    context.fillStyle = "#f7f3e8";
    context.fillRect(0, 0, canvas.width, canvas.height);
  };
  const place = (event) => {
    const box = canvas.getBoundingClientRect();
    return [((event.clientX - box.left) / box.width) * canvas.width, ((event.clientY - box.top) / box.height) * canvas.height];
  };
  const stroke = (event) => {
    const next = place(event);
    context.lineCap = "round";
    context.lineWidth = Number(find("#brush").value);
    context.strokeStyle = colour;
    context.beginPath();
    line(context, ...(last ?? next), ...next);
    context.stroke();
    last = next;
  };
  canvas.addEventListener("pointerdown", (event) => {
    canvas.setPointerCapture(event.pointerId);
    stroke(event);
  });
  canvas.addEventListener("pointermove", (event) => last && stroke(event));
  canvas.addEventListener("pointerup", () => {
    last = null;
    canvas.toBlob((blob) => take(blob));
  });
  findAll("[data-colour]").forEach((button) => {
    button.style.background = button.dataset.colour;
    button.addEventListener("click", () => (colour = button.dataset.colour));
  });
  find("#clear").addEventListener("click", clear);
  find("#draw").addEventListener("click", () => {
    dialog.hidden = !dialog.hidden;
    find("#draw").setAttribute("aria-expanded", !dialog.hidden);
  });
  clear();
}
