/**
 * What was heard, as the page knows it: segments in order, each with the texts it had before. A final one never
 * changes; the history of each is bounded. A recording taken up again after a lost connection goes on where the
 * audio stopped. Pure; draws nothing.
 *
 * @typedef {object} Earlier
 * @property {number} revision
 * @property {string} text
 *
 * @typedef {object} Entry
 * @property {number} key  its place, from 0
 * @property {number} revision
 * @property {string} text  empty: what had been shown was no speech
 * @property {string} stable  the beginning of the text that will hardly change
 * @property {number} start  seconds
 * @property {number} end
 * @property {boolean} final
 * @property {number | null} lagMs
 * @property {{ text: string, start: number, end: number }[]} words
 * @property {Earlier[]} earlier  texts it had before, the oldest first
 */

/** @import { Segment } from "../sdk/types.d.ts" */

/** More than anybody reads; the oldest go first. */
const MAX_EARLIER = 24;

export class Transcript {
  /** @type {Entry[]} */
  entries = [];
  /** Not drawn yet as they are now. @type {Set<Entry>} */
  changed = new Set();
  /** The language the server detected; "" it did not say. */
  language = "";
  /** Of the recording under way: where its first segment and its first sample belong. */
  #firstKey = 0;
  #offsetSeconds = 0;

  /** Segments that say something. */
  get spoken() {
    return this.entries.filter(({ text }) => text !== "");
  }

  /** Mean number of revisions per segment; null while there is none. */
  get revisionsPerSegment() {
    const { entries } = this;
    if (entries.length === 0) return null;
    return entries.reduce((sum, { revision }) => sum + revision, 0) / entries.length;
  }

  /** @param {Segment} segment */
  take(segment) {
    const key = this.#firstKey + segment.index;
    const known = this.entries[key];
    if (known && (known.final || known.revision >= segment.revision)) return;
    const entry = known ?? blankEntry(key);
    if (!known) this.entries.push(entry);
    const text = segment.text.trim();
    if (known && known.text !== text) remember(known);
    const shift = (/** @type {number} */ seconds) => seconds + this.#offsetSeconds;
    Object.assign(entry, {
      revision: segment.revision,
      text,
      stable: segment.isFinal ? "" : (segment.stable ?? "").trim(),
      start: shift(segment.start),
      end: shift(segment.end),
      final: segment.isFinal,
      lagMs: segment.lagMs ?? null,
      words: (segment.words ?? []).map((word) => ({
        text: word.text,
        start: shift(word.start),
        end: shift(word.end),
      })),
    });
    if (segment.language) this.language = segment.language;
    this.changed.add(entry);
  }

  /** Another recording goes on here. @param {number} atSeconds  how much audio came before */
  resume(atSeconds) {
    this.#firstKey = this.entries.length;
    this.#offsetSeconds = Math.max(atSeconds, this.entries.at(-1)?.end ?? 0);
  }
}

/** @param {number} key @returns {Entry} */
function blankEntry(key) {
  return {
    key,
    revision: 0,
    text: "",
    stable: "",
    start: 0,
    end: 0,
    final: false,
    lagMs: null,
    words: [],
    earlier: [],
  };
}

/** @param {Entry} entry  about to change */
function remember({ earlier, revision, text }) {
  if (text === "" || earlier.at(-1)?.text === text) return;
  earlier.push({ revision, text });
  if (earlier.length > MAX_EARLIER) earlier.shift();
}
