/** Taking vectors along: copied as JSON, or saved as JSON or CSV; what is shown is what is saved. */

import { copyButton, h } from "./dom.js";
import { inPieces } from "./pieces.js";
import { toCsv, toJson } from "./vectors-file.js";

/** @import { Embedding } from "./new-embedding.js" */

const FORMATS = /** @type {const} */ ([
  ["json", "JSON", "application/json", toJson],
  ["csv", "CSV", "text/csv", toCsv],
]);
const KEPT_MS = 60_000;
/** More is nothing for a clipboard. */
const MAX_COPIED = 1_000;

/** @param {() => Embedding | null} embedding */
export function createVectorSaves(embedding) {
  const write = async (/** @type {typeof toJson} */ format) => {
    const batch = embedding();
    return (batch && (await inPieces(format(batch), () => true))) ?? [];
  };

  /** @param {string} extension @param {string} type @param {typeof toJson} format */
  async function save(extension, type, format) {
    const blob = new Blob(await write(format), { type: `${type};charset=utf-8` });
    const url = URL.createObjectURL(blob);
    h("a", { href: url, download: `embeddings.${extension}` }).click();
    setTimeout(() => URL.revokeObjectURL(url), KEPT_MS);
  }

  const copy = copyButton("Copy the vectors as JSON", async () => (await write(toJson)).join(""));
  const buttons = FORMATS.map(([extension, label, type, format]) =>
    h(
      "button",
      {
        type: "button",
        class: "button small quiet",
        "data-testid": `save-${extension}`,
        title: `Save as ${label}`,
        "aria-label": `Save as ${label}`,
        onclick: () => void save(extension, type, format),
      },
      label,
    ),
  );
  const element = h(
    "div",
    { class: "saves", role: "group", "aria-label": "Take the vectors along" },
    copy,
    ...buttons,
  );
  /** @param {number} answered  lines */
  const enable = (answered) => {
    copy.disabled = answered === 0 || answered > MAX_COPIED;
    for (const button of buttons) button.disabled = answered === 0;
  };
  return { element, enable };
}
