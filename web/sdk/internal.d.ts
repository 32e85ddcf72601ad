/** Shapes the SDK's modules share and callers never see. Messages are wire messages in camelCase. */

import type { PlaitError } from "./errors.js";
import type {
  AudioFormat,
  Cancel,
  ConnectOptions,
  End,
  ErrorClass,
  FrameEvent,
  InputState,
  Level,
  Stream,
  StreamOptions,
  Timing,
  Usage,
  Wasted,
  WebSocketClass,
  Welcome,
} from "./types.d.ts";

export type ClientMessage =
  | {
      type: "open";
      id: number;
      method: string;
      params: Record<string, unknown>;
      window?: number;
      priority?: string;
      deadlineMs?: number;
      resumeSeconds?: number;
    }
  | { type: "ack"; id: number; seq: number; window?: number }
  | { type: "input"; id: number; text?: string; texts?: string[] }
  | { type: "end"; id: number }
  | { type: "cancel"; id: number; heardMs?: number }
  | { type: "ping"; n: number };

export interface WireError {
  code: string;
  class?: ErrorClass;
  message: string;
  retryable?: boolean;
  retryAfterMs?: number;
  param?: string;
  data?: Record<string, unknown>;
}

export type Terminal =
  | { type: "rejected"; id: number; error: WireError }
  | {
      type: "done";
      id: number;
      seq?: number;
      finishReason?: string;
      usage?: Usage;
      timing?: Timing;
    }
  | {
      type: "cancelled";
      id: number;
      seq?: number;
      by: string;
      released: boolean;
      stopMs?: number | null;
      wasted?: Wasted | null;
      usage?: Usage;
      timing?: Timing;
      heard?: unknown;
    }
  | { type: "error"; id: number; seq?: number; error: WireError; usage?: Usage; timing?: Timing };

export type StreamMessage =
  | {
      type: "accepted";
      id: number;
      phase: string;
      position?: number;
      percent?: number;
      etaMs?: number;
      windowBytes?: number;
    }
  | { type: "started"; id: number; model?: string; maxTokens?: number; format?: unknown }
  | { type: "item"; id: number; seq: number; data: any }
  | { type: "input_ack"; id: number; bytes: number; windowBytes: number }
  | Terminal;

export type ServerMessage =
  | ({ type: "welcome" } & Welcome)
  | { type: "goaway"; code: string; drainMs: number }
  | { type: "pong"; n: number }
  | StreamMessage;

export interface BinaryHeader {
  kind: number;
  flags: number;
  id: number;
  seq: number;
  aux: number;
}

export interface BinaryFrame {
  header: BinaryHeader;
  payload: Uint8Array<ArrayBuffer>;
}

/**
 * What a method makes of its items. `undefined`: not an item this method has; `null`: one that says something
 * about those to come and is nothing by itself. `binary`: what the frame holds, at least one value. `binary` and `end`
 * throw CodecError for what breaks the protocol.
 */
export interface Decoder<T> {
  item(data: any, seq: number): T | null | undefined;
  binary?(frame: BinaryFrame): T[] | undefined;
  /** The value that closes the iteration, or undefined for none. */
  end(done: Extract<Terminal, { type: "done" }>): T | undefined;
}

type Sent<Type extends StreamMessage["type"]> = Extract<StreamMessage, { type: Type }>;

/** What a method wants to know of its stream's life, synchronously. */
export interface StreamObserver {
  accepted?(message: Sent<"accepted">): void;
  inputAck?(message: Sent<"input_ack">): void;
  started?(message: Sent<"started">): void;
  /** The consumer left, the cancel goes out next; returns what was heard, if anybody listened. */
  left?(failure: { reason: unknown } | null): number | undefined;
  ended?(end: End): void;
}

export interface StreamSpec<T> {
  method: string;
  /** A function where they are not known yet: asked once, unless the stream has been left before. */
  params: Record<string, unknown> | (() => Promise<Record<string, unknown>>);
  options: StreamOptions;
  decoder: Decoder<T>;
  observer?: StreamObserver;
}

/** Where a stream puts what arrives; `seq` 0: not an item of the wire. See Inbox. */
export interface Inlet<T> {
  put(value: T, seq: number): void;
  putAll(values: T[], seq: number): void;
  ride(seq: number): void;
  finish(): void;
  fail(reason: unknown): void;
  discard(failure: { reason: unknown } | null): void;
}

/** What who reads says to the stream. */
export interface Reader {
  /** Before a take: an abort counts, also when the wire is done and items still wait. */
  heed(): void;
  /** Items through this one were taken. */
  take(seq: number): void;
  leave(failure: { reason: unknown } | null): void;
}

/** A stream whose one reading can be another's. */
export interface Divertible<T> extends Stream<T> {
  divert(inlet: Inlet<T>): Reader;
}

/** A stream as its connection sees it. */
export interface Carried {
  readonly id: number;
  /** The connection can carry it now; returns the open message's text. */
  admit(): string;
  lose(error: PlaitError): void;
  receive(message: StreamMessage): void;
  receiveBinary(frame: BinaryFrame): void;
}

/** A connection as its streams see it. */
export interface Transport {
  now(): number;
  takeId(): number;
  /** Calls admit() now or later, and lose() when the connection ends first. */
  submit(stream: Carried): void;
  /** The stream has ended: forget it. */
  withdraw(stream: Carried): void;
  send(message: ClientMessage): void;
  sendBinary(header: BinaryHeader, payload: Uint8Array): void;
  /** Sent and still in the socket: what a cancel would have to wait behind. */
  readonly bufferedBytes: number;
  /** Of the server now connected: the largest binary frame it reads. */
  readonly maxBinaryBytes: number;
  /** Of the server now connected: the largest text frame it reads. */
  readonly maxTextBytes: number;
}

/** What an upload cuts its messages from. */
export interface Pieces<P> {
  /** At most so many are pending; 0: none. */
  readonly bytes: number;
  /** Throws InvalidRequestError for what is no such thing. */
  put(value: unknown): void;
  /** Nothing more will be put. */
  flush(): void;
  /** null: `maxBytes` is too little for anything. */
  cut(maxBytes: number): { piece: P; bytes: number } | null;
}

/** Where an upload's pieces go. */
export interface Outlet<P> {
  /** Of one piece. */
  readonly maxBytes: number;
  /** The socket is behind. */
  readonly full: boolean;
  send(piece: P): void;
  end(): void;
  fail(reason: unknown): void;
  after(delayMs: number, callback: () => void): Timer;
}

/** What a transcription hears: an iterator of samples that knows what they are. */
export interface AudioInput extends AsyncIterator<unknown, unknown> {
  /** A function, called once, where something has to be read first. */
  readonly format: AudioFormat | (() => Promise<AudioFormat>);
  /** Captured, and not yet taken from the iterator. */
  readonly queuedBytes: number;
  /** Where that is known before the end. */
  readonly durationMs: number | null;
  /** It reports levels by itself. */
  readonly metered: boolean;
  /** The stream is opened. */
  begin(): void;
  /** Half-close; false: it does not end by itself. */
  finish(): boolean;
  return(): Promise<IteratorResult<unknown, unknown>>;
}

/** What an input says of itself. */
export interface InputReports {
  state(state: InputState): void;
  level(level: Level): void;
  fail(reason: unknown): void;
}

/** What the audio thread posts: a block of the declared encoding, and how loud it is. */
export interface CaptureReport {
  samples: Int16Array | Float32Array;
  rms: number;
  peak: number;
  /** Where it ends on the context's clock, to a render quantum. */
  time: number;
  /** The last one. */
  ended: boolean;
}

export interface Timer {
  clear(): void;
  ref(): void;
  unref(): void;
}

export interface Runtime {
  now(): number;
  random(): number;
  after(delayMs: number, callback: () => void): Timer;
}

/** What a connection is made of. */
export interface Target {
  url: string;
  token: ConnectOptions["token"];
  WebSocket: WebSocketClass;
  /** None: methods without binary frames only; those that come are ignored. */
  binary?: BinaryCodec;
}

export interface BinaryCodec {
  encode(header: BinaryHeader, payload: Uint8Array): Uint8Array<ArrayBuffer>;
  /** Throws CodecError. */
  decode(buffer: ArrayBuffer): BinaryFrame;
}

/** Why a link ended. */
export interface Closing {
  /** WebSocket close code; 0: ended by this side before the socket was closed. */
  code: number;
  reason: string;
  cause?: unknown;
}

export interface LinkHandlers {
  welcome(welcome: Welcome): void;
  message(message: StreamMessage): void;
  binary(frame: BinaryFrame): void;
  hearsFrames(): boolean;
  frame(event: FrameEvent): void;
  /** Exactly once, also for a link that never opened. */
  closed(closing: Closing): void;
}

/** A speech stream as its playback sees it. */
export interface Heard {
  readonly signal: AbortSignal | undefined;
  /** Samples before this one came out of the speaker, or are about to. */
  heardThrough(sample: number): void;
  /** Playback waits, and somebody is still there. */
  signOfLife(): void;
  cancel(reason?: unknown): Promise<Cancel>;
}

/** What the audio thread says of itself: at `time` on the context's clock, `position` source samples were played. */
export interface PlayoutReport {
  time: number;
  position: number;
  moving: boolean;
  underruns: number;
  /** What must lie ready before it starts, or starts again. */
  startSamples: number;
  finished: boolean;
}
