/**
 * What a revision of a text changed, word by word: which of its words stand where others stood before. Words that
 * only follow what was there are new, not revised; case and punctuation alone are no change. Pure.
 *
 * @typedef {{ text: string, revised: boolean }} Word  with the white space that follows it
 */

/** Beyond these many words only what differs from the front is looked at: the table below is their square. */
const MAX_COMPARED = 160;

/** @param {string} text @returns {string[]} joined they are the text */
export function wordsOf(text) {
  return text.match(/\s*\S+\s*/g) ?? (text ? [text] : []);
}

/** @param {string} before @param {string} after @returns {Word[]} of `after` */
export function compare(before, after) {
  const texts = wordsOf(after);
  const old = wordsOf(before).map(essence);
  const now = texts.map(essence);
  const kept =
    old.length * now.length > MAX_COMPARED ** 2 ? samePrefix(old, now) : common(old, now);
  const lastKept = kept.at(-1);
  // After the last word both have, as many words are revised as stood there; the rest is new.
  const replaced = old.length - (lastKept ? lastKept[0] + 1 : 0);
  const known = (lastKept ? lastKept[1] + 1 : 0) + replaced;
  const keptNow = new Set(kept.map(([, index]) => index));
  return texts.map((text, index) => ({ text, revised: index < known && !keptNow.has(index) }));
}

/** What makes it another word. @param {string} word */
function essence(word) {
  const bare = word.toLowerCase().replace(/[^\p{L}\p{N}]+/gu, "");
  return bare || word.trim();
}

/** @param {string[]} old @param {string[]} now @returns {[number, number][]} */
function samePrefix(old, now) {
  const differs = now.findIndex((word, index) => word !== old[index]);
  const length = differs === -1 ? now.length : differs;
  return Array.from({ length }, (_, index) => [index, index]);
}

/**
 * The longest common subsequence, as pairs of places in both.
 * @param {string[]} old @param {string[]} now @returns {[number, number][]}
 */
function common(old, now) {
  const width = now.length + 1;
  const lengths = new Uint16Array((old.length + 1) * width);
  const at = (/** @type {number} */ i, /** @type {number} */ j) => lengths[i * width + j] ?? 0;
  for (let i = old.length - 1; i >= 0; i -= 1) {
    for (let j = now.length - 1; j >= 0; j -= 1) {
      lengths[i * width + j] =
        old[i] === now[j] ? at(i + 1, j + 1) + 1 : Math.max(at(i + 1, j), at(i, j + 1));
    }
  }
  /** @type {[number, number][]} */
  const pairs = [];
  for (let i = 0, j = 0; i < old.length && j < now.length; ) {
    if (old[i] === now[j]) pairs.push([i++, j++]);
    else if (at(i + 1, j) >= at(i, j + 1)) i += 1;
    else j += 1;
  }
  return pairs;
}
