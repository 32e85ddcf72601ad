/** The rail: which panel, and the page's own switches. At phone width it is the bottom bar. */

import { h, icon, setIcon, setText } from "./dom.js";

/** @import { App } from "./main.js" */

/** In the order the button goes through them; the icon shows the one in force. */
const THEMES = /** @type {const} */ ([
  ["system", "system", "Auto"],
  ["light", "sun", "Light"],
  ["dark", "moon", "Dark"],
]);
const THEME_KEY = "plait.theme"; // theme.js reads it before the first paint

/** @param {App} app @param {HTMLElement} root @param {() => void} showHelp */
export function createRail(app, root, showHelp) {
  const panels = app.panels.map((panel, index) => ({
    name: panel.name,
    button: railButton(
      panel.icon,
      panel.label,
      () => app.showPanel(panel.name),
      `${panel.label} (${index + 1})`,
      panel.short,
    ),
  }));
  const wire = railButton("wire", "Wire", () => app.wire.toggle(), "Wire (w)");
  wire.dataset.testid = "wire-toggle";
  const help = railButton("help", "Keys", showHelp, "Keys (?)");
  help.classList.add("wide-only");
  const logo = h("img", {
    src: new URL("plait.svg", import.meta.url).pathname,
    alt: "",
    width: 28,
    height: 28,
  });
  root.append(
    h("a", { class: "brand", href: "/", "aria-label": "Plait" }, logo, h("span", {}, "Plait")),
    h("div", { class: "rail-panels" }, ...panels.map(({ button }) => button)),
    h("span", { class: "spacer" }),
    h("div", { class: "rail-tools" }, wire, createThemeButton(), help),
  );
  const showCurrent = () => {
    for (const { name, button } of panels) {
      if (name === app.store.state.panel) button.setAttribute("aria-current", "page");
      else button.removeAttribute("aria-current");
    }
  };
  app.store.subscribe(["panel"], showCurrent);
  app.wire.onToggle = (hadFocus) => {
    wire.setAttribute("aria-pressed", String(app.wire.open));
    if (hadFocus) wire.focus();
  };
  app.wire.onToggle(false);
  showCurrent();
}

function createThemeButton() {
  const root = document.documentElement;
  const current = () =>
    Math.max(
      0,
      THEMES.findIndex(([name]) => name === root.dataset.theme),
    );
  const button = railButton("system", "Theme", () => change(), "Theme");
  button.dataset.testid = "theme";
  const word = document.createTextNode("");
  button.lastElementChild?.replaceChildren(word, h("span", { class: "wide-only" }, " theme"));
  const show = () => {
    const [name, mark, label] = THEMES[current()] ?? THEMES[0];
    setIcon(/** @type {Element} */ (button.firstElementChild), mark);
    setText(word, label);
    button.title = name === "system" ? "Auto theme: as the system" : `${label} theme`;
    button.setAttribute("aria-label", button.title);
  };
  const change = () => {
    const [name] = THEMES[(current() + 1) % THEMES.length] ?? THEMES[0];
    if (name === "system") delete root.dataset.theme;
    else root.dataset.theme = name;
    localStorage.setItem(THEME_KEY, name);
    show();
  };
  show();
  return button;
}

/**
 * @param {string} mark @param {string} label @param {() => void} onclick @param {string} title
 * @param {string} [short]  the label where there is little room
 */
function railButton(mark, label, onclick, title, short) {
  return h(
    "button",
    { type: "button", class: "rail-button", title, onclick },
    icon(mark),
    h("span", { class: short && "wide-only" }, label),
    short && h("span", { class: "phone-only" }, short),
  );
}
