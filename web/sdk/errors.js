/**
 * Every error the SDK throws, as one tree:
 *
 *   PlaitError                    anything Plait refused or failed, with the code of PROTOCOL.md §6
 *   ├─ InvalidRequestError        a parameter is wrong; `param` names it
 *   ├─ CapabilityDeniedError      this app may not do that; `capability` names it
 *   ├─ ResourceNotAvailableError  it does not fit; `requiredBytes` and `availableBytes` say by how much
 *   ├─ StreamError                a running stream broke: lost socket, engine crash, failed generation
 *   └─ StreamCancelledError       the server stopped the stream (deadline, slow reader, shutdown), not you
 *
 * Your own abort is not in this tree: it is the platform's AbortError, or the reason you gave.
 * The client's own codes: connection_failed, connection_lost, connection_closed, protocol_error for a server that breaks
 * the protocol, input_overflow, and of a conversation transcription_ended. Does not know streams or sockets.
 */

/** @import { WireError } from "./internal.d.ts" */
/** @import { ErrorDetails, ErrorClass } from "./types.d.ts" */

/**
 * Brands live on the prototype under a registered symbol, so a class recognises instances made by
 * another copy of this module (two bundles on one page), which `instanceof` does not.
 *
 * @template E
 * @param {abstract new (...args: any[]) => E} errorClass
 * @param {string} name
 * @returns {(value: unknown) => value is E} isInstance
 */
function branded({ prototype }, name) {
  const brand = Symbol.for(`plait.${name}`);
  Object.defineProperty(prototype, brand, { value: true });
  Object.defineProperty(prototype, "name", { value: name });
  return /** @type {(value: unknown) => value is E} */ (
    (value) => typeof value === "object" && value !== null && brand in value
  );
}

export class PlaitError extends Error {
  /** @type {(value: unknown) => value is PlaitError} */
  static isInstance = branded(PlaitError, "PlaitError");

  /**
   * @param {string} code
   * @param {string} message
   * @param {ErrorDetails} [details]
   */
  constructor(code, message, details = {}) {
    super(message, details.cause === undefined ? undefined : { cause: details.cause });
    this.code = code;
    /** @type {ErrorClass} */
    this.class = details.class ?? "client";
    this.retryable = details.retryable ?? false;
    this.retryAfterMs = details.retryAfterMs;
    /** @type {Record<string, unknown>} */
    this.data = details.data ?? {};
    /** What had arrived before the failure: items for collect(), text for chat(). @type {unknown} */
    this.partial = undefined;
    /** Of embed.create(): by text, null where there is none. @type {(Float32Array | null)[] | undefined} */
    this.embeddings = undefined;
  }
}

export class InvalidRequestError extends PlaitError {
  /** @type {(value: unknown) => value is InvalidRequestError} */
  static isInstance = branded(InvalidRequestError, "InvalidRequestError");

  /**
   * @param {string} message
   * @param {ErrorDetails & { param?: string }} [details]
   */
  constructor(message, details = {}) {
    super("invalid_request", message, details);
    this.param = details.param;
  }
}

export class CapabilityDeniedError extends PlaitError {
  /** @type {(value: unknown) => value is CapabilityDeniedError} */
  static isInstance = branded(CapabilityDeniedError, "CapabilityDeniedError");

  /**
   * @param {string} message
   * @param {ErrorDetails} [details]
   */
  constructor(message, details = {}) {
    super("capability_denied", message, details);
    this.capability = String(this.data.capability ?? "");
  }
}

export class ResourceNotAvailableError extends PlaitError {
  /** @type {(value: unknown) => value is ResourceNotAvailableError} */
  static isInstance = branded(ResourceNotAvailableError, "ResourceNotAvailableError");

  /**
   * @param {string} message
   * @param {ErrorDetails} [details]
   */
  constructor(message, details = {}) {
    super("resource_not_available", message, { class: "capacity", ...details });
    this.model = String(this.data.model ?? "");
    this.requiredBytes = asNumber(this.data.requiredBytes);
    this.availableBytes = asNumber(this.data.availableBytes);
  }
}

export class StreamError extends PlaitError {
  /** @type {(value: unknown) => value is StreamError} */
  static isInstance = branded(StreamError, "StreamError");

  /**
   * @param {string} code
   * @param {string} message
   * @param {ErrorDetails} [details]
   */
  constructor(code, message, details = {}) {
    super(code, message, { class: "internal", ...details });
  }
}

export class StreamCancelledError extends PlaitError {
  /** @type {(value: unknown) => value is StreamCancelledError} */
  static isInstance = branded(StreamCancelledError, "StreamCancelledError");

  /** @param {string} by who ended it: deadline, slow, disconnect or shutdown */
  constructor(by) {
    super("cancelled", CANCELLED_TEXT[by] ?? `The server stopped this stream (${by}).`, {
      class: by === "deadline" || by === "slow" ? "client" : "capacity",
      retryable: by === "shutdown" || by === "disconnect",
    });
    this.by = by;
  }
}

/** @type {Record<string, string>} */
const CANCELLED_TEXT = {
  deadline: "The stream ran past its deadlineMs. Allow more time or ask for less.",
  slow: "Nothing was read for too long, so the server stopped the stream. Take items faster, or stop it yourself.",
  shutdown: "The server is shutting down. Ask again once it is back.",
};

/**
 * The error a server's `error` or `rejected` message stands for.
 *
 * @param {WireError} wire
 * @returns {PlaitError}
 */
export function errorFromWire(wire) {
  const { code, message, param, ...details } = wire;
  if (code === "invalid_request") return new InvalidRequestError(message, { ...details, param });
  if (code === "capability_denied") return new CapabilityDeniedError(message, details);
  if (code === "resource_not_available") return new ResourceNotAvailableError(message, details);
  if (details.class === "model" || details.class === "internal") {
    return new StreamError(code, message, details);
  }
  return new PlaitError(code, message, details);
}

/**
 * What the platform throws for an abort nobody gave a reason for.
 *
 * @param {string} message
 */
export function abortError(message) {
  return new DOMException(message, "AbortError");
}

/** @param {unknown} value */
function asNumber(value) {
  return typeof value === "number" ? value : undefined;
}
