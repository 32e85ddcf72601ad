/**
 * One WebSocket from its first byte to its last: the handshake until the server's `welcome`, liveness,
 * and exactly one `closed`, however it ends. Every wait has a limit, so nothing behind it can hang.
 * Does not know streams or reconnecting; a new attempt is a new Link.
 */

/** @import { BinaryHeader, ClientMessage, LinkHandlers, Runtime, Target, Timer } from "./internal.d.ts" */
/** @import { FrameEvent, WebSocketLike } from "./types.d.ts" */

import { CodecError, decode, encode, PROTOCOL, parse, tokenProtocol } from "./codec.js";
import { Liveness } from "./liveness.js";

const CONNECT_TIMEOUT_MS = 10_000;
const CLOSE_TIMEOUT_MS = 1_000;
const DEFAULT_PING_SECONDS = 10;
const OPEN = 1;

export class Link {
  #target;
  #handlers;
  #runtime;
  /** @type {WebSocketLike | null} */
  #socket = null;
  /** @type {Liveness | null} */
  #liveness = null;
  #welcomed = false;
  #ended = false;
  #pings = 0;
  /** @type {unknown} */
  #socketError = undefined;
  /** The one timer that runs: connecting, then ticking, then closing. @type {Timer} */
  #timer;

  /**
   * @param {Target} target
   * @param {LinkHandlers} handlers
   * @param {Runtime} runtime
   */
  constructor(target, handlers, runtime) {
    this.#target = target;
    this.#handlers = handlers;
    this.#runtime = runtime;
    this.#timer = runtime.after(CONNECT_TIMEOUT_MS, () => {
      this.#finish(0, `no welcome within ${CONNECT_TIMEOUT_MS / 1000} s`);
    });
    void this.#open();
  }

  /** @param {ClientMessage} message */
  send(message) {
    this.sendText(encode(message));
  }

  /**
   * Dropped when the socket is no longer open: its end is about to be told, and ends every stream.
   *
   * @param {string} text
   */
  sendText(text) {
    if (this.#ended || this.#socket?.readyState !== OPEN) return;
    this.#socket.send(text);
    if (this.#handlers.hearsFrames()) this.#tellText("out", text, parse(text));
  }

  /** @param {BinaryHeader} header @param {Uint8Array} payload */
  sendBinary(header, payload) {
    const frame = this.#target.binary?.encode(header, payload);
    if (!frame || this.#ended || this.#socket?.readyState !== OPEN) return;
    this.#socket.send(frame);
    this.#tell({
      direction: "out",
      type: "binary",
      streamId: header.id,
      header,
      bytes: frame.length,
    });
  }

  /** Sent and still here. */
  get bufferedBytes() {
    return this.#socket?.bufferedAmount ?? 0;
  }

  /** An orderly end; `closed` follows within a second. */
  close() {
    if (this.#ended) return;
    if (!this.#socket) {
      this.#finish(1000, "closed");
      return;
    }
    this.#restartTimer(CLOSE_TIMEOUT_MS, () => this.#finish(1000, "closed"));
    this.#socket.onmessage = null;
    this.#socket.close(1000);
  }

  async #open() {
    try {
      const protocols = await this.#protocols();
      if (this.#ended) return;
      this.#listen(new this.#target.WebSocket(this.#target.url, protocols));
    } catch (cause) {
      this.#finish(0, cause instanceof Error ? cause.message : String(cause), cause);
    }
  }

  async #protocols() {
    const { token } = this.#target;
    if (token === undefined) return [PROTOCOL];
    return [PROTOCOL, tokenProtocol(typeof token === "function" ? await token() : token)];
  }

  /** @param {WebSocketLike} socket */
  #listen(socket) {
    this.#socket = socket;
    socket.binaryType = "arraybuffer";
    socket.onmessage = (event) => this.#receive(event.data);
    socket.onerror = (event) => {
      // Browsers say nothing here on purpose; Node's ws says why, which is worth keeping.
      this.#socketError = event?.error ?? event?.message;
    };
    socket.onclose = ({ code, reason }) => {
      this.#finish(refusedToken(this.#socketError) ? 4401 : code, reason, this.#socketError);
    };
  }

  /** @param {unknown} data */
  #receive(data) {
    this.#liveness?.receive();
    try {
      if (typeof data === "string") this.#receiveText(data);
      else if (data instanceof ArrayBuffer) this.#receiveBinary(data);
    } catch (error) {
      if (!(error instanceof CodecError)) throw error;
      this.#socket?.close(4400);
      this.#finish(0, error.message, error);
    }
  }

  /** @param {string} text */
  #receiveText(text) {
    const wire = parse(text);
    if (this.#handlers.hearsFrames()) this.#tellText("in", text, wire);
    const message = decode(wire);
    if (!this.#welcomed) {
      this.#receiveFirst(message);
    } else if (message && "id" in message) {
      this.#handlers.message(message);
    }
  }

  /** @param {import("./internal.d.ts").ServerMessage | null} message */
  #receiveFirst(message) {
    if (message?.type !== "welcome") throw new CodecError("the first message is not welcome");
    const { type, ...welcome } = message;
    if (welcome.protocol !== PROTOCOL) {
      throw new CodecError(`the server speaks ${welcome.protocol}, this client ${PROTOCOL}`);
    }
    if (!welcome.limits || !welcome.methods)
      throw new CodecError("welcome lacks limits or methods");
    this.#welcomed = true;
    const intervalMs = (welcome.limits.pingSeconds || DEFAULT_PING_SECONDS) * 1000;
    this.#liveness = new Liveness(intervalMs, this.#runtime.now());
    this.#scheduleTick(this.#liveness, intervalMs);
    this.#handlers.welcome(welcome);
  }

  /** @param {ArrayBuffer} buffer */
  #receiveBinary(buffer) {
    const frame = this.#target.binary?.decode(buffer);
    if (!frame) return;
    const { header } = frame;
    const bytes = buffer.byteLength;
    this.#tell({ direction: "in", type: "binary", streamId: header.id, header, bytes });
    this.#handlers.binary(frame);
  }

  /**
   * @param {Liveness} liveness
   * @param {number} intervalMs
   */
  #scheduleTick(liveness, intervalMs) {
    this.#restartTimer(intervalMs, () => {
      const verdict = liveness.tick(this.#runtime.now());
      if (verdict === "dead") {
        this.#finish(0, `nothing was heard from the server for ${(2 * intervalMs) / 1000} s`);
        return;
      }
      if (verdict === "ping") {
        this.#pings += 1;
        this.send({ type: "ping", n: this.#pings });
      }
      this.#scheduleTick(liveness, intervalMs);
    });
  }

  /**
   * @param {FrameEvent["direction"]} direction
   * @param {string} text
   * @param {Record<string, unknown>} message
   */
  #tellText(direction, text, message) {
    this.#tell({
      direction,
      type: String(message.type),
      streamId: typeof message.id === "number" ? message.id : null,
      message,
      bytes: new TextEncoder().encode(text).length,
    });
  }

  /** @param {Omit<FrameEvent, "time">} frame */
  #tell(frame) {
    this.#handlers.frame({ ...frame, time: this.#runtime.now() });
  }

  /**
   * @param {number} delayMs
   * @param {() => void} callback
   */
  #restartTimer(delayMs, callback) {
    this.#timer.clear();
    this.#timer = this.#runtime.after(delayMs, callback);
  }

  /**
   * @param {number} code
   * @param {string} reason
   * @param {unknown} [cause]
   */
  #finish(code, reason, cause) {
    if (this.#ended) return;
    this.#ended = true;
    this.#timer.clear();
    const socket = this.#socket;
    if (socket) {
      // The error handler stays a function: ws throws an error nobody listens for.
      socket.onmessage = socket.onclose = null;
      socket.onerror = () => {};
      if (code === 0) socket.close();
    }
    this.#handlers.closed({ code, reason, cause });
  }
}

/**
 * A program with a wrong token is refused by HTTP status, before there is a socket to close with 4401.
 * Of all WebSocket classes only Node's ws tells the status, and only in its text.
 *
 * @param {unknown} error
 */
function refusedToken(error) {
  return error instanceof Error && /server response: 401\b/.test(error.message);
}
