// Light or dark, and the ramps that maps and heat maps are painted with.

const SEQUENTIAL = {
  light: ["#fbfaf6", "#cfe3e6", "#7fb7c4", "#2f7f9a", "#134a6b", "#0b2440"],
  dark: ["#1b202c", "#1d3445", "#245a72", "#4596aa", "#a9d6d6", "#fdf9e8"],
};
const HEAT = {
  light: ["#fff9ec", "#fbd9a4", "#f39a5f", "#d4485f", "#8c2a6b", "#2c1648"],
  dark: ["#14162a", "#3b1f5b", "#8c2a6b", "#d9485f", "#f99b5d", "#fdf1b8"],
};

const darkSystem = matchMedia("(prefers-color-scheme: dark)");
const printing = matchMedia("print");
const themeListeners = [];

function isDark() {
  const chosen = document.documentElement.dataset.theme;
  return !printing.matches && (chosen ? chosen === "dark" : darkSystem.matches);
}

/** Draw now, and again whenever the theme changes. */
function themed(draw) {
  themeListeners.push(draw);
  draw();
}

const retheme = () => themeListeners.forEach((draw) => draw());

const rampCache = new Map();
/** 256 colours [r, g, b]. */
function ramp(stops) {
  const key = isDark() ? "dark" : "light";
  const cacheKey = stops[key].join();
  if (!rampCache.has(cacheKey)) {
    const anchors = stops[key].map((hex) => [1, 3, 5].map((i) => parseInt(hex.slice(i, i + 2), 16)));
    const colours = Array.from({ length: 256 }, (_, i) => {
      const at = (i / 255) * (anchors.length - 1);
      const left = Math.min(Math.floor(at), anchors.length - 2);
      return anchors[left].map((c, k) => Math.round(c + (at - left) * (anchors[left + 1][k] - c)));
    });
    rampCache.set(cacheKey, colours);
  }
  return rampCache.get(cacheKey);
}

/** How much light a channel of 0 to 255 gives, from 0 to 1 (sRGB). */
const linearLight = (value) => (value <= 10.3 ? value / 3294.6 : ((value / 255 + 0.055) / 1.055) ** 2.4);
/** Black or white, whichever can be read better on top of [r, g, b]: at least 4.5 : 1 on any colour. */
const inkOn = ([r, g, b]) =>
  0.2126 * linearLight(r) + 0.7152 * linearLight(g) + 0.0722 * linearLight(b) > 0.179 ? "#000000" : "#ffffff";

function startTheme() {
  const button = find("#theme");
  const remember = (value) => {
    try {
      localStorage.setItem("vitscope-theme", value);
    } catch {
      // a browser that keeps nothing for files: the choice lasts until the page is closed
    }
  };
  const show = () => {
    button.setAttribute("aria-pressed", isDark());
    retheme();
  };
  try {
    const kept = localStorage.getItem("vitscope-theme");
    if (kept === "light" || kept === "dark") document.documentElement.dataset.theme = kept;
  } catch {
    // as above
  }
  button.addEventListener("click", () => {
    document.documentElement.dataset.theme = isDark() ? "light" : "dark";
    remember(document.documentElement.dataset.theme);
    show();
  });
  darkSystem.addEventListener("change", show);
  printing.addEventListener("change", show);
  show();
}
