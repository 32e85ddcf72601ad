/** The server's counters in the monitor: a tile for each over the last two minutes, and totals since it started. */

import { LineChart } from "./charts.js";
import { h, setText } from "./dom.js";
import { formatBytes, formatCount, formatMs } from "./format.js";
import { HISTORY_SECONDS, meanMs, meanOverMs } from "./metrics.js";

/**
 * @import { Sample } from "./metrics.js"
 *
 * @typedef {object} Tile
 * @property {string} label
 * @property {string | ((now: Sample) => string)} hint
 * @property {(now: Sample, before: Sample | undefined) => number | null} read  null: nothing to show
 * @property {(history: Sample[]) => number | null} [overall]  the figure, where it is not the newest value
 * @property {(value: number, now: Sample) => string} format
 * @property {(value: number) => string} [axis]  the chart's upper edge in words; default: as the figure
 * @property {(now: Sample) => number} [top]  the chart's upper edge, where it is known
 */

/** What the engine means by giving cache back. */
const KV_HINT = {
  freed: "held by running streams; freed when they end",
  reusable: "held by running streams; preallocated, so reusable at once",
};

/** @type {Tile[]} */
const TILES = [
  {
    label: "Active streams",
    hint: "running now",
    read: (now) => now.active,
    format: formatCount,
    top: (now) => Math.max(1, now.slots),
  },
  { label: "Queued", hint: "waiting for a slot", read: (now) => now.queued, format: formatCount },
  {
    label: "Slots in use",
    hint: "places in the engines",
    read: (now) => now.slotsUsed,
    format: (value, now) => `${value} of ${now.slots}`,
    axis: formatCount,
    top: (now) => Math.max(1, now.slots),
  },
  {
    label: "KV cache",
    hint: ({ kvKind }) => KV_HINT[/** @type {keyof typeof KV_HINT} */ (kvKind)] ?? KV_HINT.freed,
    read: (now) => now.kvBytes,
    format: formatBytes,
  },
  {
    label: "Engine busy",
    hint: "share of the time computing",
    read: busyShare,
    format: (value) => `${Math.round(value * 100)} %`,
    top: () => 1,
  },
  {
    label: "Cancel to release",
    hint: "mean of the stops shown",
    read: (now, before) => meanMs(now.release, before?.release),
    overall: (history) => meanOverMs(history, (sample) => sample.release),
    format: formatMs,
  },
  {
    label: "Queue wait",
    hint: "mean of the starts shown",
    read: (now, before) => meanMs(now.wait, before?.wait),
    overall: (history) => meanOverMs(history, (sample) => sample.wait),
    format: formatMs,
  },
  {
    label: "Loop lag",
    hint: "how late the event loop runs",
    read: (now, before) => meanMs(now.lag, before?.lag),
    format: formatMs,
    top: () => 10,
  },
  {
    label: "Tokens wasted",
    hint: "computed after a cancel was read",
    read: (now) => now.wastedTokens,
    format: formatCount,
  },
];

const OUTCOMES = /** @type {const} */ ([
  ["completed", "Completed"],
  ["cancelled", "Stopped"],
  ["errored", "Failed"],
  ["rejected", "Rejected"],
]);

export class Counters {
  #store;

  /** @param {import("./store.js").Store} store */
  constructor(store) {
    this.#store = store;
    this.tiles = TILES.map((tile) => createTile(tile));
    this.totals = h("dl", { class: "totals" });
    this.element = h(
      "div",
      { class: "readings" },
      h("h2", { class: "section-title" }, "Every connection, last two minutes"),
      h("div", { class: "tiles" }, ...this.tiles.map(({ element }) => element)),
      h("section", { class: "since" }, h("h2", {}, "Since the server started"), this.totals),
    );
  }

  /** @param {boolean} fresh  false: the connection is not open, old figures would pass for facts */
  render(fresh) {
    const { sample, history } = this.#store.state;
    if (!sample) return;
    this.element.classList.toggle("dim", !fresh);
    for (const tile of this.tiles) tile.render(history, sample, fresh);
    this.#renderTotals(sample, fresh);
  }

  /** @param {Sample} sample @param {boolean} fresh */
  #renderTotals(sample, fresh) {
    const { hearing, voices } = this.#store.state;
    const ears = new Set(hearing?.models);
    /** @type {[string, string][]} */
    const facts = [
      ...OUTCOMES.flatMap(([outcome, label]) =>
        outcome in sample.outcomes || outcome !== "rejected"
          ? [/** @type {[string, string]} */ ([label, formatCount(sample.outcomes[outcome] ?? 0)])]
          : [],
      ),
      ["Engine time", formatMs(sample.busySeconds * 1000)],
      ["Engine time after a stop", formatMs(sample.deadSeconds * 1000)],
      ...audioFacts("Listened to", hearing !== null, sample, (model) => ears.has(model)),
      ...audioFacts("Speech computed", voices !== null, sample, (model) => !ears.has(model)),
      ["Connections now", formatCount(sample.connections)],
    ];
    if (this.totals.children.length !== facts.length) {
      this.totals.replaceChildren(
        ...facts.map(([label]) => h("div", {}, h("dt", {}, label), h("dd"))),
      );
    }
    for (const [index, [label, text]] of facts.entries()) {
      const entry = this.totals.children[index];
      if (!entry) continue;
      setText(/** @type {Node} */ (entry.firstChild), label);
      setText(/** @type {Node} */ (entry.lastChild), fresh ? text : "–");
    }
  }
}

/**
 * Audio of one direction, where the server has it.
 * @param {string} label @param {boolean} offered @param {Sample} sample @param {(model: string) => boolean} mine
 * @returns {[string, string][]}
 */
function audioFacts(label, offered, { audioSeconds, wastedAudioSeconds }, mine) {
  if (!offered) return [];
  const sum = (/** @type {Record<string, number>} */ seconds) =>
    Object.entries(seconds).reduce((total, [model, more]) => total + (mine(model) ? more : 0), 0);
  return [
    [label, formatMs(sum(audioSeconds) * 1000)],
    [`${label} after a stop`, formatMs(sum(wastedAudioSeconds) * 1000)],
  ];
}

/** @param {Tile} tile */
function createTile(tile) {
  const { label, hint } = tile;
  const value = h("p", { class: "tile-value" }, "–");
  const note = h("p", { class: "hint" });
  const edge = h("p", { class: "axis", "aria-hidden": "true" });
  const chart = new LineChart(`${label}, last two minutes`, HISTORY_SECONDS);
  const axis = h(
    "p",
    { class: "axis", "aria-hidden": "true" },
    h("span", {}, "2 min ago"),
    h("span", {}, "now"),
  );
  const element = h(
    "section",
    { class: "tile" },
    h("h2", {}, label),
    value,
    edge,
    chart.element,
    axis,
    note,
  );
  /** @param {Sample[]} history @param {Sample} sample @param {boolean} fresh */
  const render = (history, sample, fresh) => {
    const points = history.map((now, index) => ({
      age: (sample.at - now.at) / 1000,
      value: tile.read(now, history[index - 1]),
    }));
    const figure = tile.overall ? tile.overall(history) : (points.at(-1)?.value ?? null);
    setText(value, fresh && figure !== null ? tile.format(figure, sample) : "–");
    setText(note, typeof hint === "string" ? hint : hint(sample));
    const top = tile.top?.(sample) ?? Math.max(0, ...points.map((point) => point.value ?? 0));
    const words = tile.axis?.(top) ?? tile.format(top, sample);
    setText(edge, top > 0 ? `top ${words}` : "\u00a0");
    chart.update(points, top);
  };
  return { element, render };
}

/** @param {Sample} now @param {Sample | undefined} before */
function busyShare(now, before) {
  if (!before || now.busySeconds < before.busySeconds) return null;
  return Math.min(1, (now.busySeconds - before.busySeconds) / ((now.at - before.at) / 1000));
}
