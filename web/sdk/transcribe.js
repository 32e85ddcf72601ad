/**
 * The transcribe method: audio goes up while it is captured or read, and segments come that are revised until they are
 * final. What was heard when, and what the server says of speech, is told as it happens; segments wait for the reader.
 * Does not know connections; `transport` is handed to Stream.
 */

/** @import { FileParams, LiveParams, Segment, StreamOptions, Transcript, TranscriptEvents, TranscriptStream as PublicTranscriptStream } from "./types.d.ts" */
/** @import { Runtime, Transport } from "./internal.d.ts" */

import { fileOf, isFile } from "./audio-source.js";
import { snakeKeys } from "./codec.js";
import { withPartial } from "./consume.js";
import { Listening } from "./listening.js";
import { Stream } from "./stream.js";
import { joined } from "./transcript.js";

/**
 * @param {Transport} transport
 * @param {LiveParams & StreamOptions} request
 * @param {Runtime} runtime
 * @returns {PublicTranscriptStream}
 */
export function transcribeLive(transport, request, runtime) {
  const listening = new Listening(transport, request, runtime);
  try {
    const stream = new TranscriptStream(transport, request, listening);
    listening.begin(stream);
    return stream;
  } catch (error) {
    listening.upload.stop();
    throw error;
  }
}

/**
 * @param {Transport} transport
 * @param {FileParams & StreamOptions} request
 * @param {Runtime} runtime
 * @returns {Promise<Transcript>}
 */
export async function transcribeFile(transport, { file, ...request }, runtime) {
  const source = isFile(file) ? file : fileOf(file);
  /** @type {Segment[]} */
  const segments = [];
  const transcript = () => ({ text: joined(segments), segments });
  try {
    for await (const segment of transcribeLive(
      transport,
      { interim: false, ...request, source },
      runtime,
    )) {
      if (segment.isFinal && segment.text.trim()) segments.push(segment);
    }
  } catch (error) {
    throw withPartial(error, transcript());
  }
  return transcript();
}

/**
 * @extends {Stream<Segment>}
 * @implements {PublicTranscriptStream}
 */
class TranscriptStream extends Stream {
  #listening;

  /**
   * @param {Transport} transport
   * @param {LiveParams & StreamOptions} request
   * @param {Listening} listening
   */
  constructor(transport, request, listening) {
    const { source, context, workletUrl, signal, window, deadlineMs, priority, ...rest } = request;
    const options = { signal, window, deadlineMs, priority };
    const { format } = listening.input;
    const params =
      typeof format === "function"
        ? async () => snakeKeys({ ...rest, ...(await listening.formatOf(format)) })
        : snakeKeys({ ...rest, ...format });
    super(transport, {
      method: "transcribe",
      params,
      options,
      decoder: listening,
      observer: listening,
    });
    this.#listening = listening;
  }

  get input() {
    return this.#listening.state;
  }

  get bufferedMs() {
    return this.#listening.bufferedMs;
  }

  get sentMs() {
    return this.#listening.sentMs;
  }

  get durationMs() {
    return this.#listening.input.durationMs;
  }

  stopInput() {
    this.#listening.stopInput();
  }

  /**
   * @template {keyof TranscriptEvents} K
   * @param {K} type
   * @param {(event: TranscriptEvents[K]) => void} listener
   */
  on(type, listener) {
    return this.#listening.on(type, listener);
  }
}
