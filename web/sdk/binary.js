/**
 * plait.v1 on the wire: binary frames with a 16-byte header (PROTOCOL.md §4). Chat has none, so a client that only
 * chats does without this module. Pure: no socket, no state.
 */

/** @import { BinaryFrame, BinaryHeader } from "./internal.d.ts" */

import { CodecError } from "./codec.js";

export const HEADER_BYTES = 16;
const VERSION = 1;

/** Binary kinds by number. Unknown kinds are read and left to the receiver to ignore. */
export const BINARY_KINDS = Object.freeze({ audioOut: 1, audioIn: 2, rows: 3 });
export const BINARY_FLAGS = Object.freeze({ lastOfSentence: 1, discontinuity: 2, truncated: 4 });

/**
 * @param {BinaryHeader} header
 * @param {Uint8Array} payload
 * @returns {Uint8Array<ArrayBuffer>}
 */
export function encodeBinary(header, payload) {
  const frame = new Uint8Array(HEADER_BYTES + payload.length);
  const view = new DataView(frame.buffer);
  view.setUint8(0, VERSION);
  view.setUint8(1, header.kind);
  view.setUint16(2, header.flags, true);
  view.setUint32(4, header.id, true);
  view.setUint32(8, header.seq, true);
  view.setUint32(12, header.aux, true);
  frame.set(payload, HEADER_BYTES);
  return frame;
}

/**
 * The payload is a view of `buffer`, at offset 16 and so aligned for typed arrays; nothing is copied.
 *
 * @param {ArrayBuffer} buffer
 * @returns {BinaryFrame}
 * @throws {CodecError}
 */
export function decodeBinary(buffer) {
  if (buffer.byteLength < HEADER_BYTES) {
    throw new CodecError(`a binary frame of ${buffer.byteLength} bytes, its header alone has 16`);
  }
  const view = new DataView(buffer);
  const version = view.getUint8(0);
  if (version !== VERSION) throw new CodecError(`a binary frame of version ${version}, not 1`);
  const header = {
    kind: view.getUint8(1),
    flags: view.getUint16(2, true),
    id: view.getUint32(4, true),
    seq: view.getUint32(8, true),
    aux: view.getUint32(12, true),
  };
  if (header.id === 0) throw new CodecError("a binary frame for stream 0");
  return { header, payload: new Uint8Array(buffer, HEADER_BYTES) };
}
