/**
 * How a stream is read: the iterator behind a loop, and other ways than a loop. Each takes the stream's
 * one iteration.
 */

/** @import { Stream, StreamIterator } from "./types.d.ts" */

import { PlaitError } from "./errors.js";

/**
 * The iterator itself: however its reader goes, `leave` is called.
 *
 * @template T
 * @param {() => Promise<IteratorResult<T, undefined>>} next
 * @param {() => void} leave
 * @returns {StreamIterator<T>}
 */
export function iteratorOf(next, leave) {
  /** @type {StreamIterator<T>} */
  const iterator = {
    next,
    return: async (value) => {
      leave();
      return { value, done: true };
    },
    throw: async (reason) => {
      leave();
      throw reason;
    },
    [Symbol.asyncIterator]: () => iterator,
  };
  return iterator;
}

/**
 * @template T
 * @param {AsyncIterable<T>} stream
 * @returns {Promise<T[]>} resolves only when the stream completed
 */
export async function collect(stream) {
  /** @type {T[]} */
  const items = [];
  try {
    for await (const item of stream) items.push(item);
  } catch (error) {
    throw withPartial(error, items);
  }
  return items;
}

/**
 * @template T
 * @param {Stream<T>} stream
 * @returns {ReadableStream<T>}
 */
export function toReadableStream(stream) {
  const iterator = stream[Symbol.asyncIterator]();
  return new ReadableStream(
    {
      async pull(controller) {
        const { value, done } = await iterator.next();
        if (done) controller.close();
        else controller.enqueue(value);
      },
      async cancel() {
        await iterator.return();
      },
    },
    // Zero: an item is taken, and acked, when somebody reads it and not before.
    { highWaterMark: 0 },
  );
}

/**
 * A stream's error is that stream's alone, so what had arrived can be put on it.
 *
 * @param {unknown} error
 * @param {unknown} partial
 */
export function withPartial(error, partial) {
  if (PlaitError.isInstance(error)) error.partial = partial;
  return error;
}
