/**
 * The chat method: what is asked, what an item and the end mean to a consumer.
 * Other methods are modules like this one over the same Stream.
 * Does not know connections; `transport` is handed to Stream.
 */

/** @import { ChatDelta, ChatParams, Stream as PublicStream, StreamOptions } from "./types.d.ts" */
/** @import { Decoder, Transport } from "./internal.d.ts" */

import { snakeKeys } from "./codec.js";
import { withPartial } from "./consume.js";
import { Stream } from "./stream.js";

/** @type {Decoder<ChatDelta>} */
const CHAT_DECODER = {
  item(data) {
    if (typeof data !== "object" || data === null) return undefined;
    /** @type {ChatDelta} */
    const delta = { content: data.content ?? "", done: false };
    if (data.logprobs) delta.logprobs = data.logprobs;
    if (data.tool_calls) delta.toolCalls = data.tool_calls;
    return delta;
  },
  end({ usage, finishReason }) {
    return { content: "", done: true, usage, finishReason };
  },
};

/**
 * Opens at once. Iterate the result once; its last delta has `done: true` and `usage`.
 *
 * @param {Transport} transport
 * @param {ChatParams & StreamOptions} request
 * @returns {PublicStream<ChatDelta>}
 */
export function chatStream(transport, request) {
  const { signal, window, deadlineMs, priority, ...params } = request;
  return new Stream(transport, {
    method: "chat",
    params: snakeKeys(params),
    options: { signal, window, deadlineMs, priority },
    decoder: CHAT_DECODER,
  });
}

/**
 * The whole answer as one string. It resolves only when the server said the answer is complete; a broken
 * stream rejects, with the text so far in `error.partial`. For usage, tool calls or logprobs, use chatStream.
 *
 * @param {Transport} transport
 * @param {ChatParams & StreamOptions} request
 * @returns {Promise<string>}
 */
export async function chat(transport, request) {
  let text = "";
  try {
    for await (const delta of chatStream(transport, request)) text += delta.content;
  } catch (error) {
    throw withPartial(error, text);
  }
  return text;
}
