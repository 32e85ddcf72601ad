/**
 * A transport for the AI SDK's useChat: requests go over Plait's one connection, and stop() is a cancel on the wire.
 * Imports nothing of the AI SDK.
 */

/** @import { ChatParams } from "../sdk/types.d.ts" */
/** @import { PlaitChatOptions } from "./index.d.ts" */
/** @import { Chunk, Message } from "./internal.d.ts" */

import { llm } from "../sdk/index.js";
import { chunksOf } from "./chunks.js";
import { chatMessages } from "./messages.js";

export class PlaitChatTransport {
  #llm;
  #params;

  /** @param {PlaitChatOptions} [options] */
  constructor({ client, ...params } = {}) {
    this.#llm = client?.llm ?? llm;
    this.#params = params;
  }

  /**
   * @param {{ messages: readonly Message[], abortSignal?: AbortSignal, body?: object }} options
   * @returns {Promise<ReadableStream<Chunk>>}
   */
  async sendMessages({ messages, abortSignal, body }) {
    const { system, ...params } = { ...this.#params, .../** @type {PlaitChatOptions} */ (body) };
    const said = chatMessages(messages);
    if (system) said.unshift({ role: "system", content: system });
    const stream = this.#llm.chatStream({
      .../** @type {Partial<ChatParams>} */ (params),
      messages: said,
      signal: abortSignal,
    });
    const chunks = chunksOf(stream);
    return new ReadableStream(
      {
        async pull(controller) {
          const { value, done } = await chunks.next();
          if (done) controller.close();
          else controller.enqueue(value);
        },
        cancel(reason) {
          void stream.cancel(reason); // also while a pull waits, which chunks.return() would wait for
        },
      },
      // Zero: a chunk is taken, and its item acked, when somebody reads it and not before.
      { highWaterMark: 0 },
    );
  }

  /** An answer ends with its connection, so there is never one to come back to. @returns {Promise<null>} */
  async reconnectToStream() {
    return null;
  }
}
