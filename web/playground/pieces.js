/** Long computing in short pieces, so that the page stays answerable. Knows nothing of what is computed. */

/** Far below what a person notices, and what browsers call a long task. */
const PIECE_MS = 8;

/**
 * Runs a generator to its end; every `yield` is a place where it may be interrupted.
 * @template R
 * @param {Generator<void, R>} work
 * @param {() => boolean} wanted  false: nobody wants the result any more
 * @param {() => number} now
 * @param {() => Promise<unknown>} rest  until the page has had its turn
 * @returns {Promise<R | null>} null: it was not wanted any more
 */
export async function inPieces(work, wanted, now = () => performance.now(), rest = nextTask) {
  for (let end = now() + PIECE_MS; ; ) {
    const { value, done } = work.next();
    if (done) return value;
    if (now() < end) continue;
    await rest();
    if (!wanted()) return null;
    end = now() + PIECE_MS;
  }
}

function nextTask() {
  return new Promise((resolve) => setTimeout(resolve));
}
