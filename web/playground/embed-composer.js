/** Where lines to embed are pasted: the lines, which model, what becomes of those that are too long. */

import { h, icon, iconButton, setText } from "./dom.js";
import { formatCount, plural } from "./format.js";
import { linesOf, MAX_LINES } from "./new-embedding.js";

/** @import { App } from "./main.js" */
/** @import { EmbedAsk } from "./new-embedding.js" */

const MAX_INPUT_PIXELS = 112;
const HIGHEST_LINES = 50;
/** Browsers take seconds over pasted text of so many characters, line by line. */
const LARGE_PASTE = 20_000;
/** More are kept beside the field, which shows how they begin: laying them all out would stop the page for a second. */
const MAX_WRITTEN = 1_000;
const SHOWN_OF_MANY = 100;

/**
 * @param {App} app
 * @param {string} text  to begin with
 * @param {(ask: EmbedAsk) => void} onEmbed
 */
export function createEmbedComposer({ store }, text, onEmbed) {
  const input = h("textarea", {
    class: "composer-input",
    rows: 3,
    placeholder: "Paste lines; each becomes a vector",
    "aria-label": "Lines to embed",
    "data-testid": "embed-input",
    oninput: () => sync(),
    onpaste: (/** @type {ClipboardEvent} */ event) => pasteAtOnce(event, input),
  });
  input.value = text;
  const models = h("select", {
    class: "field compact",
    "aria-label": "Model",
    "data-testid": "embed-model",
  });
  const picker = h("div", { class: "picker", title: "Model", hidden: true }, models);
  const truncate = h("input", { type: "checkbox", "data-testid": "truncate" });
  const count = h("span", { class: "hint", "data-testid": "line-count" });
  const clear = iconButton("close", "Clear the lines", () => start(), {
    "data-testid": "embed-clear",
    hidden: true,
  });
  const embed = h(
    "button",
    {
      type: "submit",
      class: "button primary",
      "data-testid": "embed",
      title: "Embed (Ctrl+Enter)",
    },
    h("span", {}, "Embed"),
    icon("embed"),
  );
  const form = h(
    "form",
    { class: "composer embed-composer", "aria-label": "Embed", onsubmit: submit, onkeydown: onKey },
    input,
    h(
      "div",
      { class: "composer-row" },
      picker,
      h(
        "label",
        { class: "check", title: "Embed the beginning of lines that are too long for the model" },
        truncate,
        h("span", {}, "Cut long lines"),
      ),
      h("span", { class: "spacer" }),
      count,
      clear,
      h("kbd", { class: "wide-only" }, "Ctrl ↵"),
      embed,
    ),
  );

  /** @param {KeyboardEvent} event */
  function onKey(event) {
    if (event.key !== "Enter" || !(event.ctrlKey || event.metaKey)) return;
    event.preventDefault();
    form.requestSubmit();
  }

  /** @param {SubmitEvent} event */
  function submit(event) {
    event.preventDefault();
    if (leaving()) return;
    const ask = read();
    if (ask.lines.length === 0) input.focus();
    else onEmbed(ask);
  }

  /** @returns {EmbedAsk} */
  const read = () => ({
    lines: written().slice(0, MAX_LINES),
    ...(!picker.hidden && { model: models.value }),
    truncate: truncate.checked,
  });
  const leaving = () => store.state.connection.leavingAt !== null;

  /** Lines too many to write among, and what the field shows of them. @type {{ lines: string[], shown: string } | null} */
  let many = null;

  /** All lines, also those the field does not show. */
  function written() {
    if (many && input.value === many.shown) return many.lines;
    const lines = linesOf(input.value);
    many = lines.length > MAX_WRITTEN ? { lines, shown: beginningOf(lines) } : null;
    if (many) input.value = many.shown;
    return lines;
  }

  function sync() {
    const { length } = written();
    embed.disabled = leaving() || length === 0;
    clear.hidden = many === null;
    input.readOnly = leaving() || many !== null;
    form.classList.toggle("paused", leaving());
    setText(count, countText(length));
    if (length > HIGHEST_LINES) input.style.height = `${MAX_INPUT_PIXELS}px`; // no need to measure all of it
    if (length > HIGHEST_LINES || input.offsetParent === null) return; // not seen: it has no height yet
    input.style.height = "auto";
    input.style.height = `${Math.min(input.scrollHeight, MAX_INPUT_PIXELS)}px`;
  }

  /** With an empty field. */
  function start() {
    fill("");
    input.focus();
  }

  /** @param {string} sample */
  function fill(sample) {
    input.value = sample;
    sync();
  }

  let offered = "";
  function offer() {
    const names = store.state.embedModels ?? [];
    if (names.join("\n") === offered) return;
    offered = names.join("\n");
    models.replaceChildren(...names.map((name) => h("option", { value: name }, name)));
    picker.hidden = names.length < 2; // nothing to choose
  }

  store.subscribe(["connection"], () => {
    offer();
    sync();
  });
  store.subscribe(["panel"], sync);
  offer();
  sync();
  return {
    element: form,
    focus: () => {
      sync();
      input.focus();
    },
    read,
    fill,
  };
}

/** @param {string[]} lines */
function beginningOf(lines) {
  const more = formatCount(lines.length - SHOWN_OF_MANY);
  return `${lines.slice(0, SHOWN_OF_MANY).join("\n")}\n… and ${more} more lines`;
}

/** @param {number} lines */
export function countText(lines) {
  if (lines <= MAX_LINES) return plural(lines, "line");
  return `the first ${formatCount(MAX_LINES)} of ${formatCount(lines)} lines; the SDK takes any number`;
}

/** A large text as one piece; a small one as browsers do, which can be undone. @param {ClipboardEvent} event @param {HTMLTextAreaElement} input */
function pasteAtOnce(event, input) {
  const pasted = event.clipboardData?.getData("text/plain") ?? "";
  if (pasted.length < LARGE_PASTE || input.readOnly) return;
  event.preventDefault();
  input.setRangeText(pasted, input.selectionStart, input.selectionEnd, "end");
  input.dispatchEvent(new Event("input", { bubbles: true }));
}
