// Runs before the first paint, so a reader who chose dark never sees a white flash.
// A classic script on purpose: modules run after parsing.
(() => {
  try {
    const theme = localStorage.getItem("plait.theme");
    if (theme === "light" || theme === "dark") document.documentElement.dataset.theme = theme;
  } catch {
    // Storage may be forbidden; the page then follows the system.
  }
})();
