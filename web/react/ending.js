/**
 * What the end of a stream is for who watches: their own stop, or something that went wrong. Does not know React.
 */

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
 * Calls back whenever a frame of this stream comes, which is when it may have moved in the queue or begun.
 *
 * @param {import("../sdk/types.d.ts").Plait} client
 * @param {{ readonly id: number }} stream
 * @param {() => void} moved
 * @returns {() => void} stops watching
 */
export function watchQueue(client, stream, moved) {
  return client.on("frame", ({ direction, streamId }) => {
    if (direction === "in" && streamId === stream.id) moved();
  });
}
