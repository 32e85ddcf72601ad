/**
 * What the items of an embedding stream are: rows of float32, handed on as views of the frames they came in, or one
 * answer each as JSON. Every text is answered, in order, so what is missing is a fault of the server.
 * Does not know credit, texts or the stream.
 */

/** @import { Embedding } from "./types.d.ts" */
/** @import { BinaryFrame, WireError } from "./internal.d.ts" */

import { BINARY_FLAGS, BINARY_KINDS } from "./binary.js";
import { CodecError, camelKeys, isErrorBody } from "./codec.js";
import { errorFromWire } from "./errors.js";

const FLOAT_BYTES = 4;
/** Machines that keep their numbers the other way round have to turn them. */
const LITTLE_ENDIAN = new Uint8Array(new Uint16Array([1]).buffer)[0] === 1;

export class EmbeddingItems {
  #dims = 0;

  /** Texts that were answered: the index of the next one. */
  count = 0;

  /** @param {unknown} format as the server says it */
  begin(format) {
    const { dims } = /** @type {{ dims?: unknown }} */ (format ?? {});
    this.#dims = typeof dims === "number" && Number.isInteger(dims) && dims > 0 ? dims : 0;
  }

  /**
   * @param {any} data
   * @returns {Embedding | undefined}
   */
  item(data) {
    if (typeof data !== "object" || data === null || data.index !== this.count) return undefined;
    const { index, embedding, truncated, error } = data;
    if (isErrorBody(error)) {
      this.count += 1;
      const wire = /** @type {WireError} */ (camelKeys(error));
      return { index, error: errorFromWire(wire) };
    }
    if (!Array.isArray(embedding)) return undefined;
    this.count += 1;
    return {
      index,
      embedding: Float32Array.from(embedding),
      ...(truncated === true && { truncated }),
    };
  }

  /**
   * @param {BinaryFrame} frame
   * @returns {Embedding[] | undefined}
   * @throws {CodecError}
   */
  binary({ header, payload }) {
    const { kind, flags, seq, aux } = header;
    if (kind !== BINARY_KINDS.rows) return undefined;
    const rowBytes = this.#dims * FLOAT_BYTES;
    const rows = payload.length / rowBytes;
    if (rowBytes === 0 || rows < 1 || !Number.isInteger(rows)) {
      throw new CodecError(
        `item ${seq} has ${payload.length} bytes, not rows of ${this.#dims} numbers`,
      );
    }
    if (aux !== this.count) {
      throw new CodecError(`item ${seq} begins at text ${aux}, not at ${this.count}`);
    }
    this.count += rows;
    const truncated = (flags & BINARY_FLAGS.truncated) !== 0;
    return Array.from({ length: rows }, (_, row) => ({
      index: aux + row,
      embedding: floatsOf(payload, row * rowBytes, this.#dims),
      ...(truncated && { truncated: /** @type {const} */ (true) }),
    }));
  }
}

/**
 * @param {Uint8Array<ArrayBuffer>} payload
 * @param {number} offset
 * @param {number} dims
 * @returns {Float32Array<ArrayBuffer>} a view where the memory allows it
 */
function floatsOf(payload, offset, dims) {
  const at = payload.byteOffset + offset;
  if (LITTLE_ENDIAN && at % FLOAT_BYTES === 0) return new Float32Array(payload.buffer, at, dims);
  const view = new DataView(payload.buffer, at, dims * FLOAT_BYTES);
  return Float32Array.from({ length: dims }, (_, i) => view.getFloat32(i * FLOAT_BYTES, true));
}
