import { codeView } from "./code.js";
import { h } from "./dom.js";

/**
 * The two views of a panel: what it does, and the code that does the same. Arrow keys change
 * between them; the code is loaded when it is first looked at. Knows no store.
 */
export class Tabs {
  /** @type {HTMLButtonElement[]} */
  #tabs;
  #code;
  #changed;

  /**
   * @param {"chat" | "listen" | "speak" | "embed" | "conversation" | "monitor"} panel
   * @param {{ name: string, label: string, content: (Node | string)[] }} view
   * @param {(code: boolean) => void} changed
   */
  constructor(panel, view, changed) {
    this.#changed = changed;
    this.#code = codeView(panel);
    this.#tabs = [
      this.#createTab(panel, view.name, view.label, false),
      this.#createTab(panel, "code", "Code", true),
    ];
    this.list = h(
      "div",
      {
        class: "tabs",
        role: "tablist",
        "aria-label": `${panel.charAt(0).toUpperCase()}${panel.slice(1)} views`,
        onkeydown: (/** @type {KeyboardEvent} */ event) => this.#move(event),
      },
      ...this.#tabs,
    );
    this.pane = createPane(panel, view.name, ...view.content);
    this.codePane = createPane(panel, "code", this.#code.element);
    this.#mark(false);
  }

  get showsCode() {
    return !this.codePane.hidden;
  }

  /** @param {boolean} code */
  show(code) {
    this.#mark(code);
    if (code) void this.#code.load();
    this.#changed(code);
  }

  /** @param {boolean} code */
  #mark(code) {
    this.codePane.hidden = !code;
    this.pane.hidden = code;
    for (const [index, tab] of this.#tabs.entries()) {
      const selected = index === Number(code);
      tab.setAttribute("aria-selected", String(selected));
      tab.tabIndex = selected ? 0 : -1;
    }
  }

  /** @param {KeyboardEvent} event */
  #move(event) {
    if (event.key !== "ArrowLeft" && event.key !== "ArrowRight") return;
    this.show(!this.showsCode);
    this.#tabs[Number(this.showsCode)].focus();
  }

  /** @param {string} panel @param {string} name @param {string} label @param {boolean} code */
  #createTab(panel, name, label, code) {
    return h(
      "button",
      {
        type: "button",
        role: "tab",
        class: "tab",
        id: `${panel}-tab-${name}`,
        "aria-controls": `${panel}-${name}`,
        onclick: () => this.show(code),
      },
      label,
    );
  }
}

/** @param {string} panel @param {string} name @param {...(Node | string)} content */
function createPane(panel, name, ...content) {
  return h(
    "div",
    {
      class: "scroller",
      id: `${panel}-${name}`,
      role: "tabpanel",
      "aria-labelledby": `${panel}-tab-${name}`,
    },
    ...content,
  );
}
