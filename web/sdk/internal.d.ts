/** Shapes the SDK's modules share and callers never see. Messages are wire messages in camelCase. */

import type { PlaitError } from "./errors.js";
import type {
  ErrorClass,
  FrameEvent,
  StreamOptions,
  Timing,
  Usage,
  Wasted,
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

/** What a method makes of its items. `undefined`: not an item this method has. */
export interface Decoder<T> {
  item(data: any): T | undefined;
  binary?(frame: BinaryFrame): T | undefined;
  /** The value that closes the iteration, or undefined for none. */
  end(done: Extract<Terminal, { type: "done" }>): T | undefined;
}

export interface StreamSpec<T> {
  method: string;
  params: Record<string, unknown>;
  options: StreamOptions;
  decoder: Decoder<T>;
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
