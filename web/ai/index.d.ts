/**
 * `plait/ai`: the Vercel AI SDK's useChat over Plait, for its versions 5 to 7, whose ChatTransport this class is.
 * Their types are not imported, so this file needs none of them installed.
 *
 *   const { messages, sendMessage, stop } = useChat({ transport: new PlaitChatTransport({ client }) });
 */

import type { ChatParams, Llm, StreamOptions, Usage } from "../sdk/types.d.ts";
import type { Chunk, Message } from "./internal.d.ts";

export type PlaitChatOptions = Partial<Omit<ChatParams, "messages">> &
  Omit<StreamOptions, "signal"> & {
    /** As connect() makes it, of `plait/chat` too. Default: a connection to the server the page came from. */
    client?: { readonly llm: Llm };
    /** What the model is told before the conversation. */
    system?: string;
  };

/** Of a finished answer: `useChat<UIMessage<PlaitMetadata>>` has it as `message.metadata`. */
export interface PlaitMetadata {
  usage?: Usage;
  model?: string;
}

/**
 * Parameters of chat may also come with one request: `sendMessage(message, { body: { temperature: 0 } })`.
 * `stop()` cancels on the wire. What fails is a PlaitError in useChat's `error`, with `code` and `retryable`; the text
 * so far stays. Files are refused with InvalidRequestError. There is no stream to resume after a reload: the server
 * stops what nobody waits for.
 */
export class PlaitChatTransport {
  constructor(options?: PlaitChatOptions);
  sendMessages(options: {
    messages: readonly Message[];
    abortSignal: AbortSignal | undefined;
    body?: object;
  }): Promise<ReadableStream<Chunk>>;
  reconnectToStream(): Promise<null>;
}
