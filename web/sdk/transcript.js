/**
 * Final segments joined to a text, as their language writes it. Pure.
 */

/** @import { Segment } from "./types.d.ts" */

/** Scripts that put no space between words. */
const UNSPACED =
  "\\p{Script=Han}\\p{Script=Hiragana}\\p{Script=Katakana}\\p{Script=Thai}\\p{Script=Lao}\\p{Script=Khmer}\\p{Script=Myanmar}\\u3000-\\u303f\\uff00-\\uffef";
const ENDS_UNSPACED = new RegExp(`[${UNSPACED}]$`, "u");
const BEGINS_UNSPACED = new RegExp(`^[${UNSPACED}]`, "u");

/**
 * @param {Pick<Segment, "text">[]} segments
 * @returns {string}
 */
export function joined(segments) {
  let text = "";
  for (const part of segments.map((segment) => segment.text.trim()).filter(Boolean)) {
    const together = ENDS_UNSPACED.test(text) && BEGINS_UNSPACED.test(part);
    text += text && !together ? ` ${part}` : part;
  }
  return text;
}
