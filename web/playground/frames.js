/**
 * The frames the inspector remembers: bounded history, filters, and how a frame reads as text.
 * State only; wire.js draws it.
 *
 * @typedef {object} Frame
 * @property {number} n  running number, never reused
 * @property {number} at  epoch milliseconds
 * @property {"in" | "out"} direction
 * @property {string} type
 * @property {number | null} streamId
 * @property {number} bytes
 * @property {unknown} message  the JSON message, or null for a binary frame
 * @property {BinaryHeader | null} header
 * @property {number} count  how many frames it stands for, of audio going up or its acknowledgements; else 1
 *
 * @typedef {{ kind: number, flags: number, id: number, seq: number, aux: number }} BinaryHeader
 */

import { formatMs } from "./format.js";

/** Oldest go first. 4,000 frames of ordinary size are a few megabytes. */
const MAX_FRAMES = 4000;
const MAX_BYTES = 8 * 1024 * 1024;
/** Binary frames by kind. */
const KINDS = [undefined, "audio_out", "audio_in", "rows"];
const HEADER_BYTES = 16;
/** Audio goes up, and is acknowledged, many times a second: with nothing else of its stream between, that is two rows a second. */
const RUN_MS = 1000;
const RUNNING = new Set(["audio_in", "input_ack"]);
const SECRET = /^(resume_)?token$/;

export class FrameLog {
  /** @type {Frame[]} */
  #frames = [];
  /** @type {Frame[]} */
  #shown = [];
  #bytes = 0;
  #next = 1;
  /** Of each stream that sends audio, the rows it may go on in. @type {Map<number, Frame[]>} */
  #runs = new Map();
  /** @type {number | "connection" | null} */
  #stream = null;
  #text = "";
  /** Ids seen, oldest first, for the filter's choices. @type {Set<number>} */
  streams = new Set();
  paused = false;
  missed = 0;

  /** Filtered frames, oldest first. */
  get shown() {
    return this.#shown;
  }

  get total() {
    return this.#frames.length;
  }

  /** @param {import("../sdk/types.d.ts").FrameEvent} event @returns {boolean} false: no new row, one that is there counts up */
  add(event) {
    if (this.paused) {
      this.missed += 1;
      return true;
    }
    if (this.#continues(event)) return false;
    const frame = toFrame(event, this.#next);
    this.#next += 1;
    this.#noteRun(frame);
    this.#frames.push(frame);
    this.#bytes += cost(frame);
    if (frame.streamId !== null) this.streams.add(frame.streamId);
    if (this.#matches(frame)) this.#shown.push(frame);
    if (this.#frames.length > MAX_FRAMES || this.#bytes > MAX_BYTES) this.#forgetOldest();
    return true;
  }

  /** @param {number | "connection" | null} stream @param {string} text */
  filter(stream, text) {
    this.#stream = stream;
    this.#text = text.trim().toLowerCase();
    this.#shown = this.#frames.filter((frame) => this.#matches(frame));
  }

  clear() {
    this.#frames = [];
    this.#shown = [];
    this.#bytes = 0;
    this.#runs.clear();
    this.missed = 0;
    this.streams.clear();
  }

  /** What is shown, one frame a line, for a bug report. */
  asText() {
    return this.#shown
      .map(
        (frame) =>
          `${new Date(frame.at).toISOString()} ${frame.direction === "in" ? "<" : ">"} ${oneLine(frame)}`,
      )
      .join("\n");
  }

  /** Whether it belongs to a row that is there. @param {import("../sdk/types.d.ts").FrameEvent} event */
  #continues(event) {
    const type = typeOf(event);
    const runs = event.streamId === null ? undefined : this.#runs.get(event.streamId);
    const run = RUNNING.has(type) ? runs?.find((frame) => frame.type === type) : undefined;
    if (!run || performance.timeOrigin + event.time - run.at > RUN_MS) return false;
    run.count += 1;
    run.bytes += event.bytes;
    run.message = event.message ?? null; // acknowledgements count up: the newest says it all
    return true;
  }

  /** @param {Frame} frame */
  #noteRun(frame) {
    const { streamId, type } = frame;
    if (streamId === null) return;
    const others = (this.#runs.get(streamId) ?? []).filter((run) => run.type !== type);
    if (RUNNING.has(type)) this.#runs.set(streamId, [...others, frame]);
    else this.#runs.delete(streamId);
  }

  /** A tenth at once, so that the shown list is not rebuilt for every frame. */
  #forgetOldest() {
    const drop = Math.ceil(this.#frames.length / 10);
    for (const frame of this.#frames.splice(0, drop)) {
      this.#bytes -= cost(frame);
      if (frame.streamId !== null && this.#runs.get(frame.streamId)?.includes(frame))
        this.#runs.delete(frame.streamId);
    }
    const first = this.#frames[0]?.n ?? this.#next;
    this.#shown = this.#shown.filter((frame) => frame.n >= first);
    this.streams = new Set(
      this.#frames.flatMap((frame) => (frame.streamId === null ? [] : [frame.streamId])),
    );
  }

  /** @param {Frame} frame */
  #matches(frame) {
    if (this.#stream === "connection" && frame.streamId !== null) return false;
    if (typeof this.#stream === "number" && frame.streamId !== this.#stream) return false;
    return this.#text === "" || oneLine(frame).toLowerCase().includes(this.#text);
  }
}

/** @param {import("../sdk/types.d.ts").FrameEvent} event @param {number} n @returns {Frame} */
function toFrame(event, n) {
  const { direction, streamId, bytes } = event;
  return {
    n,
    at: performance.timeOrigin + event.time,
    direction,
    type: typeOf(event),
    streamId,
    bytes,
    message: event.message ?? null,
    header: event.header ?? null,
    count: 1,
  };
}

/** @param {import("../sdk/types.d.ts").FrameEvent} event */
function typeOf({ header, type }) {
  return (header && KINDS[header.kind]) ?? type;
}

/** What keeping it takes: of a binary frame only the header is kept, of several the newest. @param {Frame} frame */
function cost({ header, bytes, count }) {
  return header ? HEADER_BYTES : bytes / count;
}

/** @param {Frame} frame */
function oneLine(frame) {
  return frame.header
    ? `${frame.type}${timesOf(frame)} ${JSON.stringify(frame.header)}`
    : `${JSON.stringify(frame.message, hideSecrets)}${timesOf(frame)}`;
}

/** @param {Frame} frame */
export function timesOf({ count }) {
  return count > 1 ? ` ×${count}` : "";
}

/**
 * A few words of what a frame says, for its row: text of an item, cause or proof of an ending.
 * @param {Frame} frame
 */
export function preview(frame) {
  const { message, header } = frame;
  if (header && KINDS[header.kind] === "rows") return `from ${header.aux}`;
  if (RUNNING.has(frame.type)) return timesOf(frame).trim();
  const { type, data, by, released, stop_ms, code, error, n, text, texts } = /** @type {any} */ (
    message ?? {}
  );
  if (type === "item") {
    const said = data?.content ?? data?.mark?.text ?? data?.segment?.text;
    if (data?.error) return `${data.index} ${data.error.code}`;
    return typeof said === "string" ? JSON.stringify(said) : String(data?.event ?? "");
  }
  if (type === "input") return texts ? `${texts.length} texts` : JSON.stringify(text ?? "");
  if (type === "cancelled")
    return `${released ? formatMs(stop_ms) : "late"}${by === "client" ? "" : `, ${by}`}`;
  if (type === "rejected" || type === "error") return String(error?.code ?? code ?? "");
  if (type === "goaway") return String(code ?? "");
  return type === "ping" || type === "pong" ? String(n ?? "") : "";
}

/**
 * Pretty JSON, or a binary frame's header in hex with its fields named.
 * @param {Frame} frame
 */
export function describe(frame) {
  if (!frame.header) return JSON.stringify(frame.message, hideSecrets, 2);
  const { kind, flags, id, seq, aux } = frame.header;
  return [
    hexHeader(frame.header),
    "",
    "version  1",
    `kind     ${kind}  ${KINDS[kind] ?? "unknown"}`,
    `flags    ${flags}`,
    `stream   ${id}`,
    `seq      ${seq}`,
    `aux      ${aux}`,
    `payload  ${frame.bytes - HEADER_BYTES * frame.count} bytes`,
    ...(frame.count > 1
      ? [`frames   ${frame.count}, with nothing of this stream between them`]
      : []),
  ].join("\n");
}

/** @param {BinaryHeader} header */
function hexHeader({ kind, flags, id, seq, aux }) {
  const view = new DataView(new ArrayBuffer(16));
  view.setUint8(0, 1);
  view.setUint8(1, kind);
  view.setUint16(2, flags, true);
  view.setUint32(4, id, true);
  view.setUint32(8, seq, true);
  view.setUint32(12, aux, true);
  const bytes = [...new Uint8Array(view.buffer)].map((byte) => byte.toString(16).padStart(2, "0"));
  return `${bytes.slice(0, 8).join(" ")}\n${bytes.slice(8).join(" ")}`;
}

/** A copied frame ends up in bug reports. @param {string} key @param {unknown} value */
function hideSecrets(key, value) {
  return SECRET.test(key) && typeof value === "string" ? "(hidden)" : value;
}
