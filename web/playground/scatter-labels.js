/**
 * Where a point's words go so that they hide neither points nor each other; those without room are left out.
 * Pure geometry.
 *
 * @typedef {{ x: number, y: number }} Point
 * @typedef {{ text: string, index: number, point: Point | null | undefined }} Wanted
 * @typedef {{ text: string, index: number, x: number, y: number }} Label  x: its left edge, y: its middle
 * @typedef {{ left: number, right: number, top: number, bottom: number }} Box
 */

const LONGEST = 30;

/**
 * @param {Wanted[]} wanted  the most wanted first
 * @param {{ width: number, height: number, gap: number, line: number, measure: (words: string) => number, taken: Point[] }} room
 * @returns {Label[]}
 */
export function placeLabels(wanted, { width, height, gap, line, measure, taken }) {
  /** @type {Box[]} */
  const boxes = taken.map(({ x, y }) => ({
    left: x - gap / 2,
    right: x + gap / 2,
    top: y - gap / 2,
    bottom: y + gap / 2,
  }));
  /** @type {Label[]} */
  const labels = [];
  for (const { text, index, point } of wanted) {
    if (!point) continue;
    const words = shortened(text);
    const length = measure(words);
    for (const { x, y } of around(point, length, gap, line)) {
      const box = { left: x, right: x + length, top: y - line / 2, bottom: y + line / 2 };
      const inside = box.left >= 0 && box.right <= width && box.top >= 0 && box.bottom <= height;
      if (!inside || boxes.some((other) => overlap(box, other))) continue;
      boxes.push(box);
      labels.push({ text: words, index, x, y });
      break;
    }
  }
  return labels;
}

/** Right, left, below, above. @param {Point} point @param {number} length @param {number} gap @param {number} line */
function around({ x, y }, length, gap, line) {
  return [
    { x: x + gap, y },
    { x: x - gap - length, y },
    { x: x - length / 2, y: y + line * 0.5 + gap },
    { x: x - length / 2, y: y - line * 0.5 - gap },
  ];
}

/** @param {Box} a @param {Box} b */
function overlap(a, b) {
  return a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom;
}

/** @param {string} text */
export function shortened(text) {
  return text.length <= LONGEST ? text : `${text.slice(0, LONGEST - 1).trimEnd()}…`;
}
