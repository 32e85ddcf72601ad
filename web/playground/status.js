/** The status bar under every panel: this page's connection, and the server's own counters. */

import { h, setText } from "./dom.js";
import { formatBytes, formatCount, formatMs, streamHue } from "./format.js";
import { meanMs } from "./metrics.js";

const CONNECTION_TEXT = {
  idle: "Connecting",
  connecting: "Connecting",
  open: "Connected",
  reconnecting: "Reconnecting",
  closed: "Disconnected",
};
/** States in which a stream has a slot, as far as this page knows. */
const HOLDING = new Set(["streaming", "finishing", "stopping"]);
/** More squares than this say less than the number does. */
const MAX_SQUARES = 32;
/** Nor has a phone room for more than these: there it is the number. */
const MAX_NARROW_SQUARES = 9;

export class StatusBar {
  #store;
  /** @type {HTMLElement[]} */
  #squares = [];

  /** @param {import("./store.js").Store} store @param {HTMLElement} root */
  constructor(store, root) {
    this.#store = store;
    this.connectionText = h("span");
    this.connection = h(
      "span",
      { class: "status-item connection", "data-testid": "connection-state" },
      h("span", { class: "state-dot" }),
      this.connectionText,
    );
    this.model = value("status-model");
    this.active = value("status-active");
    this.queued = value("status-queued");
    this.slotText = h("span", { class: "visually-hidden" });
    this.slotNumber = value("status-slot-number");
    this.slots = h("span", { class: "slots", "data-testid": "status-slots" }, this.slotText);
    this.kv = value("status-kv");
    this.wasted = value("status-wasted");
    this.wastedUnit = h("span", { class: "unit status-label" });
    this.lag = value("status-lag");
    root.append(
      this.connection,
      item("model", this.model, "", "optional model"),
      item("active", this.active, "Streams running on the server, all connections"),
      item("queued", this.queued, "Streams waiting for a slot"),
      h(
        "span",
        { class: "status-item slot-item", title: "Slots in use" },
        h("span", { class: "status-label" }, "slots"),
        this.slots,
        this.slotNumber,
      ),
      item("KV", this.kv, "Cache held by running streams", "optional"),
      item(
        "wasted",
        this.wasted,
        "Tokens computed after a cancel was read, since the model was loaded",
        "",
        this.wastedUnit,
      ),
      item("loop lag", this.lag, "How late the server's event loop runs", "optional last"),
    );
    store.subscribe(["connection"], () => this.#renderConnection());
    store.subscribe(["metrics", "chats", "speech", "listening", "embedding", "connection"], () =>
      this.#renderCounters(),
    );
    this.#renderConnection();
    this.#renderCounters();
  }

  #renderConnection() {
    const { connection, models } = this.#store.state;
    this.connection.dataset.state = connection.state;
    setText(this.connectionText, CONNECTION_TEXT[connection.state]);
    const others = models.length > 1 ? ` +${models.length - 1}` : "";
    setText(this.model, models[0] ? `${models[0]}${others}` : "–");
    /** @type {HTMLElement} */ (this.model.parentElement).title =
      models.length > 0 ? `Chat models: ${models.join(", ")}` : "No chat model known yet";
  }

  #renderCounters() {
    const { connection, sample: newest, history } = this.#store.state;
    const sample = connection.state === "open" ? newest : null; // old figures would pass for facts
    setText(this.active, sample ? formatCount(sample.active) : "–");
    setText(this.queued, sample ? formatCount(sample.queued) : "–");
    setText(this.kv, sample ? formatBytes(sample.kvBytes) : "–");
    setText(this.wasted, sample ? formatCount(sample.wastedTokens) : "–");
    setText(this.wastedUnit, sample?.wastedTokens === 1 ? "token" : "tokens");
    this.wasted.classList.toggle("proud", sample?.wastedTokens === 0);
    const lag = sample && meanMs(sample.lag, history.at(-2)?.lag);
    setText(this.lag, lag === null ? "–" : formatMs(lag));
    if (sample) this.#renderSlots(sample.slotsUsed, sample.slots);
    else this.#renderSlots(0, 0);
  }

  /** This page's running streams colour the slots they hold; others' are plain. @param {number} used @param {number} total */
  #renderSlots(used, total) {
    const squares = Math.min(total, MAX_SQUARES);
    while (this.#squares.length < squares) {
      const square = h("span", { class: "slot", "aria-hidden": "true" });
      this.#squares.push(square);
      this.slots.append(square);
    }
    while (this.#squares.length > squares) this.#squares.pop()?.remove();
    const { chats, speech, preview, spokenAnswer, listening, embedding } = this.#store.state;
    const speeches = [speech, preview?.speech, spokenAnswer?.speech];
    const runs = [...chats, listening, ...speeches, embedding].filter((run) => run != null);
    const mine = runs.filter(({ state }) => HOLDING.has(state));
    for (const [index, square] of this.#squares.entries()) {
      square.classList.toggle("used", index < used);
      const stream = mine[index]?.stream;
      square.classList.toggle("mine", index < used && stream != null);
      if (stream) square.style.setProperty("--hue", String(streamHue(stream.id)));
    }
    this.slots.dataset.many = String(total > MAX_NARROW_SQUARES);
    this.slots.dataset.used = String(used);
    this.slots.dataset.total = String(total);
    setText(this.slotNumber, total > 0 ? `${used}/${total}` : "–");
    setText(this.slotText, `${used} of ${total} in use`);
  }
}

/** @param {string} testid */
function value(testid) {
  return h("span", { class: "status-value", "data-testid": testid }, "–");
}

/** @param {string} label @param {HTMLElement} node @param {string} title @param {string} [extra] @param {HTMLElement} [unit] */
function item(label, node, title, extra = "", unit) {
  return h(
    "span",
    { class: `status-item ${extra}`.trim(), title },
    h("span", { class: "status-label" }, label),
    node,
    unit,
  );
}
