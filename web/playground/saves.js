/** Taking a transcript along: copied, or as text, SubRip or WebVTT; what is shown is what is saved. */

import { copyButton, h } from "./dom.js";
import { toSrt, toText, toVtt } from "./subtitles.js";

/** @import { Listening } from "./listenings.js" */
/** @import { Entry } from "./transcript.js" */

const FORMATS = /** @type {const} */ ([
  ["txt", "TXT", "text/plain", toText],
  ["srt", "SRT", "application/x-subrip", toSrt],
  ["vtt", "VTT", "text/vtt", toVtt],
]);
const KEPT_MS = 60_000;

/** @param {() => Listening | null} listening */
export function createSaves(listening) {
  /** Also when it was stopped before all of it was final. */
  const entries = () => listening()?.transcript.spoken ?? [];

  /** @param {string} extension @param {string} type @param {(entries: Entry[]) => string} write */
  function save(extension, type, write) {
    const { source } = listening() ?? {};
    const base = source?.kind === "file" ? source.file.name.replace(/\.[^.]+$/, "") : "";
    const blob = new Blob([write(entries())], { type: `${type};charset=utf-8` });
    const url = URL.createObjectURL(blob);
    h("a", { href: url, download: `${base || "transcript"}.${extension}` }).click();
    setTimeout(() => URL.revokeObjectURL(url), KEPT_MS);
  }

  const buttons = [
    copyButton("Copy the text", () => toText(entries())),
    ...FORMATS.map(([extension, label, type, write]) =>
      h(
        "button",
        {
          type: "button",
          class: "button small quiet",
          "data-testid": `save-${extension}`,
          title: `Save as ${label}`,
          "aria-label": `Save as ${label}`,
          onclick: () => save(extension, type, write),
        },
        label,
      ),
    ),
  ];
  const element = h(
    "div",
    { class: "saves", role: "group", "aria-label": "Take the transcript along" },
    ...buttons,
  );
  /** @param {boolean} enabled */
  const enable = (enabled) => {
    for (const button of buttons) button.disabled = !enabled;
  };
  return { element, enable };
}
