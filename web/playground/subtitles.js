/**
 * A transcript as files: plain text, SubRip and WebVTT. A cue has at most two lines and a few seconds; its times
 * are those of its words, where the server gave them. Pure.
 *
 * @typedef {import("./transcript.js").Entry} Entry
 *
 * @typedef {object} Cue
 * @property {number} start  milliseconds
 * @property {number} end  after `start`
 * @property {string[]} lines  one or two
 *
 * @typedef {{ text: string, glue: string, start: number, end: number }} Unit  seconds; `glue` joins it to the one before
 */

const MAX_LINE = 42;
const MAX_CUE = 2 * MAX_LINE;
const MAX_CUE_SECONDS = 7;

/** One segment a line. @param {Entry[]} entries */
export function toText(entries) {
  return said(entries)
    .map(({ text }) => `${oneLine(text)}\n`)
    .join("");
}

/** SubRip: numbered, decimal commas, CRLF; its players take what stands in <> for markup. @param {Entry[]} entries */
export function toSrt(entries) {
  return cuesOf(entries)
    .map(({ start, end, lines }, index) => {
      const text = lines.map((line) => line.replaceAll("<", "‹").replaceAll(">", "›"));
      const times = `${timestamp(start, ",")} --> ${timestamp(end, ",")}`;
      return `${[index + 1, times, ...text].join("\r\n")}\r\n\r\n`;
    })
    .join("");
}

/** WebVTT: decimal points, and the three characters that mean something escaped. @param {Entry[]} entries */
export function toVtt(entries) {
  const cues = cuesOf(entries).map(({ start, end, lines }) => {
    const text = lines.map((line) =>
      line.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;"),
    );
    return `${[`${timestamp(start, ".")} --> ${timestamp(end, ".")}`, ...text].join("\n")}\n\n`;
  });
  return `WEBVTT\n\n${cues.join("")}`;
}

/** @param {Entry[]} entries @returns {Cue[]} in order, none overlapping the next */
export function cuesOf(entries) {
  const cues = said(entries).flatMap(cuesOfEntry);
  for (const [index, cue] of cues.entries()) {
    const before = cues[index - 1];
    if (before && cue.start < before.end) cue.start = before.end;
    if (cue.end <= cue.start) cue.end = cue.start + 1;
  }
  return cues;
}

/** @param {Entry[]} entries */
function said(entries) {
  return entries.filter(({ text }) => text.trim() !== "");
}

/** @param {Entry} entry @returns {Cue[]} */
function cuesOfEntry(entry) {
  const units = unitsOf(entry);
  const length = join(units).length;
  const parts = Math.max(
    Math.ceil(length / MAX_CUE),
    Math.ceil((entry.end - entry.start) / MAX_CUE_SECONDS),
  );
  return split(units, Math.ceil(length / parts)).map((part) => ({
    start: toMs(part[0]?.start ?? entry.start),
    end: toMs(part.at(-1)?.end ?? entry.end),
    lines: linesOf(part),
  }));
}

/** Words with their times; guessed from their places in the text where the server gave none that fit. @param {Entry} entry @returns {Unit[]} */
function unitsOf({ text, words, start, end }) {
  const line = oneLine(text);
  const written = line.split(" ");
  if (words.length === written.length) {
    return written.flatMap((word, index) =>
      pieces(word, words[index]?.start ?? start, words[index]?.end ?? end),
    );
  }
  const perCharacter = (end - start) / Math.max(1, line.length);
  let at = 0;
  return written.flatMap((word) => {
    const from = start + at * perCharacter;
    at += word.length + 1;
    return pieces(word, from, Math.min(end, from + word.length * perCharacter));
  });
}

/** One, or several where there is no space to break at. @param {string} word @param {number} start @param {number} end @returns {Unit[]} */
function pieces(word, start, end) {
  const characters = Array.from(word);
  if (characters.length <= MAX_LINE) return [{ text: word, glue: " ", start, end }];
  const per = (end - start) / characters.length;
  const cut = MAX_LINE / 2;
  return Array.from({ length: Math.ceil(characters.length / cut) }, (_, index) => {
    const part = characters.slice(index * cut, (index + 1) * cut);
    const from = start + index * cut * per;
    return {
      text: part.join(""),
      glue: index === 0 ? " " : "",
      start: from,
      end: from + part.length * per,
    };
  });
}

/**
 * Parts of about the same length, none longer than a cue may be.
 * @param {Unit[]} units @param {number} aim  characters @returns {Unit[][]}
 */
function split(units, aim) {
  /** @type {Unit[][]} */
  const parts = [];
  /** @type {Unit[]} */
  let part = [];
  for (const unit of units) {
    const longer = [...part, unit];
    const full = join(longer).length > aim + unit.text.length / 2;
    if (part.length > 0 && (full || !fits(longer))) {
      parts.push(part);
      part = [];
    }
    part.push(unit);
  }
  if (part.length > 0) parts.push(part);
  return parts;
}

/** @param {Unit[]} units */
function fits(units) {
  return linesOf(units).every((line) => line.length <= MAX_LINE);
}

/** One line, or two of about the same length. @param {Unit[]} units @returns {string[]} */
function linesOf(units) {
  const whole = join(units);
  if (whole.length <= MAX_LINE) return [whole];
  let best = 1;
  let bestLength = Number.POSITIVE_INFINITY;
  for (let cut = 1; cut < units.length; cut += 1) {
    const longer = Math.max(join(units.slice(0, cut)).length, join(units.slice(cut)).length);
    if (longer < bestLength) [best, bestLength] = [cut, longer];
  }
  return [join(units.slice(0, best)), join(units.slice(best))].filter((line) => line !== "");
}

/** @param {Unit[]} units */
function join(units) {
  return units.map(({ text, glue }, index) => (index === 0 ? text : glue + text)).join("");
}

/** @param {string} text  a blank line would end a cue */
function oneLine(text) {
  return text.replace(/\s+/g, " ").trim();
}

/** @param {number} seconds */
function toMs(seconds) {
  return Math.max(0, Math.round(seconds * 1000));
}

/** 01:02:03.004 @param {number} ms @param {"," | "."} point */
function timestamp(ms, point) {
  const two = (/** @type {number} */ n) => String(n).padStart(2, "0");
  const seconds = Math.floor(ms / 1000);
  const [hours, minutes] = [Math.floor(seconds / 3600), Math.floor(seconds / 60) % 60];
  const rest = String(ms % 1000).padStart(3, "0");
  return `${two(hours)}:${two(minutes)}:${two(seconds % 60)}${point}${rest}`;
}
