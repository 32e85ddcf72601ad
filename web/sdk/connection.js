/**
 * The connection as its streams see it: opened on first use, shared by all, coming back by itself.
 * It routes messages to streams by id and keeps ids strictly increasing, also across reconnections.
 * A request waits for at most one connection attempt and fails with it; a request that was sent is never
 * sent again: a lost socket ends every stream on it. After close(), or a close code that blames this client, nothing opens any more.
 * Does not know methods, and no more of a stream than `Carried`.
 */

/** @import { BinaryHeader, Carried, ClientMessage, Closing, Runtime, Target, Timer } from "./internal.d.ts" */
/** @import { ConnectionEvents, ConnectionState, ConnectOptions, Welcome } from "./types.d.ts" */

import { DEFAULT_MAX_DELAY_MS, retryDelayMs } from "./backoff.js";
import { closedByCaller, closingError, isFinal, minDelayMs } from "./closing.js";
import { MAX_STREAM_ID } from "./codec.js";
import { Emitter } from "./emitter.js";
import { InvalidRequestError, PlaitError } from "./errors.js";
import { Link } from "./link.js";

/** A connection that lasted this long was a good one: the next failure starts the back-off anew. */
const STABLE_MS = 5_000;
/** Who waits for the connection: a stream (it has an id), or somebody who only wants the welcome. */
/** @typedef {Carried | { admit(): null, lose(error: PlaitError): void }} Waiter */

export class Connection {
  #target;
  #runtime;
  /** @type {number | null} null: do not come back */
  #maxDelayMs;
  /** @type {ConnectionState} */
  #state = "idle";
  /** @type {Welcome | null} */
  #welcome = null;
  /** @type {Link | null} */
  #link = null;
  /** @type {Map<number, Carried>} */
  #live = new Map();
  /** In order of creation, so that ids go out increasing. @type {Set<Waiter>} */
  #waiting = new Set();
  #lastId = 0;
  #failures = 0;
  #openedAtMs = 0;
  /** @type {Timer | null} */
  #retry = null;
  /** Why it is closed for good, as a fresh error for each who asks. @type {(() => PlaitError) | null} */
  #finalError = null;
  /** @type {(() => void)[]} */
  #closers = [];
  /** @type {Emitter<ConnectionEvents>} */
  #emitter = new Emitter(["state", "frame"]);

  /**
   * @param {Target} target
   * @param {ConnectOptions["reconnect"]} reconnect
   * @param {Runtime} runtime
   */
  constructor(target, reconnect, runtime) {
    this.#target = target;
    this.#runtime = runtime;
    const { maxDelayMs = DEFAULT_MAX_DELAY_MS } = typeof reconnect === "object" ? reconnect : {};
    this.#maxDelayMs = reconnect === false ? null : maxDelayMs;
  }

  get state() {
    return this.#state;
  }

  get welcome() {
    return this.#welcome;
  }

  /**
   * @template {keyof ConnectionEvents} K
   * @param {K} type
   * @param {(event: ConnectionEvents[K]) => void} listener
   */
  on(type, listener) {
    return this.#emitter.on(type, listener);
  }

  /** @returns {Promise<Welcome>} opens when necessary; rejects when the attempt fails */
  opened() {
    return new Promise((resolve, reject) => {
      this.#await({
        admit: () => {
          resolve(/** @type {Welcome} */ (this.#welcome));
          return null;
        },
        lose: reject,
      });
    });
  }

  /** @returns {Promise<void>} resolves when the socket is gone */
  close() {
    if (this.#state !== "closed") this.#closeForGood(closedByCaller);
    return new Promise((resolve) => {
      if (!this.#link) {
        resolve();
        return;
      }
      this.#closers.push(resolve);
      this.#link.close();
    });
  }

  // What streams use (Transport).

  now() {
    return this.#runtime.now();
  }

  takeId() {
    if (this.#lastId >= MAX_STREAM_ID) {
      throw new PlaitError(
        "id_reused",
        "This connection has used up its stream ids: connect() anew.",
      );
    }
    this.#lastId += 1;
    return this.#lastId;
  }

  /** @param {Carried} stream */
  submit(stream) {
    this.#await(stream);
  }

  /** @param {Carried} stream */
  withdraw(stream) {
    this.#live.delete(stream.id);
    this.#waiting.delete(stream);
  }

  /** @param {ClientMessage} message */
  send(message) {
    this.#link?.send(message);
  }

  /** @param {BinaryHeader} header @param {Uint8Array} payload */
  sendBinary(header, payload) {
    this.#link?.sendBinary(header, payload);
  }

  get bufferedBytes() {
    return this.#link?.bufferedBytes ?? 0;
  }

  get maxBinaryBytes() {
    return this.#welcome?.limits.maxBinaryBytes ?? Number.POSITIVE_INFINITY;
  }

  get maxTextBytes() {
    return this.#welcome?.limits.maxTextBytes ?? Number.POSITIVE_INFINITY;
  }

  // Waiting and admitting.

  /** @param {Waiter} waiter */
  #await(waiter) {
    if (this.#finalError) {
      waiter.lose(this.#finalError());
      return;
    }
    if (this.#state === "open") {
      this.#admit(waiter);
      return;
    }
    this.#waiting.add(waiter);
    // From now on somebody waits for the next attempt: Node must not exit before it.
    this.#retry?.ref();
    if (!this.#link && !this.#retry) this.#attempt("connecting");
  }

  /** @param {Waiter} waiter */
  #admit(waiter) {
    const text = waiter.admit();
    if (text === null || !("id" in waiter)) return;
    const limit = this.maxTextBytes;
    // A longer frame would close the socket (1009) and end every other stream with it.
    const bytes = utf8Length(text, limit);
    if (bytes > limit) {
      waiter.lose(
        new InvalidRequestError(
          `This request has ${bytes} bytes; the server takes at most ${limit} in one message. Send less.`,
        ),
      );
      return;
    }
    this.#live.set(waiter.id, waiter);
    this.#link?.sendText(text);
  }

  // The life of links.

  /** @param {ConnectionState} state */
  #attempt(state) {
    this.#retry = null;
    this.#link = new Link(
      this.#target,
      {
        welcome: (welcome) => this.#onWelcome(welcome),
        message: (message) => this.#live.get(message.id)?.receive(message),
        binary: (frame) => this.#live.get(frame.header.id)?.receiveBinary(frame),
        hearsFrames: () => this.#emitter.hears("frame"),
        frame: (event) => this.#emitter.emit("frame", event),
        closed: (closing) => this.#onClosed(closing),
      },
      this.#runtime,
    );
    this.#setState(state);
  }

  /** @param {Welcome} welcome */
  #onWelcome(welcome) {
    this.#welcome = welcome;
    this.#openedAtMs = this.now();
    // Before the state is told: a listener that opens a stream must not overtake those who waited.
    for (const waiter of this.#waiting) {
      this.#waiting.delete(waiter);
      this.#admit(waiter);
    }
    this.#setState("open");
  }

  /** @param {Closing} closing */
  #onClosed(closing) {
    const wasOpen = this.#state === "open";
    this.#link = null;
    for (const resolve of this.#closers.splice(0)) resolve();
    if (this.#state === "closed") return;
    if (wasOpen && this.now() - this.#openedAtMs >= STABLE_MS) this.#failures = 0;
    const why = () => closingError(closing, wasOpen, this.#target.url);
    if (isFinal(closing) || this.#maxDelayMs === null) {
      this.#closeForGood(why);
      return;
    }
    this.#retryLater(this.#maxDelayMs, minDelayMs(closing));
    this.#setState("reconnecting", why());
    this.#loseAll(why);
  }

  /**
   * @param {number} maxDelayMs
   * @param {number} minDelayMs
   */
  #retryLater(maxDelayMs, minDelayMs) {
    const backoffMs = retryDelayMs(this.#failures, maxDelayMs, this.#runtime.random);
    const delayMs = Math.max(minDelayMs, backoffMs);
    this.#failures += 1;
    this.#retry = this.#runtime.after(delayMs, () => this.#attempt("reconnecting"));
    // Nobody waits: coming back is a courtesy and must not keep a Node process alive.
    this.#retry.unref();
  }

  /** @param {() => PlaitError} why */
  #closeForGood(why) {
    this.#finalError = why;
    this.#retry?.clear();
    this.#retry = null;
    this.#setState("closed", why === closedByCaller ? undefined : why());
    this.#loseAll(why);
  }

  /** @param {() => PlaitError} why */
  #loseAll(why) {
    const lost = [...this.#live.values(), ...this.#waiting];
    this.#live.clear();
    this.#waiting.clear();
    for (const waiter of lost) waiter.lose(why());
  }

  /**
   * @param {ConnectionState} state
   * @param {PlaitError} [error]
   */
  #setState(state, error) {
    const previous = this.#state;
    this.#state = state;
    if (previous !== state || error) this.#emitter.emit("state", { state, previous, error });
  }
}

/**
 * @param {string} text
 * @param {number} limit
 * @returns {number} exact when it matters: UTF-8 needs at most three bytes for a UTF-16 unit
 */
function utf8Length(text, limit) {
  return text.length * 3 <= limit ? text.length : new TextEncoder().encode(text).length;
}
