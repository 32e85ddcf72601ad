/** Calls when the theme becomes another: what is drawn on a canvas does not follow by itself. @param {() => void} draw */
export function onThemeChange(draw) {
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
  new MutationObserver(draw).observe(document.documentElement, {
    attributes: true,
    attributeFilter: ["data-theme"],
  });
}
