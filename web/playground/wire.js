/**
 * The Wire drawer: every frame of this page's connection, newest at the bottom. Only the rows in view
 * are in the document; rows are of one height, so row n starts at n times that.
 */

import { codeView } from "./code.js";
import { copyButton, h, iconButton, setIcon, setText } from "./dom.js";
import { plural } from "./format.js";
import { detailOf } from "./wire-detail.js";
import { rowHeight, WireRow } from "./wire-row.js";

/** @import { Frame, FrameLog } from "./frames.js" */

const OVERSCAN = 4;
/** Wide enough for the drawer to stand beside the panel without being asked for. */
const WIDE = "(min-width: 1200px)";
/** Below this it lies over the panel; the stylesheet has the same. */
const BESIDE = matchMedia("(min-width: 1080px)");
const NOTHING_YET =
  "Every frame of this page's connection appears here: what was asked, each item, each ack, and the one ending.";
/** Rows that only count up are drawn now and then. */
const COUNT_UP_MS = 250;
const OPEN_KEY = "plait.wire";

export class WireDrawer {
  #store;
  #log;
  #root;
  /** @type {WireRow[]} */
  #rows = [];
  /** @type {Frame | null} */
  #selected = null;
  #follow = true;
  #streamOptions = "";
  #countingUp = false;
  /** Told whether closing took the focus away. @type {(hadFocus: boolean) => void} */
  onToggle = () => {};

  /**
   * @param {import("./store.js").Store} store
   * @param {FrameLog} log
   * @param {HTMLElement} root
   */
  constructor(store, log, root) {
    this.#store = store;
    this.#log = log;
    this.#root = root;
    this.streamFilter = /** @type {HTMLSelectElement} */ (
      h("select", {
        "aria-label": "Stream",
        class: "field compact",
        onchange: () => this.#refilter(),
      })
    );
    this.textFilter = h("input", {
      type: "search",
      class: "field compact",
      placeholder: "Filter frames",
      "aria-label": "Filter frames by text",
      oninput: () => this.#refilter(),
    });
    this.pause = iconButton("pause", "Pause", () => this.#togglePause(), {
      "aria-pressed": "false",
    });
    this.note = h("p", { class: "wire-note" });
    this.sizer = h("div", { class: "wire-sizer" });
    this.list = h(
      "div",
      {
        class: "wire-list",
        role: "listbox",
        tabindex: "0",
        "aria-label": "Frames, oldest first",
        onscroll: () => this.#scrolled(),
        onkeydown: (/** @type {KeyboardEvent} */ event) => this.#moveSelection(event),
      },
      this.sizer,
    );
    this.empty = h("p", { class: "wire-empty" });
    this.detail = h("section", {
      class: "wire-detail",
      "aria-label": "Selected frame",
      hidden: true,
    });
    this.frames = h("div", { class: "wire-frames" });
    this.code = codeView("wire");
    this.code.element.hidden = true;
    this.codeToggle = iconButton(
      "code",
      "The same through the SDK",
      () => this.#showCode(this.code.element.hidden === true),
      { "aria-pressed": "false", "data-testid": "wire-code" },
    );
    this.#build();
    store.subscribe(["wire"], () => this.#render());
    new ResizeObserver(() => this.#render()).observe(this.list);
  }

  /** @param {import("../sdk/types.d.ts").FrameEvent} event */
  add(event) {
    if (this.#log.add(event)) this.#store.changed("wire");
    else if (!this.#countingUp) {
      this.#countingUp = true;
      setTimeout(() => {
        this.#countingUp = false;
        this.#store.changed("wire");
      }, COUNT_UP_MS);
    }
  }

  get open() {
    return !this.#root.hidden;
  }

  /** Open over the panel instead of beside it. */
  get overlays() {
    return this.open && !BESIDE.matches;
  }

  /** Open where there is room, unless the reader closed it; never by itself over the panel. */
  restore() {
    const wide = matchMedia(WIDE);
    const fit = () =>
      this.toggle(wide.matches && localStorage.getItem(OPEN_KEY) !== "closed", false);
    wide.addEventListener("change", fit);
    fit();
  }

  toggle(open = !this.open, remember = true) {
    const hadFocus = !open && this.#root.contains(document.activeElement);
    this.#root.hidden = !open;
    if (remember) localStorage.setItem(OPEN_KEY, open ? "open" : "closed");
    this.#store.changed("wire");
    this.onToggle(hadFocus);
  }

  #build() {
    const tools = h(
      "div",
      { class: "tools" },
      this.codeToggle,
      this.pause,
      copyButton("Copy shown frames", () => this.#log.asText()),
      iconButton("clear", "Clear", () => this.#clear()),
      iconButton("close", "Close the wire drawer", () => this.toggle(false)),
    );
    const head = h("header", { class: "wire-head" }, h("h2", {}, "Wire"), this.note, tools);
    const filters = h("div", { class: "wire-filters" }, this.streamFilter, this.textFilter);
    this.frames.append(filters, this.empty, this.list, this.detail);
    this.#root.append(head, this.frames, this.code.element);
    this.#root.addEventListener("keydown", (event) => this.#takeEscape(event));
    this.#renderStreamChoices();
  }

  /** From the inside out: the filter's text, the frame looked at; what is left to Esc is not ours. @param {KeyboardEvent} event */
  #takeEscape(event) {
    if (event.key !== "Escape" || event.shiftKey) return;
    if (event.target === this.textFilter && this.textFilter.value) {
      this.textFilter.value = "";
      this.#refilter();
    } else if (this.#selected) {
      this.#select(null);
      this.list.focus();
    } else if (!this.code.element.hidden) {
      this.#showCode(false);
      this.codeToggle.focus();
    } else return;
    event.preventDefault();
  }

  #clear() {
    this.#log.clear();
    this.#select(null);
    this.#store.changed("wire");
  }

  /** Instead of the frames. @param {boolean} shown */
  #showCode(shown) {
    this.code.element.hidden = !shown;
    this.frames.hidden = shown;
    this.codeToggle.setAttribute("aria-pressed", String(shown));
    if (shown) void this.code.load();
    this.#store.changed("wire");
  }

  #togglePause() {
    this.#log.paused = !this.#log.paused;
    this.#log.missed = 0;
    const { paused } = this.#log;
    setIcon(/** @type {Element} */ (this.pause.firstElementChild), paused ? "play" : "pause");
    this.pause.setAttribute("aria-pressed", String(paused));
    this.pause.title = paused ? "Resume" : "Pause";
    this.pause.setAttribute("aria-label", this.pause.title);
    this.#store.changed("wire");
  }

  #refilter() {
    const choice = this.streamFilter.value;
    const stream = choice === "all" ? null : choice === "connection" ? choice : Number(choice);
    this.#log.filter(stream, this.textFilter.value);
    if (this.#selected && !this.#log.shown.includes(this.#selected)) this.#select(null);
    this.#follow = true;
    this.#store.changed("wire");
  }

  #scrolled() {
    const { scrollTop, clientHeight, scrollHeight } = this.list;
    this.#follow = scrollTop + clientHeight >= scrollHeight - rowHeight();
    this.#store.changed("wire");
  }

  #render() {
    if (!this.open || this.frames.hidden) return;
    const { shown, total, paused, missed } = this.#log;
    this.#renderStreamChoices();
    setText(
      this.note,
      paused ? `Paused, ${plural(missed, "frame")} not kept` : countText(shown.length, total),
    );
    this.empty.hidden = shown.length > 0;
    setText(this.empty, total > 0 ? "No frame matches." : NOTHING_YET);
    this.list.hidden = shown.length === 0;
    const row = rowHeight();
    this.sizer.style.height = `${shown.length * row}px`;
    if (this.#follow) this.list.scrollTop = shown.length * row;
    const first = Math.max(0, Math.floor(this.list.scrollTop / row) - OVERSCAN);
    const count = Math.ceil(this.list.clientHeight / row) + 2 * OVERSCAN;
    this.#drawRows(shown.slice(first, first + count), first, shown.length);
  }

  /** @param {Frame[]} frames @param {number} first @param {number} total */
  #drawRows(frames, first, total) {
    for (const { element } of this.#rows.splice(frames.length)) element.remove();
    while (this.#rows.length < frames.length) {
      const row = new WireRow(this.#rows.length, (frame) => this.#select(frame));
      this.#rows.push(row);
      this.sizer.append(row.element);
    }
    for (const [index, frame] of frames.entries()) {
      this.#rows[index]?.show(frame, first + index, total, this.#selected);
    }
    const selected = this.#rows.find((row) => row.frame && row.frame === this.#selected);
    if (selected) this.list.setAttribute("aria-activedescendant", selected.element.id);
    else this.list.removeAttribute("aria-activedescendant");
  }

  #renderStreamChoices() {
    const ids = [...this.#log.streams].slice(-50);
    const key = ids.join();
    if (key === this.#streamOptions && this.streamFilter.options.length > 0) return;
    this.#streamOptions = key;
    const { value } = this.streamFilter;
    this.streamFilter.replaceChildren(
      h("option", { value: "all" }, "All streams"),
      h("option", { value: "connection" }, "Connection"),
      ...ids.map((id) => h("option", { value: id }, `Stream ${id}`)),
    );
    this.streamFilter.value = value || "all";
    if (this.streamFilter.selectedIndex >= 0) return;
    this.streamFilter.value = "all";
    this.#refilter();
  }

  /** @param {KeyboardEvent} event */
  #moveSelection(event) {
    const step = { ArrowDown: 1, ArrowUp: -1, PageDown: 10, PageUp: -10 }[event.key];
    const { shown } = this.#log;
    if (step === undefined || shown.length === 0) return;
    event.preventDefault();
    const from = this.#selected ? shown.indexOf(this.#selected) : shown.length;
    const to = Math.min(shown.length - 1, Math.max(0, from + step));
    this.#follow = to === shown.length - 1;
    this.#select(shown[to] ?? null);
    const row = rowHeight();
    this.list.scrollTop = Math.min(
      Math.max(this.list.scrollTop, (to + 1) * row - this.list.clientHeight),
      to * row,
    );
  }

  /** @param {Frame | null} frame */
  #select(frame) {
    this.#selected = frame === this.#selected ? null : frame;
    const chosen = this.#selected;
    this.detail.hidden = !chosen;
    if (chosen) this.detail.replaceChildren(...detailOf(chosen, () => this.#select(null)));
    this.#store.changed("wire");
  }
}

/** @param {number} shown @param {number} total */
function countText(shown, total) {
  return shown === total ? plural(total, "frame") : `${shown} of ${plural(total, "frame")}`;
}
