/**
 * Vectors of hundreds of numbers as points on a plane: the two directions in which they differ most (principal
 * components, by power iteration, which needs no matrix). Pure, and interruptible at every yield.
 *
 * @typedef {object} Plane
 * @property {Float64Array} mean
 * @property {[Float64Array, Float64Array]} axes
 *
 * @typedef {[number, number]} Place  on a plane
 */

/** More makes no difference that is seen. */
const ITERATIONS = 48;
const SETTLED = 1e-5;
/** Rows between two places where it may be interrupted. */
const STRIDE = 64;

/**
 * @param {Float32Array[]} rows  of one length
 * @param {Plane | null} before  the plane shown until now: points should not jump from one side to the other
 * @returns {Generator<void, Plane | null>} null: there is nothing to tell apart
 */
export function* planeOf(rows, before = null) {
  const [first] = rows;
  if (!first || rows.length < 2) return null;
  const mean = new Float64Array(first.length);
  for (const [index, row] of rows.entries()) {
    for (let i = 0; i < mean.length; i += 1) mean[i] = (mean[i] ?? 0) + (row[i] ?? 0) / rows.length;
    if (index % STRIDE === 0) yield;
  }
  const one = yield* axisOf(rows, mean, null, before?.axes[0]);
  if (!one) return null;
  const two = yield* axisOf(rows, mean, one, before?.axes[1]);
  return { mean, axes: [one, two ?? new Float64Array(mean.length)] };
}

/**
 * A plane, and where on it each vector lies.
 * @param {(Float32Array | null)[]} vectors @param {Plane | null} before
 * @returns {Generator<void, { plane: Plane, flat: (Place | null)[] } | null>}
 */
export function* layOut(vectors, before) {
  const plane = yield* planeOf(
    vectors.filter((vector) => vector !== null),
    before,
  );
  if (!plane) return null;
  /** @type {(Place | null)[]} */
  const flat = [];
  for (const vector of vectors) {
    flat.push(vector && pointOf(plane, vector));
    yield;
  }
  return { plane, flat };
}

/** @param {Plane} plane @param {Float32Array} row @returns {Place} */
export function pointOf({ mean, axes: [one, two] }, row) {
  let x = 0;
  let y = 0;
  for (let i = 0; i < mean.length; i += 1) {
    const difference = (row[i] ?? 0) - (mean[i] ?? 0);
    x += difference * (one[i] ?? 0);
    y += difference * (two[i] ?? 0);
  }
  return [x, y];
}

/**
 * @param {Float32Array[]} rows
 * @param {Float64Array} mean
 * @param {Float64Array | null} against  orthogonal to it
 * @param {Float64Array | undefined} before  of its two directions, the one nearer to this
 * @returns {Generator<void, Float64Array | null>}
 */
function* axisOf(rows, mean, against, before) {
  let axis = yield* startOf(rows, mean, against);
  if (!axis) return null;
  for (let round = 0; round < ITERATIONS; round += 1) {
    const next = new Float64Array(mean.length);
    for (const [index, row] of rows.entries()) {
      let along = 0;
      for (let i = 0; i < mean.length; i += 1)
        along += ((row[i] ?? 0) - (mean[i] ?? 0)) * (axis[i] ?? 0);
      for (let i = 0; i < mean.length; i += 1)
        next[i] = (next[i] ?? 0) + along * ((row[i] ?? 0) - (mean[i] ?? 0));
      if (index % STRIDE === 0) yield;
    }
    if (!straighten(next, against)) break;
    const change = 1 - Math.abs(dot(next, axis));
    axis = next;
    if (change < SETTLED) break;
  }
  if (before && dot(axis, before) < 0) for (const i of axis.keys()) axis[i] = -(axis[i] ?? 0);
  return axis;
}

/**
 * The row farthest from the mean: never orthogonal to what is looked for, unless nothing is there.
 * @param {Float32Array[]} rows @param {Float64Array} mean @param {Float64Array | null} against
 * @returns {Generator<void, Float64Array | null>}
 */
function* startOf(rows, mean, against) {
  /** @type {Float64Array | null} */
  let farthest = null;
  let longest = 1e-12;
  for (const [index, row] of rows.entries()) {
    const difference = new Float64Array(mean.length);
    for (let i = 0; i < mean.length; i += 1) difference[i] = (row[i] ?? 0) - (mean[i] ?? 0);
    if (against) remove(difference, against);
    const length = dot(difference, difference);
    if (length > longest) [farthest, longest] = [difference, length];
    if (index % STRIDE === 0) yield;
  }
  return farthest && straighten(farthest, against) ? farthest : null;
}

/** To unit length, orthogonal. @param {Float64Array} axis @param {Float64Array | null} against */
function straighten(axis, against) {
  if (against) remove(axis, against);
  const length = Math.sqrt(dot(axis, axis));
  if (length < 1e-12) return false;
  for (const i of axis.keys()) axis[i] = (axis[i] ?? 0) / length;
  return true;
}

/** @param {Float64Array} axis @param {Float64Array} against */
function remove(axis, against) {
  const share = dot(axis, against);
  for (const i of axis.keys()) axis[i] = (axis[i] ?? 0) - share * (against[i] ?? 0);
}

/** @param {Float64Array} a @param {Float64Array} b */
function dot(a, b) {
  let sum = 0;
  for (let i = 0; i < a.length; i += 1) sum += (a[i] ?? 0) * (b[i] ?? 0);
  return sum;
}
