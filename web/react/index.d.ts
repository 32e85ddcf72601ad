/**
 * `plait/react`: chat, listening and speaking as hooks, React 18 and newer. A hook that leaves the page stops what it
 * had running, on the server, and the last one closes the connection that they share; what a handler asks of it after
 * that is not done. Values that change many times a
 * second reach components once per animation frame; `status` changes at once.
 */

import type { ReactElement, ReactNode } from "react";
import type { ChatClient } from "../sdk/chat-types.d.ts";
import type {
  Cancel,
  ChatDelta,
  ChatMessage,
  ChatParams,
  ConnectOptions,
  InputState,
  Level,
  LiveParams,
  Plait,
  PlaybackOptions,
  PlaybackState,
  Progress,
  Segment,
  SpeechParams,
  Stream,
  StreamOptions,
  TranscribeParams,
  Usage,
} from "../sdk/types.d.ts";

/** A connection of the provider's own, opened at first use and closed when no hook below is left. */
export interface OwnConnection extends ConnectOptions {
  /** As connect() takes it. Another one is another connection; the other options count when it is made. */
  url?: string | URL;
}

export type ProviderProps = { children?: ReactNode } & (
  | { client: Plait }
  | ({ client?: undefined } & OwnConnection)
);

/** Says whose connection the hooks below use. Without one they share one to the server the page came from. */
export function PlaitProvider(props: ProviderProps): ReactElement;

/** Something that changes too often to render all of a component for it: read it with useLive(). */
export interface Live<T> {
  /** As of the last frame. */
  get(): T;
  subscribe(listener: () => void): () => void;
}

/** Renders this component, and no other, once per frame while it changes. */
export function useLive<T>(live: Live<T>): T;

export interface ClientOption<C = Plait> {
  /** The connection to use, which stays yours; for chat alone one of `plait/chat` does. Default: the provider's. */
  client?: C;
}

export type StreamStatus = "idle" | "queued" | "streaming" | "completed" | "cancelled" | "error";

/** `messages`: what the conversation begins with. The other parameters count for the next request. */
export type StreamedChatOptions = Partial<ChatParams> &
  StreamOptions &
  ClientOption<ChatClient> & {
    /**
     * Gets each answer as a stream of its own, when it is asked for: `speech.speak(answer)` says it while it is written.
     * Read it, or cancel() it, which stops no other reader; the slowest sets the pace. cancel() of the hook stops all.
     */
    onAnswer?: (answer: Stream<ChatDelta>) => void;
  };

export interface StreamedChat {
  /** With the answer being written as the last one, as far as it has arrived; nothing else ever gets in. */
  readonly messages: readonly ChatMessage[];
  /** Of the newest answer. */
  readonly text: string;
  /** Of the newest answer: items while they arrive, the server's count at the end. */
  readonly tokens: number;
  /** A lost connection is an "error" that keeps what had arrived, never a "completed". */
  readonly status: StreamStatus;
  /** There is something to cancel: "queued" or "streaming". */
  readonly isStreaming: boolean;
  readonly queue: Progress | null;
  readonly usage: Usage | undefined;
  /** A PlaitError as a rule; `retryable` says whether retry() makes sense. */
  readonly error: Error | undefined;
  /**
   * Asks. An answer that is still being written is cancelled first, and what it had stays. Also messages of other
   * roles, such as the results of tool calls.
   */
  send(content: string | ChatMessage | readonly ChatMessage[]): void;
  /** On the wire in this tick, like the status. Resolves with the server's proof; null: nothing was running. */
  cancel(): Promise<Cancel | null>;
  /** Asks the last question again, in place of what had come of it. */
  retry(): void;
  /** Begins anew, with these messages or those of the options. */
  reset(messages?: readonly ChatMessage[]): void;
}

export function useStreamedChat(options?: StreamedChatOptions): StreamedChat;

/** Counts for the next start(). */
export type TranscriptionOptions = Omit<TranscribeParams, "events"> &
  Pick<LiveParams, "context" | "workletUrl"> &
  StreamOptions &
  ClientOption;

export interface Transcription {
  /** By index: final ones, and at most one that is still being revised. */
  readonly segments: readonly Segment[];
  /** All of them as one text. */
  readonly text: string;
  /** Somebody speaks, by the server's ear. */
  readonly speaking: boolean;
  readonly status: StreamStatus;
  readonly input: InputState;
  /** Audio is taken: from start() to the end of the source, or stop(). */
  readonly isListening: boolean;
  readonly queue: Progress | null;
  readonly usage: Usage | undefined;
  readonly error: Error | undefined;
  /** How loud it is; see useLive(). */
  readonly level: Live<Level>;
  /** Listens: to a MediaStream, whose tracks stay yours, to a file, or to samples (with their `sampleRate`). */
  start(source: LiveParams["source"], options?: Partial<LiveParams & StreamOptions>): void;
  /** Enough heard: what was said becomes final, then the status is "completed". */
  stop(): void;
  /** Stops at once. Resolves with the server's proof; null: nothing was running. */
  cancel(): Promise<Cancel | null>;
  reset(): void;
}

export function useTranscription(options?: TranscriptionOptions): Transcription;

/** Counts for the next speak(). */
export type SpeechOptions = Partial<Omit<SpeechParams, "text">> &
  PlaybackOptions &
  StreamOptions &
  ClientOption & { context?: AudioContext };

export interface Speech {
  readonly state: "idle" | PlaybackState;
  /** There is something to stop. */
  readonly isSpeaking: boolean;
  /** By the audio clock; see useLive(). */
  readonly heardMs: Live<number>;
  /** After stop(): the text up to what was heard, where the server could tell. */
  readonly heard: string | undefined;
  /** Once the server has said all of it, or has stopped: that may be before the last of it is heard. */
  readonly usage: Usage | undefined;
  readonly error: Error | undefined;
  /** Speaks a text, or a chat stream while it is written. What is being spoken is stopped first. */
  speak(text: SpeechParams["text"], options?: Partial<SpeechOptions>): void;
  /** Silent within 100 ms; with it the chat stream it speaks. Resolves with the proof; null: nothing was spoken. */
  stop(): Promise<Cancel | null>;
  /** For the state "blocked", from a gesture's handler; the page's gestures do it by themselves. */
  resume(): Promise<void>;
}

export function useSpeech(options?: SpeechOptions): Speech;
