/** The machine in the monitor: where the memory of the budget goes, which cores compute, and whether it is short. */

import { LineChart } from "./charts.js";
import { h, setText } from "./dom.js";
import { formatBytes, formatCount, formatDuration, plural, streamHue } from "./format.js";
import { HISTORY_SECONDS } from "./metrics.js";
import { sharesOf } from "./status-reading.js";

/** @import { Reading } from "./status-reading.js" */

/** More squares than this say less than the number does. */
const MAX_SQUARES = 64;

export class MachineView {
  constructor() {
    this.memory = h("p", { class: "tile-value", "data-testid": "memory-used" }, "–");
    this.bar = h("div", { class: "budget", role: "img", "data-testid": "memory-bar" });
    this.legend = h("ul", { class: "legend" });
    this.pressure = h("p", {
      class: "record-notice",
      role: "status",
      hidden: true,
      "data-testid": "memory-pressure",
    });
    this.chart = new LineChart("Memory used, last two minutes", HISTORY_SECONDS);
    this.available = h("p", { class: "hint" });
    this.cores = h("p", { class: "tile-value", "data-testid": "cores-used" }, "–");
    this.squares = h("div", { class: "slots cores", "aria-hidden": "true" });
    this.uptime = h("p", { class: "hint" });
    this.element = h(
      "div",
      { class: "machine" },
      h(
        "section",
        { class: "tile memory" },
        h("h2", {}, "Memory"),
        this.memory,
        this.bar,
        this.legend,
        this.pressure,
        this.chart.element,
        h(
          "p",
          { class: "axis", "aria-hidden": "true" },
          h("span", {}, "2 min ago"),
          h("span", {}, "now"),
        ),
        this.available,
      ),
      h(
        "section",
        { class: "tile" },
        h("h2", {}, "Cores"),
        this.cores,
        this.squares,
        h("p", { class: "hint" }, "those all models together may compute on; lit while they do"),
        this.uptime,
      ),
    );
  }

  /** @param {Reading[]} history @param {Reading} reading */
  render(history, reading) {
    const { memory, cores, uptimeSeconds, server } = reading;
    setText(this.memory, `${formatBytes(memory.usedBytes)} of ${formatBytes(memory.budgetBytes)}`);
    this.#renderBar(reading);
    this.pressure.hidden = !memory.pressure;
    setText(
      this.pressure,
      memory.pressure
        ? `The machine is short of memory: ${formatBytes(memory.machineAvailableBytes)} left. New streams are refused until there is more; those running go on.`
        : "",
    );
    setText(this.available, `the machine has ${formatBytes(memory.machineAvailableBytes)} free`);
    const points = history.map((one) => ({
      age: (reading.at - one.at) / 1000,
      value: one.memory.usedBytes,
    }));
    this.chart.update(points, memory.budgetBytes);
    setText(this.cores, `${formatCount(cores.used)} of ${formatCount(cores.budget)}`);
    this.#renderSquares(cores);
    setText(this.uptime, `${server}, up for ${formatDuration(uptimeSeconds)}`);
  }

  /** @param {Reading} reading */
  #renderBar(reading) {
    const { models, prefixBytes, streamBytes } = sharesOf(reading);
    const parts = [
      ...models.map(({ name, index, bytes }) => ({ name, bytes, kind: "model", index })),
      { name: "running streams", bytes: streamBytes, kind: "streams", index: 0 },
      { name: "prefixes kept", bytes: prefixBytes, kind: "prefixes", index: 0 },
    ].filter(({ bytes, kind }) => bytes > 0 || kind === "streams");
    const words = parts.map(({ name, bytes }) => `${name} ${formatBytes(bytes)}`);
    const said = words.join(", ");
    if (this.bar.getAttribute("aria-label") === said) return;
    this.bar.setAttribute("aria-label", said);
    const budget = Math.max(1, reading.memory.budgetBytes);
    this.bar.replaceChildren(
      ...parts.map(({ kind, bytes, index }) => {
        const part = h("span", { class: `share share-${kind}` });
        part.style.width = `${(bytes / budget) * 100}%`;
        part.style.setProperty("--hue", String(streamHue(index + 1)));
        return part;
      }),
    );
    this.legend.replaceChildren(
      ...parts.map(({ kind, index }, place) => {
        const mark = h("span", { class: `share share-${kind}` });
        mark.style.setProperty("--hue", String(streamHue(index + 1)));
        return h("li", {}, mark, words[place] ?? "");
      }),
    );
  }

  /** @param {Reading["cores"]} cores */
  #renderSquares({ budget, used }) {
    const count = Math.min(budget, MAX_SQUARES);
    while (this.squares.children.length > count) this.squares.lastElementChild?.remove();
    while (this.squares.children.length < count) this.squares.append(h("span", { class: "slot" }));
    for (const [index, square] of [...this.squares.children].entries())
      square.classList.toggle("used", index < used);
    this.squares.title = `${plural(used, "core")} computing`;
  }
}
