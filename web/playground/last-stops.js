/** What the last stops of a panel took: a bar for each, and their median. Hidden until there is one. */

import { Sparkline } from "./charts.js";
import { h, setText } from "./dom.js";
import { MAX_STOPS, stopsText } from "./ending.js";

export class LastStops {
  #sparkline = new Sparkline(MAX_STOPS);
  #text = h("span");

  /** @param {string} what  was stopped */
  constructor(what) {
    this.element = h(
      "p",
      {
        class: "stops",
        title: `The last ${MAX_STOPS} stops of ${what}, from the server reading the cancel to confirmed release; late: not confirmed within 100 ms`,
      },
      this.#sparkline.element,
      this.#text,
    );
  }

  /** @param {(number | "late")[]} stops */
  render(stops) {
    this.element.hidden = stops.length === 0;
    this.#sparkline.update(stops);
    setText(this.#text, stopsText(stops));
  }
}
