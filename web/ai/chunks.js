/**
 * An answer of the chat method as the AI SDK's UI message chunks. Ends with what the server said of it, or throws what
 * broke it; what came before stays with whoever read it. Does not know transports.
 */

/** @import { ChatDelta, Stream, ToolCallDelta } from "../sdk/types.d.ts" */
/** @import { Chunk } from "./internal.d.ts" */

/** @type {Record<string, "stop" | "length" | "tool-calls">} */
const FINISH_REASONS = { stop: "stop", length: "length", tool_calls: "tool-calls" };

/**
 * @param {Stream<ChatDelta>} stream
 * @returns {AsyncGenerator<Chunk, void, undefined>}
 */
export async function* chunksOf(stream) {
  const text = new TextPart();
  const calls = new CallParts();
  yield { type: "start" };
  yield { type: "start-step" };
  for await (const delta of stream) {
    if (delta.content) yield* text.take(delta.content);
    for (const call of delta.toolCalls ?? []) {
      yield* text.end();
      yield* calls.take(call);
    }
    if (!delta.done) continue;
    yield* text.end();
    yield { type: "finish-step" };
    yield finishOf(delta, stream.started?.model);
  }
}

/**
 * @param {ChatDelta} delta
 * @param {string | undefined} model
 * @returns {Chunk}
 */
function finishOf({ finishReason = "", usage }, model) {
  const messageMetadata = { usage, ...(model && { model }) };
  return {
    type: "finish",
    finishReason: FINISH_REASONS[finishReason] ?? "other",
    messageMetadata,
  };
}

/** Text between calls is a part of its own. */
class TextPart {
  #count = 0;
  #open = false;

  /**
   * @param {string} delta
   * @returns {Generator<Chunk>}
   */
  *take(delta) {
    if (!this.#open) {
      this.#open = true;
      this.#count += 1;
      yield { type: "text-start", id: this.#id };
    }
    yield { type: "text-delta", id: this.#id, delta };
  }

  /** @returns {Generator<Chunk>} */
  *end() {
    if (this.#open) yield { type: "text-end", id: this.#id };
    this.#open = false;
  }

  get #id() {
    return `text-${this.#count}`;
  }
}

/** Calls by their index in the answer: its beginning, its arguments as they are written, then the whole. */
class CallParts {
  /** @type {Map<number, { toolCallId: string, toolName: string }>} */
  #begun = new Map();

  /**
   * @param {ToolCallDelta} delta
   * @returns {Generator<Chunk>}
   */
  *take({ index, id = "", function: called, complete }) {
    let call = this.#begun.get(index);
    if (!call) {
      call = { toolCallId: id, toolName: called.name ?? "" };
      this.#begun.set(index, call);
      yield { type: "tool-input-start", ...call };
    }
    const text = called.arguments ?? "";
    if (complete) yield wholeCall(call, text);
    else if (text) {
      yield { type: "tool-input-delta", toolCallId: call.toolCallId, inputTextDelta: text };
    }
  }
}

/**
 * @param {{ toolCallId: string, toolName: string }} call
 * @param {string} text
 * @returns {Chunk}
 */
function wholeCall(call, text) {
  try {
    return { type: "tool-input-available", ...call, input: JSON.parse(text) };
  } catch (error) {
    const errorText = `The arguments are no JSON: ${/** @type {Error} */ (error).message}`;
    return { type: "tool-input-error", ...call, input: text, errorText };
  }
}
