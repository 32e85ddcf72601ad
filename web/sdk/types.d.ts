/**
 * Plait's public JavaScript surface. One import, one connection, one way to stop: AbortSignal.
 * The wire is snake_case, JavaScript is camelCase; everything here is what callers see.
 */

export interface ConnectOptions {
  /** A ticket, or a function that fetches a fresh one before each attempt. Never part of the URL. */
  token?: string | (() => string | Promise<string>);
  /** The class to use where there is no global one: Node < 22 (`import { WebSocket } from "ws"`). */
  WebSocket?: WebSocketClass;
  /** Come back after a lost connection; requests are never repeated silently. Default: true, waiting at most 10 s. */
  reconnect?: boolean | { maxDelayMs?: number };
}

export interface StreamOptions {
  /** Aborting stops the stream; iteration rejects with the signal's reason (an AbortError by default). */
  signal?: AbortSignal | null;
  /** Items the server may send ahead of your reading, 1…256. Default 64; for speech 16. */
  window?: number;
  /** Counted by the server from reading the request, queue included; then StreamCancelledError (`by: "deadline"`). */
  deadlineMs?: number;
  priority?: "interactive" | "batch";
}

/** Fields keep the wire's spelling, as a conversation is often stored as it is. */
export interface ChatMessage {
  role: string;
  content: string | null;
  name?: string;
  /** Of an assistant's message: the calls of an earlier answer. */
  tool_calls?: ToolCall[];
  /** Of a tool's message: the call that it answers. */
  tool_call_id?: string;
}

export interface Tool {
  type: "function";
  function: { name: string; description?: string; parameters?: object };
}

export interface ToolCall {
  id: string;
  type: "function";
  /** `arguments` is JSON text of an object. */
  function: { name: string; arguments: string };
}

/**
 * Of one call: its beginning (`id`, `type`, name), then arguments as they are written, and at last the whole
 * of it with `complete: true`. Who shows nothing in between needs only that one.
 */
export interface ToolCallDelta {
  /** Which call of the answer, from 0. */
  index: number;
  id?: string;
  type?: "function";
  function: { name?: string; arguments?: string };
  complete?: boolean;
}

export type ResponseFormat =
  | { type: "text" | "json_object" }
  | { type: "json_schema"; json_schema: { schema: object; name?: string } };

/** Parameters of chat; snake_case spellings and parameters newer than this file pass through as well. */
export interface ChatParams {
  messages: ChatMessage[];
  model?: string;
  maxTokens?: number;
  temperature?: number;
  topP?: number;
  topK?: number;
  minP?: number;
  repetitionPenalty?: number;
  seed?: number;
  stop?: string[];
  tools?: Tool[];
  /** Whether, and which of the tools, the answer must call. Default "auto". */
  toolChoice?: "auto" | "none" | "required" | { type: "function"; function: { name: string } };
  /** Whether one answer may hold several calls. Default true. */
  parallelToolCalls?: boolean;
  /** Makes the answer JSON, where the engine can force it. */
  responseFormat?: ResponseFormat;
  logprobs?: boolean | number;
  [param: string]: unknown;
}

export interface ChatDelta {
  /** Whole characters; empty in the last delta. */
  content: string;
  /** True in the last delta only, which carries `usage` and `finishReason`. */
  done: boolean;
  usage?: Usage;
  finishReason?: string;
  logprobs?: unknown;
  toolCalls?: ToolCallDelta[];
}

export interface Usage {
  promptTokens?: number;
  cachedTokens?: number;
  completionTokens?: number;
  characters?: number;
  audioMs?: number;
  [counter: string]: unknown;
}

export interface Timing {
  queuedMs?: number;
  /** From the server's reading the request; null when there was no item. */
  firstItemMs?: number | null;
  totalMs?: number;
  pausedMs?: number;
}

export interface Wasted {
  tokens?: number;
  audioMs?: number;
  texts?: number;
}

export type StreamState = "pending" | "streaming" | "completed" | "cancelled" | "errored";

/** Where a pending stream stands: phase loading, preparing or queued; position 0 is next. */
export interface Progress {
  phase: string;
  position: number;
  percent?: number;
  etaMs?: number;
}

/** The server's proof that the work stopped. */
export interface Cancel {
  /**
   * client, deadline, slow, disconnect or shutdown; null: the stream had ended by itself before, or, of a branch of
   * teeStream(), it goes on for the others.
   */
  by: string | null;
  /** True once slot and cache are confirmed back. False: not confirmed (also: the connection was lost first). */
  released: boolean;
  stopMs: number | null;
  wasted: Wasted | null;
  usage: Usage | null;
  /** Speech: the text spoken up to what was heard, to the word, where a listener was. */
  heard?: string;
}

/** What it took; null where the server did not get to say. */
export interface Cost {
  usage: Usage | null;
  timing: Timing | null;
}

export interface Completed extends Cost {
  state: "completed";
  finishReason?: string;
}

export interface Cancelled extends Cancel, Cost {
  state: "cancelled";
  by: string;
}

export interface Errored extends Cost {
  state: "errored";
  error: PlaitError;
}

export type End = Completed | Cancelled | Errored;

/**
 * A single-use asynchronous iterable. Leaving the loop cancels. A failure throws after the items that came
 * before it; a lost connection throws StreamError `connection_lost` and never looks like an end.
 */
export interface Stream<T> {
  readonly id: number;
  /** Leaves "streaming" in the tick you cancel; the proof follows in `done`. */
  readonly state: StreamState;
  /** Not null while pending and the server has said where. */
  readonly queue: Progress | null;
  /** Not null once running: which model, and the effective limit on tokens. */
  readonly started: { model?: string; maxTokens?: number } | null;
  /** The one ending, whichever it is. Never rejects. */
  readonly done: Promise<End>;
  /** Stops the stream and resolves, never rejects, with the server's proof. Iteration rejects with `reason`. */
  cancel(reason?: unknown): Promise<Cancel>;
  /** All items; resolves only when the stream completed. A PlaitError has the items so far in `partial`. */
  collect(): Promise<T[]>;
  toReadableStream(): ReadableStream<T>;
  [Symbol.asyncIterator](): StreamIterator<T>;
}

export interface StreamIterator<T> {
  next(): Promise<IteratorResult<T, undefined>>;
  return(value?: undefined): Promise<IteratorReturnResult<undefined>>;
  throw(reason?: unknown): Promise<IteratorResult<T, undefined>>;
  [Symbol.asyncIterator](): StreamIterator<T>;
}

export interface Llm {
  chatStream(request: ChatParams & StreamOptions): Stream<ChatDelta>;
  /** The whole answer; rejects when it is not whole, with the text so far in `error.partial`. */
  chat(request: ChatParams & StreamOptions): Promise<string>;
}

/** Parameters of speech; snake_case spellings and parameters newer than this file pass through as well. */
export interface SpeechParams {
  /** The whole text, or its pieces as they are written: strings, or a chat stream as it is. */
  text: string | AsyncIterable<TextPiece> | Iterable<TextPiece> | ReadableStream<TextPiece>;
  /** A name of `voices()`, or a blend: "af_heart:0.6,bf_emma:0.4". Default: the server's first. */
  voice?: string;
  /** Default: the voice's. */
  language?: string;
  model?: string;
  /** 0.5…2. */
  speed?: number;
  /** Say where each sentence and word is in the audio. */
  marks?: boolean;
  [param: string]: unknown;
}

export type TextPiece = string | { content?: string | null };

export interface AudioFormat {
  encoding: Encoding;
  sampleRate: number;
  channels: number;
}

export interface AudioChunk {
  /** PCM16, little-endian, mono: a view of the frame it came in. Write into it and you write into that. */
  audioBytes: Uint8Array;
  /** The same memory as numbers. */
  samples: Int16Array;
  sampleRate: number;
  /** Where it begins in the stream's audio. */
  startSample: number;
  /** Of the sentence or clause that begins with this chunk, where `marks` were asked for. */
  mark?: Mark;
}

/** Times are seconds of the stream's audio; the marks' texts joined are the input. */
export interface Mark {
  text: string;
  start: number;
  end: number;
  words?: { text: string; start: number; end: number }[];
}

/** A stream of audio. Read it, or play() it, or save it: one of them, once. Its default window is some five seconds. */
export interface SpeechStream extends Stream<AudioChunk> {
  /** Known when it starts; rejects when it ends before. */
  readonly format: Promise<AudioFormat>;
  /** `heardMs`: how much a listener heard; playback knows by itself. The answer then has `heard`. */
  cancel(reason?: unknown, listener?: { heardMs?: number }): Promise<Cancel>;
  /** Plays while it arrives, through the page's AudioContext or yours. Browsers only. */
  play(context?: AudioContext, options?: PlaybackOptions): Playback;
  /** The whole as an audio/wav file; rejects when it is not whole, with the chunks so far in `error.partial`. */
  toWav(): Promise<Blob>;
}

export interface PlaybackOptions {
  /** Where sdk/playout-worklet.js is served from, when not beside this module (bundlers). */
  workletUrl?: string | URL;
  /** Audio that must be there before it starts. Default 120. */
  startBufferMs?: number;
  /** A node of `context` to play into. Default: its destination. */
  destination?: AudioNode;
}

/**
 * waiting: for audio. blocked: the browser allows no sound before a gesture on the page; it starts with the next
 * one, nothing is lost. finished: all of it was heard.
 */
export type PlaybackState = "waiting" | "playing" | "blocked" | "finished" | "stopped" | "failed";

export interface PlaybackEvents {
  state: { state: PlaybackState };
  /** A chunk arrived; it will be heard later. */
  chunk: AudioChunk;
}

export interface Playback {
  readonly state: PlaybackState;
  /** By the audio clock, output latency included. */
  readonly heardMs: number;
  /** How often audio was not there in time. */
  readonly underruns: number;
  /**
   * Resolves when all was heard, or with stop() or cancel(); rejects with the stream's error, after what had
   * arrived was heard, or at once with the signal's reason.
   */
  readonly finished: Promise<void>;
  /** Lets a blocked context start; call it in a gesture's handler. */
  resume(): Promise<void>;
  /** Silent within 100 ms; stops the stream, and resolves with the server's proof. */
  stop(): Promise<Cancel>;
  on<K extends keyof PlaybackEvents>(
    type: K,
    listener: (event: PlaybackEvents[K]) => void,
  ): () => void;
}

export interface Voice {
  id: string;
  /** "Heart" of af_heart. */
  name: string;
  gender: "female" | "male" | null;
  /** As `language` takes it: "en-us"; empty when the name does not say. */
  language: string;
  /** "American English". */
  label: string;
}

export interface VoiceGroup {
  language: string;
  label: string;
  voices: Voice[];
}

export interface Tts {
  synthesize(request: SpeechParams & StreamOptions): SpeechStream;
  /** The server's voices by language; connects when necessary. Empty: it does not speak. */
  voices(): Promise<VoiceGroup[]>;
}

/** 16-bit whole numbers, or 32-bit floats of ±1; little-endian, channels interleaved. */
export type Encoding = "pcm_s16le" | "pcm_f32le";

/**
 * Samples, or bytes of the declared encoding cut anywhere. Int16Array and Float32Array may both be given, and are
 * converted to what is declared.
 */
export type Samples = Int16Array | Float32Array | Uint8Array | ArrayBuffer;

/** Parameters of transcription; snake_case spellings and parameters newer than this file pass through as well. */
export interface TranscribeParams {
  model?: string;
  /** As "en". Default: detected from the first speech, where the model knows more than one. */
  language?: string;
  /** Segments before they are final. Default true; for file() false. */
  interim?: boolean;
  /** Times per word. */
  words?: boolean;
  /** Ask for speech events: on("speech"). */
  events?: boolean;
  /** Names and words to expect. */
  prompt?: string;
  /** Silence that ends a segment, 200…3000. Default 500. */
  silenceMs?: number;
  /** A longer segment is split where its text is settled, 4…28. Default 12. */
  maxSegmentSeconds?: number;
  /** How sure it must be that this is speech, 0.1…0.9. Default 0.5. */
  speechThreshold?: number;
  [param: string]: unknown;
}

export interface LiveParams extends TranscribeParams {
  /**
   * What to listen to. A MediaStream: its first live audio track, until it ends; the track stays yours. A File or
   * Blob: see file(). Else samples, all at once or as they come, read no faster than the server takes them.
   */
  source:
    | MediaStream
    | Blob
    | Samples
    | AsyncIterable<Samples>
    | Iterable<Samples>
    | ReadableStream<Samples>;
  /** Of samples: required, 8000…48000. A MediaStream or a file has its own. */
  sampleRate?: number;
  /** Of samples: 1 or 2, interleaved. Of a MediaStream: 2 sends both sides. Default 1. */
  channels?: number;
  /** Of samples, and how they are sent. Default "pcm_s16le". */
  encoding?: Encoding;
  /** A MediaStream is heard through it. Default: the page's, which play() uses too. */
  context?: AudioContext;
  /** Where sdk/capture-worklet.js is served from, when not beside this module (bundlers). */
  workletUrl?: string | URL;
}

export interface Word {
  text: string;
  start: number;
  end: number;
}

/** A piece of what was said. A higher `revision` replaces the segment of that `index`; a final one never changes. */
export interface Segment {
  /** 0, 1, 2, …; the next one is not shown before this one is final. */
  index: number;
  revision: number;
  /** A final one may be empty: what had been shown was no speech. */
  text: string;
  /** Of an interim: the beginning of the text that is not expected to change. A hint. */
  stable?: string;
  /** Seconds from the first sample. */
  start: number;
  end: number;
  isFinal: boolean;
  words?: Word[];
  /** From the server's having the last audio of this segment to its sending it. */
  lagMs: number;
  /** Once, where the model detects it. */
  language?: string;
}

export interface SpeechEvent {
  type: "started" | "stopped";
  /** Seconds from the first sample. */
  at: number;
}

/** Of a block of about 30 ms; 1 is full scale. */
export interface Level {
  rms: number;
  peak: number;
  /** Where the block ends, in seconds from the first sample. */
  at: number;
  /** Of a MediaStream: the same moment on its AudioContext's clock, as far as it tells. */
  time?: number;
}

/**
 * waiting: nothing has come yet. open: audio comes. blocked: the browser runs no audio before a gesture on the page,
 * so nothing is heard; it goes on with the next one. ended: all of it has come, or the stream is over.
 */
export type InputState = "waiting" | "open" | "blocked" | "ended";

export interface TranscriptEvents {
  /** When it arrives, not when the reader gets there. Ask for it with `events: true`. */
  speech: SpeechEvent;
  /** How loud it is: of a MediaStream as it is captured, of files and samples as they are sent. */
  level: Level;
  input: { state: InputState };
}

/**
 * A stream of segments. What is captured and cannot be sent waits here, up to 30 s of it; then the stream is cancelled
 * and throws StreamError `input_overflow`. Samples and files are not read ahead of the server at all.
 */
export interface TranscriptStream extends Stream<Segment> {
  /** 0 until it is opened, where the source is a file: its header is read first. */
  readonly id: number;
  readonly input: InputState;
  /** Audio that has come and is not sent yet. */
  readonly bufferedMs: number;
  readonly sentMs: number;
  /** Of a file, once its header was read; null: not known. */
  readonly durationMs: number | null;
  /** Nothing more comes: what was said until now becomes final, then the stream completes. */
  stopInput(): void;
  on<K extends keyof TranscriptEvents>(
    type: K,
    listener: (event: TranscriptEvents[K]) => void,
  ): () => void;
}

export interface FileParams extends TranscribeParams {
  /**
   * WAV (PCM of 8 to 32 bits, or float) is read slice by slice, anywhere. In a browser also whatever it can decode
   * (mp3, m4a, webm, ogg, flac), which it does at once and in memory: some 230 MB per hour.
   */
  file: Blob | ArrayBuffer | Uint8Array;
}

export interface Transcript {
  text: string;
  /** The final ones that have a text. */
  segments: Segment[];
}

export interface Transcribe {
  live(request: LiveParams & StreamOptions): TranscriptStream;
  /** The whole transcript; rejects when it is not whole, with the transcript so far in `error.partial`. */
  file(request: FileParams & StreamOptions): Promise<Transcript>;
}

/** Parameters of embedding; snake_case spellings and parameters newer than this file pass through as well. */
export interface EmbedParams {
  /**
   * Any number of them, all at once or as they come. They are read no faster than the server takes them, so a
   * generator over a large file needs no memory for all of it.
   */
  texts: readonly string[] | AsyncIterable<string> | Iterable<string> | ReadableStream<string>;
  model?: string;
  /** To unit length. Default true. */
  normalize?: boolean;
  /** Cut texts that are too long. Default: each is answered with an error, `input_too_long`. */
  truncate?: boolean;
  [param: string]: unknown;
}

/** The answer to one text: its vector, or why there is none, which ends nothing else. */
export type Embedding =
  | {
      index: number;
      /** A view of the frame it came in, with its neighbours: slice() what you keep for long when you keep few. */
      embedding: Float32Array;
      /** The text was cut. */
      truncated?: boolean;
      error?: undefined;
    }
  | { index: number; error: PlaitError; embedding?: undefined; truncated?: undefined };

export interface EmbeddingStream extends Stream<Embedding> {
  /** Texts whose answers have arrived, of how many; null: the source has not come to its end. */
  readonly progress: { done: number; total: number | null };
}

export interface Embed {
  /** One answer for every text, in order, as they are computed. */
  create(request: EmbedParams & StreamOptions & { stream: true }): EmbeddingStream;
  /** All vectors; rejects with the error of the first text that has none, with the others' in `error.embeddings`. */
  create(request: EmbedParams & StreamOptions & { stream?: false }): Promise<Float32Array[]>;
}

export type ConnectionState = "idle" | "connecting" | "open" | "reconnecting" | "closed";

export interface StateEvent {
  state: ConnectionState;
  previous: ConnectionState;
  /** Why, when it is not good news. */
  error?: PlaitError;
}

/** One frame, as it was on the wire. Text frames have `message`, binary ones `header`. */
export interface FrameEvent {
  direction: "in" | "out";
  type: string;
  /** The stream it belongs to; null: the connection's own. */
  streamId: number | null;
  message?: Record<string, unknown>;
  header?: { kind: number; flags: number; id: number; seq: number; aux: number };
  /** Payload of the WebSocket frame, header included for binary frames. */
  bytes: number;
  /** Milliseconds on the clock of performance.now(). */
  time: number;
}

export interface ConnectionEvents {
  state: StateEvent;
  frame: FrameEvent;
}

export interface Limits {
  maxStreams: number;
  maxQueued: number;
  maxTextBytes: number;
  maxBinaryBytes: number;
  window: number;
  opensPerSecond: number;
  pingSeconds: number;
}

export interface MethodInfo {
  models: string[];
  voices?: string[];
  languages?: string[];
}

export interface Welcome {
  protocol: string;
  session: string;
  server: string;
  limits: Limits;
  /** By method: chat, transcribe, synthesize, embed; only what this server offers. */
  methods: Record<string, MethodInfo>;
  /** What this connection may do: methods by name, "metrics", "admin". */
  capabilities: string[];
  /** Whose connection it is, where the server knows apps. */
  app?: string;
}

export interface ModelInfo {
  id: string;
  method: string;
}

export interface Plait {
  readonly state: ConnectionState;
  /** What the server said about itself on connecting; null until then. */
  readonly welcome: Welcome | null;
  readonly llm: Llm;
  readonly tts: Tts;
  readonly transcribe: Transcribe;
  readonly embed: Embed;
  /** Connects when necessary. */
  models(): Promise<ModelInfo[]>;
  on<K extends keyof ConnectionEvents>(
    type: K,
    listener: (event: ConnectionEvents[K]) => void,
  ): () => void;
  /** Ends running streams with StreamError `connection_closed`; resolves when the socket is gone. */
  close(): Promise<void>;
}

/**
 * Opens on first use. `url` may be http(s) or ws(s); without a path, /v1/ws is meant; without a url, the
 * server the page came from, or in Node ws://127.0.0.1:8760/v1/ws. In Node an open connection keeps the
 * process alive: close() it.
 */
export function connect(url?: string | URL, options?: ConnectOptions): Plait;

/** On a default connection, opened at first use, to the server the page came from. */
export const llm: Llm;
export const tts: Tts;
export const transcribe: Transcribe;
export const embed: Embed;
/** On the same one. */
export function models(): Promise<ModelInfo[]>;

/** All items; resolves only when the stream completed. A PlaitError has the items so far in `partial`. */
export function collect<T>(stream: AsyncIterable<T>): Promise<T[]>;

/**
 * One stream for `n` readers, 2 by default. It takes the stream's one iteration; each branch gets every item, in order,
 * and then its end or its error. The items are shared, not copied.
 *
 * The slowest branch still reading sets the pace: another one can be ahead of it by the stream's `window` of items and
 * then waits, so memory stays bounded; after 30 s without progress the server ends the stream (`by: "slow"`), as any
 * that is not read. A branch you do not read must be left: break, return(), cancel(), or its ReadableStream's cancel().
 * Who has left counts no more; with the last one the stream is cancelled.
 *
 * `id`, `state`, `queue`, `started` and `done` are those of the one stream, whoever has left. A branch's cancel() rejects
 * its own iteration with `reason`; when it was the last one it resolves with the server's proof, else at once with
 * `by: null, released: false`: nothing was stopped.
 */
export function teeStream<T>(stream: Stream<T>, n?: 2): [Stream<T>, Stream<T>];
export function teeStream<T>(stream: Stream<T>, n: number): Stream<T>[];

/** What a voice's name says. */
export function describeVoice(id: string): Voice;

/**
 * Opens the audio device and loads the player ahead of the first play(), which else waits for both. Call it after a
 * gesture; browsers only.
 */
export function preparePlayback(context?: AudioContext, options?: PlaybackOptions): Promise<void>;

/** Chunks of one stream, in order, as an audio/wav file. */
export function wavOf(chunks: Pick<AudioChunk, "audioBytes" | "sampleRate">[]): Blob;

export type ErrorClass = "client" | "capacity" | "model" | "internal";

export interface ErrorDetails {
  class?: ErrorClass;
  retryable?: boolean;
  retryAfterMs?: number;
  data?: Record<string, unknown>;
  cause?: unknown;
}

export class PlaitError extends Error {
  constructor(code: string, message: string, details?: ErrorDetails);
  code: string;
  class: ErrorClass;
  retryable: boolean;
  retryAfterMs: number | undefined;
  data: Record<string, unknown>;
  /** What had arrived before the failure: items for collect(), text for chat(). */
  partial: unknown;
  /** Of embed.create(): the vectors there are, by text; null where there is none. */
  embeddings: (Float32Array | null)[] | undefined;
  /** Unlike instanceof, also true for errors of another copy of this package on the page. */
  static isInstance(value: unknown): value is PlaitError;
}

export class InvalidRequestError extends PlaitError {
  constructor(message: string, details?: ErrorDetails & { param?: string });
  param: string | undefined;
  static isInstance(value: unknown): value is InvalidRequestError;
}

export class CapabilityDeniedError extends PlaitError {
  constructor(message: string, details?: ErrorDetails);
  capability: string;
  static isInstance(value: unknown): value is CapabilityDeniedError;
}

export class ResourceNotAvailableError extends PlaitError {
  constructor(message: string, details?: ErrorDetails);
  model: string;
  requiredBytes: number | undefined;
  availableBytes: number | undefined;
  static isInstance(value: unknown): value is ResourceNotAvailableError;
}

/**
 * Codes of the client's own: connection_lost, connection_failed, connection_closed, protocol_error, input_overflow; of
 * `plait/conversation` also transcription_ended.
 */
export class StreamError extends PlaitError {
  constructor(code: string, message: string, details?: ErrorDetails);
  static isInstance(value: unknown): value is StreamError;
}

/** The server stopped the stream, not you: `by` is deadline, slow, disconnect or shutdown. */
export class StreamCancelledError extends PlaitError {
  constructor(by: string);
  by: string;
  static isInstance(value: unknown): value is StreamCancelledError;
}

/** What the SDK needs of a WebSocket class; the browser's and `ws` both fit. */
export type WebSocketClass = new (url: string, protocols: string[]) => WebSocketLike;

export interface WebSocketLike {
  binaryType: string;
  onopen: ((event: any) => void) | null;
  onmessage: ((event: any) => void) | null;
  onclose: ((event: any) => void) | null;
  onerror: ((event: any) => void) | null;
  readonly readyState: number;
  readonly bufferedAmount?: number;
  send(data: any): void;
  close(code?: number, reason?: string): void;
}
