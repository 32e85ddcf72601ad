/**
 * `plait/chat`: the same connection and the same chat as in `plait`, without speech, transcription and embeddings:
 * at most 8 KB gzipped, also where nothing bundles or minifies it.
 */

import type { ConnectOptions, Plait } from "./types.d.ts";

export type {
  Cancel,
  Cancelled,
  ChatDelta,
  ChatMessage,
  ChatParams,
  Completed,
  ConnectionEvents,
  ConnectionState,
  ConnectOptions,
  End,
  ErrorClass,
  Errored,
  FrameEvent,
  Llm,
  ModelInfo,
  Progress,
  ResponseFormat,
  StateEvent,
  Stream,
  StreamIterator,
  StreamOptions,
  StreamState,
  Timing,
  Tool,
  ToolCall,
  ToolCallDelta,
  Usage,
  Wasted,
  WebSocketClass,
  WebSocketLike,
  Welcome,
} from "./types.d.ts";
export {
  CapabilityDeniedError,
  collect,
  InvalidRequestError,
  PlaitError,
  ResourceNotAvailableError,
  StreamCancelledError,
  StreamError,
} from "./types.js";

export type ChatClient = Pick<Plait, "state" | "welcome" | "llm" | "models" | "on" | "close">;

/** As connect() of `plait`; what it returns can chat and list models. */
export function connect(url?: string | URL, options?: ConnectOptions): ChatClient;
