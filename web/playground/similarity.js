/** How alike vectors are: cosines, each computed once. Pure; knows neither lines nor canvases. */

/** @typedef {Float32Array | null} Vector  null: the line has none */

/** @param {Float32Array} a @param {Float32Array} b */
export function cosine(a, b) {
  let dot = 0;
  let aa = 0;
  let bb = 0;
  for (let i = 0; i < a.length; i += 1) {
    const [x, y] = [a[i] ?? 0, b[i] ?? 0];
    dot += x * y;
    aa += x * x;
    bb += y * y;
  }
  return aa > 0 && bb > 0 ? dot / Math.sqrt(aa * bb) : 0;
}

/** The first so many lines against each other. */
export class Similarity {
  #rows;
  #count = 0;

  /** @param {number} most  lines */
  constructor(most) {
    this.most = most;
    this.#rows = new Float32Array(most * most);
  }

  /** Lines that were compared. */
  get count() {
    return this.#count;
  }

  /** @param {Vector[]} vectors  those known before, and more */
  take(vectors) {
    const end = Math.min(vectors.length, this.most);
    for (; this.#count < end; this.#count += 1) {
      const row = vectors[this.#count] ?? null;
      for (let other = 0; other <= this.#count; other += 1) {
        const against = vectors[other] ?? null;
        const value = row && against ? cosine(row, against) : Number.NaN;
        this.#rows[this.#count * this.most + other] = value;
        this.#rows[other * this.most + this.#count] = value;
      }
    }
  }

  /** NaN where one of them has no vector. @param {number} a @param {number} b */
  of(a, b) {
    return this.#rows[a * this.most + b] ?? Number.NaN;
  }
}

/**
 * The nearest others, the most alike first.
 * @param {Vector[]} vectors @param {number} index @param {number} most
 * @returns {{ index: number, cosine: number }[]}
 */
export function nearest(vectors, index, most) {
  const vector = vectors[index];
  if (!vector) return [];
  /** @type {{ index: number, cosine: number }[]} */
  const found = [];
  for (const [other, against] of vectors.entries()) {
    if (other === index || !against) continue;
    const value = cosine(vector, against);
    const last = found[most - 1];
    if (last && last.cosine >= value) continue;
    found.push({ index: other, cosine: value });
    found.sort((a, b) => b.cosine - a.cosine);
    if (found.length > most) found.pop();
  }
  return found;
}
