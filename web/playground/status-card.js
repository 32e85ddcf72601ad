/** A model or an app in the monitor: its name and state, its figures, and how many of its streams ran lately. */

import { LineChart } from "./charts.js";
import { h, setText } from "./dom.js";
import { HISTORY_SECONDS } from "./metrics.js";

/**
 * @typedef {object} Shown
 * @property {string} title
 * @property {string} kind  beside the title
 * @property {string} state  "" nothing to say
 * @property {"good" | "busy" | "bad" | "plain"} tone  of the state
 * @property {number} hue
 * @property {[label: string, value: string, title?: string][]} figures  always the same labels
 * @property {{ age: number, value: number | null }[]} points  streams running
 * @property {number} top
 */

export class StatusCard {
  #figures;

  /** @param {string} testid @param {string} name */
  constructor(testid, name) {
    this.title = h("h3");
    this.kind = h("span", { class: "hint" });
    this.state = h("span", { class: "model-state" });
    this.#figures = h("dl", { class: "figures" });
    this.chart = new LineChart(`Streams of ${name} running, last two minutes`, HISTORY_SECONDS);
    this.element = h(
      "section",
      { class: "status-card", "data-testid": testid, "data-name": name, "aria-label": name },
      h("header", {}, h("span", { class: "dot" }), this.title, this.kind, this.state),
      this.#figures,
      this.chart.element,
      h(
        "p",
        { class: "axis", "aria-hidden": "true" },
        h("span", {}, "2 min ago"),
        h("span", {}, "streams running"),
        h("span", {}, "now"),
      ),
    );
  }

  /** @param {Shown} shown */
  render({ title, kind, state, tone, hue, figures, points, top }) {
    setText(this.title, title);
    this.title.title = title;
    setText(this.kind, kind);
    setText(this.state, state);
    this.state.dataset.tone = tone;
    this.element.style.setProperty("--hue", String(hue));
    if (this.#figures.children.length !== figures.length)
      this.#figures.replaceChildren(
        ...figures.map(([label]) => h("div", {}, h("dt", {}, label), h("dd"))),
      );
    for (const [index, [, value, hint]] of figures.entries()) {
      const entry = this.#figures.children[index];
      if (!(entry instanceof HTMLElement)) continue;
      if (hint) entry.title = hint;
      setText(/** @type {Node} */ (entry.lastChild), value);
    }
    this.chart.update(points, top);
  }
}

/** As many cards as there are things, each kept as long as its thing is there. */
export class StatusCards {
  #testid;
  /** @type {Map<string, StatusCard>} */
  #cards = new Map();

  /** @param {string} testid */
  constructor(testid) {
    this.#testid = testid;
    this.element = h("div", { class: "status-cards" });
  }

  /** @param {Shown[]} all */
  render(all) {
    const names = new Set(all.map(({ title }) => title));
    for (const [name, { element }] of this.#cards) {
      if (names.has(name)) continue;
      element.remove();
      this.#cards.delete(name);
    }
    for (const shown of all) {
      let card = this.#cards.get(shown.title);
      if (!card) {
        card = new StatusCard(this.#testid, shown.title);
        this.#cards.set(shown.title, card);
        this.element.append(card.element);
      }
      card.render(shown);
    }
  }
}
