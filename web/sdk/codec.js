/**
 * plait.v1 on the wire: JSON text frames (PROTOCOL.md §1–§3); binary.js has the others.
 * Wire keys are snake_case, messages in here are camelCase; `params` going out and `data` coming in
 * belong to the method and pass unchanged. An unknown type or field from the server is ignored (§8).
 * Pure: no socket, no state. Does not know what a message means.
 */

/** @import { ClientMessage, ServerMessage } from "./internal.d.ts" */

export const PROTOCOL = "plait.v1";
export const MAX_STREAM_ID = 2 ** 32 - 1;

/** Server message types, and whether they belong to a stream. */
const SERVER_TYPES = new Map([
  ["welcome", false],
  ["accepted", true],
  ["rejected", true],
  ["started", true],
  ["item", true],
  ["input_ack", true],
  ["done", true],
  ["cancelled", true],
  ["error", true],
  ["goaway", false],
  ["pong", false],
]);

/** The peer sent what the protocol does not allow. The socket is closed 4400 for it. */
export class CodecError extends Error {}

/**
 * @param {ClientMessage} message
 * @returns {string}
 */
export function encode(message) {
  return JSON.stringify(snakeKeys({ ...message }));
}

/**
 * Reads a text frame as a JSON object; `decode` then gives it meaning.
 *
 * @param {string} text
 * @returns {Record<string, unknown>} the object as it was on the wire
 * @throws {CodecError}
 */
export function parse(text) {
  let value;
  try {
    value = JSON.parse(text);
  } catch (cause) {
    throw new CodecError("a text frame is not JSON", { cause });
  }
  if (!isObject(value) || typeof value.type !== "string") {
    throw new CodecError("a text frame is not an object with a type");
  }
  return value;
}

/**
 * @param {Record<string, unknown>} wire
 * @returns {ServerMessage | null} null for a type this version does not know
 * @throws {CodecError} when a known type lacks what it cannot be understood without
 */
export function decode(wire) {
  const type = String(wire.type);
  const ofStream = SERVER_TYPES.get(type);
  if (ofStream === undefined) return null;
  if (ofStream && !isCount(wire.id, 1, MAX_STREAM_ID)) {
    throw new CodecError(`${type} without a stream id`);
  }
  if (type === "item" && !isCount(wire.seq, 1, MAX_STREAM_ID)) {
    throw new CodecError("item without a seq");
  }
  if ((type === "error" || type === "rejected") && !isErrorBody(wire.error)) {
    throw new CodecError(`${type} without an error code and message`);
  }
  /** @type {Record<string, unknown>} */
  const message = {};
  for (const [key, value] of Object.entries(wire)) {
    message[toCamel(key)] = key === "data" ? value : camelKeys(value);
  }
  return /** @type {ServerMessage} */ (/** @type {unknown} */ (message));
}

/**
 * The token travels as a second subprotocol: URLs end up in logs and histories.
 *
 * @param {string} token
 * @returns {string} `plait.token.` and the token's UTF-8 bytes in unpadded base64url
 */
export function tokenProtocol(token) {
  const bytes = new TextEncoder().encode(token);
  const base64 = btoa(Array.from(bytes, (byte) => String.fromCharCode(byte)).join(""));
  const url = base64.replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
  return `plait.token.${url}`;
}

/**
 * Top-level keys to wire spelling; values (messages, tools and their JSON schemas) stay as they are.
 *
 * @param {Record<string, unknown>} params
 * @returns {Record<string, unknown>}
 */
export function snakeKeys(params) {
  return Object.fromEntries(
    Object.entries(params)
      .filter(([, value]) => value !== undefined)
      .map(([key, value]) => [key.replace(/[A-Z]/g, (c) => `_${c.toLowerCase()}`), value]),
  );
}

/**
 * @param {unknown} value
 * @returns {unknown}
 */
export function camelKeys(value) {
  if (Array.isArray(value)) return value.map(camelKeys);
  if (!isObject(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([k, v]) => [toCamel(k), camelKeys(v)]));
}

/** @param {string} key */
function toCamel(key) {
  return key.replace(/_([a-z0-9])/g, (_, c) => c.toUpperCase());
}

/**
 * @param {unknown} value
 * @returns {value is Record<string, unknown>}
 */
function isObject(value) {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/**
 * @param {unknown} value
 * @param {number} low
 * @param {number} high
 */
function isCount(value, low, high) {
  return typeof value === "number" && Number.isInteger(value) && value >= low && value <= high;
}

/**
 * @param {unknown} value
 * @returns {value is Record<string, unknown> & { code: string, message: string }}
 */
export function isErrorBody(value) {
  return isObject(value) && typeof value.code === "string" && typeof value.message === "string";
}
