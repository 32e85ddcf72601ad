/**
 * The panels in the order of their keys. Each is fetched when it is first shown, so that the page begins with no more
 * than the first one needs, and kept from then on: a stream goes on while another panel is looked at. A panel is one
 * file in panels/ with mount(app, root).
 *
 * @typedef {object} PanelView
 * @property {() => void} [focus]  where typing starts
 * @property {() => void} [press]  what Ctrl+Enter does where nothing has the focus
 *
 * @typedef {object} Panel
 * @property {string} name
 * @property {string} label
 * @property {string} [short]  the label where there is little room
 * @property {string} icon
 * @property {() => Promise<{ mount: (app: App, root: HTMLElement) => PanelView }>} load
 */

import { h, icon } from "./dom.js";
import { panelHead } from "./panel-head.js";
import * as chat from "./panels/chat.js";

/** @import { App } from "./main.js" */

/** @type {Panel[]} */
export const PANELS = [
  { name: "chat", label: "Chat", icon: "chat", load: async () => chat },
  {
    name: "listen",
    label: "Listen",
    icon: "listen",
    load: () => import("./panels/listen.js"),
  },
  { name: "speak", label: "Speak", icon: "speak", load: () => import("./panels/speak.js") },
  { name: "embed", label: "Embed", icon: "embed", load: () => import("./panels/embed.js") },
  {
    name: "conversation",
    label: "Conversation",
    short: "Talk",
    icon: "conversation",
    load: () => import("./panels/conversation.js"),
  },
  {
    name: "monitor",
    label: "Monitor",
    icon: "monitor",
    load: () => import("./panels/monitor.js"),
  },
];

export class PanelStack {
  #app;
  #element;
  /** @type {Map<string, { root: HTMLElement, view: Promise<PanelView> }>} */
  #mounted = new Map();
  #shown = "";

  /** @param {App} app @param {HTMLElement} element */
  constructor(app, element) {
    this.#app = app;
    this.#element = element;
  }

  /** @param {string} name */
  show(name) {
    const panel = PANELS.find((known) => known.name === name);
    if (!panel) return;
    if (!this.#mounted.has(name)) this.#mount(panel);
    for (const [other, { root }] of this.#mounted) root.hidden = other !== name;
    this.#shown = name;
  }

  /** Typing starts here, as soon as there is something to type in. */
  async focus() {
    (await this.#mounted.get(this.#shown)?.view)?.focus?.();
  }

  async press() {
    (await this.#mounted.get(this.#shown)?.view)?.press?.();
  }

  /** @param {Panel} panel */
  #mount(panel) {
    const { name, label } = panel;
    const root = h("section", { class: "panel", "data-panel": name, "aria-label": label });
    this.#element.append(root);
    this.#mounted.set(name, { root, view: this.#load(panel, root) });
  }

  /** @param {Panel} panel @param {HTMLElement} root @returns {Promise<PanelView>} */
  async #load(panel, root) {
    try {
      return (await panel.load()).mount(this.#app, root);
    } catch (error) {
      root.replaceChildren(...this.#failed(panel, root, error));
      return {};
    }
  }

  /** A server that went away before the panel was looked at. @param {Panel} panel @param {HTMLElement} root @param {unknown} error */
  #failed(panel, root, error) {
    const retry = () => {
      root.remove();
      this.#mounted.delete(panel.name);
      this.#app.showPanel(panel.name);
    };
    return [
      panelHead(panel.label, [], []),
      h(
        "section",
        { class: "empty", "data-testid": "not-loaded" },
        h("h2", {}, "This panel could not be loaded"),
        h("p", {}, "Is plait serve still running? Once it is, try again."),
        h("p", { class: "hint" }, error instanceof Error ? error.message : String(error)),
        h("button", { type: "button", class: "button", onclick: retry }, icon("retry"), "Retry"),
      ),
    ];
  }
}
