/**
 * What a store needs to know of a stream beside its items: that it moved in the queue, and what its end was. Does not
 * know React.
 */

/** @import { Plait, Stream } from "../sdk/types.d.ts" */

/**
 * @param {unknown} reason what the iteration threw
 * @param {AbortSignal | null | undefined} signal
 * @returns {{ status: "cancelled" | "error", error?: Error }} no error: they stopped it themselves
 */
export function endedBy(reason, signal) {
  const error = reason instanceof Error ? reason : new Error(String(reason));
  const aborted = error.name === "AbortError" || (signal?.aborted && reason === signal.reason);
  return aborted ? { status: "cancelled" } : { status: "error", error };
}

/**
 * Calls back when a frame of this stream comes, which is when it may have moved in the queue or begun, until it has.
 *
 * @param {Pick<Plait, "on">} client
 * @param {Pick<Stream<unknown>, "id" | "state">} stream
 * @param {() => void} moved
 * @returns {() => void} stops watching
 */
export function watchQueue(client, stream, moved) {
  const stop = client.on("frame", ({ direction, streamId }) => {
    if (direction !== "in" || streamId !== stream.id) return;
    if (stream.state !== "pending") stop();
    moved();
  });
  return stop;
}
