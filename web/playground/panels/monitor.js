/**
 * Monitor: the machine's memory and cores, each model and each app, and the server's counters, over the last two
 * minutes. What this connection may not read is said, with what to do.
 */

import { Counters } from "../counters.js";
import { h, setText } from "../dom.js";
import { MachineView } from "../machine-view.js";
import { panelHead } from "../panel-head.js";
import { mayRead } from "../poller.js";
import { StatusCards } from "../status-card.js";
import { appShown, modelShown } from "../status-shown.js";
import { Tabs } from "../tabs.js";

/** @import { App } from "../main.js" */

const NO_APPS =
  "No apps are declared, so every connection may do everything. An [apps.NAME] table in plait.toml, and plait token create, give each its own rights and limits.";

/** @param {App} app @param {HTMLElement} root @returns {import("../panels.js").PanelView} */
export function mount(app, root) {
  return new MonitorPanel(app, root);
}

class MonitorPanel {
  #store;
  #root;

  /** @param {App} app @param {HTMLElement} root */
  constructor({ store }, root) {
    this.#store = store;
    this.#root = root;
    this.machine = new MachineView();
    this.models = new StatusCards("model-card");
    this.apps = new StatusCards("app-card");
    this.noApps = h("p", { class: "hint" }, NO_APPS);
    this.counters = new Counters(store);
    this.denied = h("p", { class: "record-notice", "data-testid": "status-denied", hidden: true });
    this.waiting = h(
      "p",
      { class: "hint" },
      "Waiting for the first reading of the server's figures.",
    );
    this.links = h("span", {}, " · ", ...["/v1/status", "/metrics"].flatMap(linkTo));
    this.status = h(
      "div",
      { class: "readings", hidden: true },
      this.machine.element,
      h("h2", { class: "section-title" }, "Models"),
      this.models.element,
      h("h2", { class: "section-title" }, "Apps"),
      this.noApps,
      this.apps.element,
    );
    this.counters.element.hidden = true;
    this.tabs = new Tabs(
      "monitor",
      {
        name: "figures",
        label: "Figures",
        content: [this.waiting, this.denied, this.status, this.counters.element],
      },
      () => this.#render(),
    );
    this.tabs.pane.tabIndex = 0; // nothing in it takes the focus, and it scrolls
    root.append(
      panelHead(
        "Monitor",
        [this.tabs.list],
        [h("p", { class: "hint" }, "last two minutes, every connection", this.links)],
      ),
      this.tabs.pane,
      this.tabs.codePane,
    );
    store.subscribe(["metrics", "machine", "panel", "connection"], () => this.#render());
    this.#render();
  }

  focus() {
    this.tabs.pane.focus();
  }

  #render() {
    const { sample, readings, rights, connection, readingRefused } = this.#store.state;
    this.links.hidden = connection.guarded; // a link cannot carry the token
    if (this.#root.hidden || this.tabs.showsCode) return;
    const fresh = connection.state === "open"; // else old figures would pass for facts
    const denied = deniedText(rights, readingRefused);
    this.denied.hidden = denied === "";
    setText(this.denied, denied);
    const reading = denied === "" ? readings.at(-1) : undefined;
    this.status.hidden = !reading;
    this.counters.element.hidden = !sample;
    this.waiting.hidden = reading !== undefined || sample !== null || denied !== "";
    this.counters.render(fresh);
    if (reading) this.#renderStatus(readings, reading, fresh);
  }

  /**
   * @param {import("../status-reading.js").Reading[]} history
   * @param {import("../status-reading.js").Reading} reading
   * @param {boolean} fresh
   */
  #renderStatus(history, reading, fresh) {
    this.status.classList.toggle("dim", !fresh);
    this.machine.render(history, reading);
    this.models.render(reading.models.map((_, index) => modelShown(history, reading, index)));
    this.apps.render(reading.apps.map((_, index) => appShown(history, reading, index)));
    this.noApps.hidden = reading.apps.length > 0;
  }
}

/** @param {string} path @param {number} place */
function linkTo(path, place) {
  return [place > 0 && " · ", h("a", { href: path, target: "_blank", rel: "noopener" }, path)];
}

/**
 * Why there is no status; "" nothing is in the way.
 * @param {string[] | null} rights @param {number | null} refused
 */
export function deniedText(rights, refused) {
  const app =
    "Models and apps are shown to apps with the capability admin, which this one lacks: add it to its capabilities in plait.toml.";
  if (rights !== null && !mayRead(rights, "admin"))
    return mayRead(rights, "metrics")
      ? app
      : `${app} Nor has it the capability metrics, for the server's counters.`;
  if (refused === 401)
    return "The server did not accept the token for /v1/status. Reload the page to give another.";
  if (refused === 403) return app;
  return refused === null
    ? ""
    : `The server answered /v1/status with HTTP ${refused}. Trying again.`;
}
