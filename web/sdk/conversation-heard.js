/**
 * Which text was heard, by the marks of a speech: to the last word that was over by then. The same rule as the server's,
 * which cannot be asked once its stream has ended while the sound goes on.
 */

/** @import { Mark } from "./types.d.ts" */

/**
 * @param {readonly Mark[]} marks in the order of the audio
 * @param {number} heardMs
 * @returns {string}
 */
export function heardText(marks, heardMs) {
  let heard = "";
  for (const mark of marks) {
    if (milliseconds(mark.end) > heardMs) return heard + beginning(mark, heardMs);
    heard += mark.text;
  }
  return heard;
}

/**
 * @param {Mark} mark
 * @param {number} heardMs
 */
function beginning({ text, words = [] }, heardMs) {
  let end = 0;
  for (const word of words) {
    if (milliseconds(word.end) > heardMs) break;
    const found = text.indexOf(word.text, end);
    end = (found < 0 ? end : found) + word.text.length;
  }
  return text.slice(0, end);
}

/** Seconds as JSON shows them are rounded: 1.4 must not be later than 1400. @param {number} seconds */
function milliseconds(seconds) {
  return Math.round(seconds * 1_000_000) / 1000;
}
