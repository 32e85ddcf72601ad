/**
 * Vectors as files other programs read: JSON and CSV, with as many digits as a 32-bit number has. Written piece by
 * piece, as there may be a great many of them. Pure.
 */

/** @import { Embedding } from "./new-embedding.js" */

/** Enough to read the very same 32-bit number back. */
const DIGITS = 9;

/** @param {Embedding} embedding @returns {Generator<void, string[]>} */
export function* toJson({ ask, vectors, failures, cut }) {
  /** @type {string[]} */
  const parts = ["[\n"];
  for (const [index, vector] of vectors.entries()) {
    const failure = failures.get(index);
    const text = JSON.stringify(ask.lines[index] ?? "");
    const answer = vector
      ? `"embedding": [${numbersOf(vector)}]${cut.has(index) ? ', "truncated": true' : ""}`
      : `"error": ${JSON.stringify(failure ?? null)}`;
    const end = index === vectors.length - 1 ? "\n" : ",\n";
    parts.push(`  {"index": ${index}, "text": ${text}, ${answer}}${end}`);
    yield;
  }
  parts.push("]\n");
  return parts;
}

/** @param {Embedding} embedding @returns {Generator<void, string[]>} */
export function* toCsv({ ask, vectors, failures }) {
  const dims = vectors.find((vector) => vector !== null)?.length ?? 0;
  const names = Array.from({ length: dims }, (_, i) => `v${i}`);
  const parts = [`${["index", "text", "error", ...names].join(",")}\r\n`];
  for (const [index, vector] of vectors.entries()) {
    const text = quoted(ask.lines[index] ?? "");
    const error = failures.get(index)?.code ?? "";
    const numbers = vector ? numbersOf(vector) : ",".repeat(Math.max(0, dims - 1));
    parts.push(`${index},${text},${error}${dims > 0 ? "," : ""}${numbers}\r\n`);
    yield;
  }
  return parts;
}

/** @param {Float32Array} vector */
function numbersOf(vector) {
  return Array.from(vector, (value) => Number(value.toPrecision(DIGITS))).join(",");
}

/** Also what a spreadsheet would take for a formula stays text. @param {string} text */
function quoted(text) {
  const safe = /^[=+\-@\t\r]/.test(text) ? `'${text}` : text;
  return `"${safe.replaceAll('"', '""')}"`;
}
