/**
 * The embed method: texts go up, at once or as they are read from their source, and a vector comes for each, in order.
 * A text that cannot be embedded is answered with its error and ends nothing else.
 * Does not know connections; `transport` is handed to Stream.
 */

/** @import { Embedding, EmbeddingStream as PublicEmbeddingStream, EmbedParams, End, StreamOptions } from "./types.d.ts" */
/** @import { BinaryFrame, Decoder, Runtime, StreamMessage, StreamObserver, Transport } from "./internal.d.ts" */

import { CodecError, snakeKeys } from "./codec.js";
import { EmbeddingItems } from "./embedding-items.js";
import { InvalidRequestError, PlaitError, StreamError } from "./errors.js";
import { Stream } from "./stream.js";
import { TextBatches } from "./text-batches.js";
import { openTexts, TextLists } from "./text-lists.js";
import { iteratorOver, Upload } from "./upload.js";

const TEXTS_EXPECTED = "an array of strings, or an iterable of them";
/** What lies in the socket delays a cancel. */
const MAX_SOCKET_BYTES = 131_072;

/**
 * @param {Transport} transport
 * @param {EmbedParams & StreamOptions} request
 * @param {Runtime} runtime
 * @returns {PublicEmbeddingStream}
 */
export function embedStream(transport, request, runtime) {
  const life = new EmbedLife(transport, request.texts, runtime);
  try {
    const stream = new EmbeddingStream(transport, request, life);
    life.stream = stream;
    return stream;
  } catch (error) {
    life.upload?.stop();
    throw error;
  }
}

/**
 * All vectors, by text. It resolves only when every text has one; the error of the first that has none carries the
 * others' in `embeddings`.
 *
 * @param {Transport} transport
 * @param {EmbedParams & StreamOptions} request
 * @param {Runtime} runtime
 * @returns {Promise<Float32Array[]>}
 */
export async function embedTexts(transport, request, runtime) {
  /** @type {Float32Array[]} */
  const embeddings = [];
  /** @type {(Float32Array | null)[]} */
  const answers = [];
  let first = null;
  try {
    for await (const { embedding, error } of embedStream(transport, request, runtime)) {
      answers.push(embedding ?? null);
      if (embedding) embeddings.push(embedding);
      first ??= error;
    }
  } catch (error) {
    throw withEmbeddings(error, answers);
  }
  if (first) throw withEmbeddings(first, answers);
  return embeddings;
}

/**
 * @extends {Stream<Embedding>}
 * @implements {PublicEmbeddingStream}
 */
class EmbeddingStream extends Stream {
  #life;

  /**
   * @param {Transport} transport
   * @param {EmbedParams & StreamOptions} request
   * @param {EmbedLife} life
   */
  constructor(transport, request, life) {
    const { texts, stream, signal, window, deadlineMs, priority, ...rest } = request;
    const params = snakeKeys({ ...rest, texts: life.opening ?? undefined });
    const options = { signal, window, deadlineMs, priority };
    super(transport, { method: "embed", params, options, decoder: life, observer: life });
    life.opening = null; // encoded; a long stream need not keep them
    this.#life = life;
  }

  get progress() {
    const { items, total } = this.#life;
    return { done: items.count, total };
  }
}

/**
 * What one embedding stream knows beside its stream: the decoder of its items and the texts on their way up. Made
 * before the stream, which reports to it from its constructor on.
 *
 * @implements {Decoder<Embedding>}
 * @implements {StreamObserver}
 */
class EmbedLife {
  #given;
  #windowBytes = 0;
  #lists;

  items = new EmbeddingItems();
  /** @type {EmbeddingStream | null} */
  stream = null;
  /** What the open carries; null: the texts follow. @type {string[] | null} */
  opening = null;
  /** @type {Upload<string[]> | null} */
  upload = null;

  /**
   * @param {Transport} transport
   * @param {EmbedParams["texts"]} texts
   * @param {Runtime} runtime
   */
  constructor(transport, texts, runtime) {
    if (typeof texts === "string") throw notTexts();
    const all = Array.isArray(texts) ? texts.slice() : null; // what is added later was not asked for
    this.#given = all ? all.length : null;
    this.opening = all && openTexts(all);
    const window = () => this.#windowBytes;
    this.#lists = new TextLists({
      get maxTextBytes() {
        return transport.maxTextBytes;
      },
      get windowBytes() {
        return window();
      },
    });
    if (this.opening) return;
    const source = new TextBatches(iteratorOver(all ?? texts, "texts", TEXTS_EXPECTED), runtime);
    this.upload = this.#createUpload(transport, source, runtime);
  }

  /** How many texts there are, once that is known. */
  get total() {
    return this.#given ?? (this.#lists.whole ? this.#lists.count : null);
  }

  // StreamObserver: what the wire says.

  /** @param {Extract<StreamMessage, { type: "accepted" }>} message */
  accepted({ windowBytes }) {
    if (windowBytes === undefined) return;
    this.#windowBytes = Math.max(this.#windowBytes, windowBytes);
    this.upload?.grant(windowBytes);
  }

  /** @param {Extract<StreamMessage, { type: "input_ack" }>} message */
  inputAck({ bytes, windowBytes }) {
    this.upload?.grant(bytes + windowBytes);
  }

  /** @param {Extract<StreamMessage, { type: "started" }>} message */
  started({ format }) {
    if (this.upload?.waits) void this.stream?.cancel(noUploadError());
    this.items.begin(format);
  }

  left() {
    this.upload?.stop();
    return undefined;
  }

  /** @param {End} _ */
  ended(_) {
    this.upload?.stop();
  }

  // Decoder: what the items are.

  /** @param {any} data */
  item(data) {
    return this.items.item(data);
  }

  /** @param {BinaryFrame} frame */
  binary(frame) {
    return this.items.binary(frame);
  }

  /** @returns {undefined} */
  end() {
    const { total } = this;
    if (this.items.count === total) return;
    const texts = total === null ? "texts that were still on their way up" : `${total} texts`;
    throw new CodecError(`the stream ended after ${this.items.count} of ${texts}`);
  }

  /**
   * @param {Transport} transport
   * @param {TextBatches} source
   * @param {Runtime} runtime
   */
  #createUpload(transport, source, runtime) {
    const id = () => /** @type {EmbeddingStream} */ (this.stream).id;
    return new Upload(source, this.#lists, {
      get maxBytes() {
        return transport.maxTextBytes;
      },
      get full() {
        return transport.bufferedBytes > MAX_SOCKET_BYTES;
      },
      send: (texts) => transport.send({ type: "input", id: id(), texts }),
      end: () => transport.send({ type: "end", id: id() }),
      fail: (reason) => void this.stream?.cancel(reason),
      after: runtime.after,
    });
  }
}

/**
 * @param {unknown} error
 * @param {(Float32Array | null)[]} embeddings
 */
function withEmbeddings(error, embeddings) {
  if (PlaitError.isInstance(error)) {
    error.embeddings = embeddings;
    error.partial = embeddings;
  }
  return error;
}

function notTexts() {
  return new InvalidRequestError(`texts must be ${TEXTS_EXPECTED}`, { param: "texts" });
}

function noUploadError() {
  return new StreamError(
    "protocol_error",
    "The server takes no texts after the open: give fewer of them at once.",
  );
}
