/**
 * One stream, from open to its single ending, seen from two sides that need not end together:
 * the consumer may leave at any time (break, cancel, abort) and is let go in the same tick; the wire ends
 * with the server's terminal, which settles `done` and carries the proof that the work stopped.
 * After either has ended nothing more is delivered. `done` and `cancel()` never reject.
 * Does not know the method: a decoder turns items into values. Does not know sockets: `transport` sends.
 */

/** @import { Cancel, End, Progress, StreamState } from "./types.d.ts" */
/** @import { PlaitError } from "./errors.js" */
/** @import { BinaryFrame, ClientMessage, Decoder, Divertible, Inlet, StreamMessage, StreamObserver, StreamSpec, Transport, Terminal } from "./internal.d.ts" */

import { onAbort } from "./abort-watch.js";
import { CodecError, encode } from "./codec.js";
import { collect, toReadableStream } from "./consume.js";
import { Credit } from "./credit.js";
import {
  cancelledEnd,
  costOf,
  endAfterLeaving,
  nothingHeldEnd,
  proofOf,
  unconfirmedEnd,
} from "./ending.js";
import { abortError, errorFromWire, StreamCancelledError, StreamError } from "./errors.js";
import { checkedSignal, checkedWindow } from "./options.js";
import { Reading } from "./reading.js";

/**
 * @template T
 * @implements {Divertible<T>}
 */
export class Stream {
  /** 0: not asked for yet, its params are not known. */
  #id = 0;
  #transport;
  /** @type {Decoder<T>} */
  #decoder;
  /** @type {StreamObserver | undefined} */
  #observer;
  #credit;
  #signal;
  /** @type {Reading<T>} */
  #reading;
  #openText = "";
  /** @type {StreamState} */
  #state = "pending";
  /** @type {Progress | null} */
  #queue = null;
  /** @type {Divertible<T>["started"]} */
  #started = null;
  #opened = false;
  /** Somebody says by ackThrough() what was consumed; taking alone is not consuming. */
  #holdsAcks = false;
  /** The consumer left before the server's terminal; what it still sends is dropped. */
  #left = false;
  /** To the signal. */
  #stopListening = () => {};
  /** @type {End | null} */
  #end = null;
  /** @type {(end: End) => void} */
  #settle = () => {};
  /** @type {Promise<End>} */
  #done = new Promise((resolve) => {
    this.#settle = resolve;
  });

  /**
   * Opens at once, or as soon as the transport can. A signal that is already aborted sends nothing.
   *
   * @param {Transport} transport
   * @param {StreamSpec<T>} spec
   */
  constructor(transport, spec) {
    const window = checkedWindow(spec.options.window);
    this.#transport = transport;
    this.#decoder = spec.decoder;
    this.#observer = spec.observer;
    this.#signal = checkedSignal(spec.options.signal);
    this.#credit = new Credit(window, transport.now());
    this.#reading = new Reading({
      heed: () => this.#heed(),
      take: (seq) => this.#take(seq),
      leave: (failure) => this.#leave(failure),
    });
    const { params, method } = spec;
    const { priority, deadlineMs } = spec.options;
    const open = { type: /** @type {const} */ ("open"), method, window, priority, deadlineMs };
    if (typeof params !== "function") this.#prepare({ ...open, params });
    if (this.#signal?.aborted) {
      this.#leave({ reason: this.#signal.reason });
      return;
    }
    this.#stopListening = onAbort(this.#signal, () => this.#onAbort());
    if (typeof params !== "function") transport.submit(this);
    else void this.#submitLater(async () => this.#prepare({ ...open, params: await params() }));
  }

  /**
   * Encoded now: what the caller changes in `messages` later must not change what was asked for,
   * and a value JSON cannot carry throws here, at the caller, instead of at a later reconnection.
   *
   * @param {Omit<Extract<ClientMessage, { type: "open" }>, "id">} open
   */
  #prepare(open) {
    const id = this.#transport.takeId();
    this.#openText = encode({ ...open, id });
    this.#id = id;
  }

  /**
   * An id is taken when the open can go out: on the wire they only ever increase.
   *
   * @param {() => Promise<void>} prepare
   */
  async #submitLater(prepare) {
    try {
      await prepare();
    } catch (error) {
      this.lose(/** @type {PlaitError} */ (error));
    }
    if (!this.#end) this.#transport.submit(this);
  }

  get id() {
    return this.#id;
  }

  get state() {
    return this.#state;
  }

  get queue() {
    return this.#queue;
  }

  get started() {
    return this.#started;
  }

  get done() {
    return this.#done;
  }

  /**
   * @param {unknown} [reason] what a waiting iteration is told; default: an AbortError
   * @returns {Promise<Cancel>}
   */
  cancel(reason = abortError("The stream was cancelled.")) {
    this.#leave({ reason });
    return this.#done.then(proofOf);
  }

  /** @returns {Promise<T[]>} */
  collect() {
    return collect(this);
  }

  /** @returns {ReadableStream<T>} */
  toReadableStream() {
    return toReadableStream(this);
  }

  [Symbol.asyncIterator]() {
    return this.#reading.iterator();
  }

  // Called by the SDK's own modules.

  /** @param {Inlet<T>} inlet */
  divert(inlet) {
    return this.#reading.divert(inlet);
  }

  /** From now on an item is consumed when ackThrough() says so, not when it is taken. */
  holdAcks() {
    this.#holdsAcks = true;
  }

  /** @param {number} seq everything through this one was consumed */
  ackThrough(seq) {
    const due = this.#credit.take(seq, this.#transport.now());
    if (due !== null && !this.#end && !this.#left)
      this.#transport.send({ type: "ack", id: this.#id, seq: due });
  }

  // Called by the connection (Carried).

  /** The connection can carry it now; returns the text to send. */
  admit() {
    this.#opened = true;
    return this.#openText;
  }

  /**
   * The stream can never finish: no connection, a lost one, a closed one, a broken peer.
   *
   * @param {PlaitError} error
   */
  lose(error) {
    if (this.#end) return;
    if (this.#left) this.#conclude(unconfirmedEnd());
    else this.#breakOff(error);
  }

  /** @param {StreamMessage} message */
  receive(message) {
    if (message.type === "accepted") this.#receiveAccepted(message);
    else if (message.type === "started") this.#receiveStarted(message);
    else if (message.type === "item") this.#receiveItem(message);
    else if (message.type === "input_ack") this.#observer?.inputAck?.(message);
    else this.#receiveTerminal(message);
  }

  /** @param {BinaryFrame} frame */
  receiveBinary(frame) {
    const { seq } = frame.header;
    if (this.#left || !this.#counts(seq)) return;
    const values = this.#read(() => this.#decoder.binary?.(frame));
    // Of a kind this method does not know: ignored (§8), and acked with the next item that is taken.
    if (values !== undefined) this.#inlet.putAll(values, seq);
  }

  /**
   * @template V
   * @param {() => V} decode
   * @returns {V | undefined} undefined after a fault, which has ended the stream
   */
  #read(decode) {
    try {
      return decode();
    } catch (error) {
      if (!(error instanceof CodecError)) throw error;
      this.#violate(error.message);
      return undefined;
    }
  }

  /** @param {Extract<StreamMessage, { type: "accepted" }>} message */
  #receiveAccepted(message) {
    const { phase, position, percent, etaMs } = message;
    if (this.#state === "pending") this.#queue = { phase, position: position ?? 0, percent, etaMs };
    if (!this.#left) this.#observer?.accepted?.(message);
  }

  /** @param {Extract<StreamMessage, { type: "started" }>} message */
  #receiveStarted(message) {
    if (this.#state !== "pending") return;
    const { model, maxTokens } = message;
    this.#state = "streaming";
    this.#queue = null;
    this.#started = { model, maxTokens };
    this.#observer?.started?.(message);
  }

  /** @param {Extract<StreamMessage, { type: "item" }>} message */
  #receiveItem({ seq, data }) {
    if (this.#left || !this.#counts(seq)) return;
    const value = this.#decoder.item(data, seq);
    if (value === undefined) this.#violate(`item ${seq} is not one of this method`);
    else if (value === null) this.#inlet.ride(seq);
    else this.#inlet.put(value, seq);
  }

  /**
   * @param {number} seq
   * @returns {boolean} false: the peer broke the protocol, and the stream with it
   */
  #counts(seq) {
    if (this.#credit.receive(seq)) return true;
    const { received } = this.#credit;
    this.#violate(`item ${seq} came after item ${received}, out of order or beyond the window`);
    return false;
  }

  /** @param {Terminal} message */
  #receiveTerminal(message) {
    if (this.#left) this.#conclude(endAfterLeaving(message));
    else if (message.type === "done") this.#receiveDone(message);
    else if (message.type === "cancelled") {
      this.#inlet.fail(new StreamCancelledError(message.by));
      this.#conclude(cancelledEnd(message));
    } else {
      this.#breakOff(errorFromWire(message.error), message);
    }
  }

  /** @param {Extract<Terminal, { type: "done" }>} message */
  #receiveDone(message) {
    const { received } = this.#credit;
    if (message.seq !== undefined && message.seq !== received) {
      // Items are missing: an answer with a hole must not pass for a whole one.
      const text = `the stream ended at item ${message.seq}, but only ${received} arrived`;
      this.#breakOff(protocolError(text), message);
      return;
    }
    const last = this.#read(() => this.#decoder.end(message));
    if (this.#end) return;
    if (last !== undefined) this.#inlet.put(last, 0);
    this.#inlet.finish();
    const { finishReason } = message;
    this.#conclude({ state: "completed", finishReason, ...costOf(message) });
  }

  /** @param {string} text */
  #violate(text) {
    this.#transport.send({ type: "cancel", id: this.#id });
    this.#breakOff(protocolError(text));
  }

  /**
   * @param {PlaitError} error
   * @param {Terminal} [terminal] what the server said about it, if it did
   */
  #breakOff(error, terminal) {
    this.#inlet.fail(error);
    this.#conclude({ state: "errored", error, ...costOf(terminal) });
  }

  /** The wire may be done while items still wait: then the listener is gone, but an abort still counts. */
  #heed() {
    if (this.#end && this.#signal?.aborted) this.#inlet.discard({ reason: this.#signal.reason });
  }

  get #inlet() {
    return this.#reading.inlet;
  }

  /** @param {number} seq */
  #take(seq) {
    if (seq > 0 && !this.#holdsAcks) this.ackThrough(seq);
  }

  #onAbort() {
    this.#leave({ reason: this.#signal?.reason });
  }

  /** @param {{ reason: unknown } | null} failure what the consumer is told; null when it knows */
  #leave(failure) {
    this.#inlet.discard(failure);
    if (this.#end || this.#left) return;
    this.#left = true;
    this.#state = "cancelled";
    this.#queue = null;
    this.#stopListening();
    const heardMs = this.#observer?.left?.(failure);
    if (this.#opened) this.#transport.send({ type: "cancel", id: this.#id, heardMs });
    else this.#conclude(nothingHeldEnd());
  }

  /** @param {End} end */
  #conclude(end) {
    this.#end = end;
    this.#state = end.state;
    this.#queue = null;
    this.#stopListening();
    this.#transport.withdraw(this);
    this.#settle(end);
    this.#observer?.ended?.(end);
  }
}

/** @param {string} text */
function protocolError(text) {
  return new StreamError("protocol_error", `The server broke the protocol: ${text}.`);
}
