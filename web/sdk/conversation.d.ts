/**
 * `plait/conversation`: a spoken conversation over one connection. The microphone is transcribed all the time; what the
 * user said becomes a chat request, its answer is spoken while it is written, and the user may talk into it at any time:
 * that stops speech and chat at once (barge-in), and the history keeps what was heard and no more.
 * Browsers only. Times are milliseconds on the clock of performance.now(), unless a name says otherwise.
 */

import type {
  Cancel,
  ChatMessage,
  ChatParams,
  Level,
  Plait,
  PlaitError,
  PlaybackState,
  SpeechParams,
  StreamOptions,
  TranscribeParams,
} from "./types.d.ts";

/** What getUserMedia({ audio }) should be asked for: the browser's own echo cancellation first of all. Frozen. */
export const MICROPHONE: MediaTrackConstraints;

export interface ConversationOptions {
  /** Its first live audio track is listened to; the track stays yours. */
  microphone: MediaStream;
  /** What went before, such as a system message. Copied. */
  messages?: readonly ChatMessage[];
  chat?: Partial<Omit<ChatParams, "messages">> & Pick<StreamOptions, "deadlineMs" | "priority">;
  speech?: Partial<Omit<SpeechParams, "text" | "marks">>;
  transcribe?: Omit<TranscribeParams, "events" | "interim" | "silenceMs">;
  /** Silence after which the user has finished, 200…3000. Default 600. */
  endOfTurnMs?: number;
  /** Whether talking interrupts the answer. Default true; else what is said into it is dropped, and heard again after it. */
  bargeIn?: boolean;
  /** The page's by default. Both microphone and loudspeaker go through it: the echo guard needs one clock. */
  context?: AudioContext;
  /** Where sdk/capture-worklet.js, playout-worklet.js and echo-worklet.js are served from, when not beside this module. */
  captureWorkletUrl?: string | URL;
  playoutWorkletUrl?: string | URL;
  echoWorkletUrl?: string | URL;
  /** Aborting ends the conversation. */
  signal?: AbortSignal | null;
}

/**
 * starting: the microphone or the transcription is not open yet. listening: for the user. hearing: the user talks.
 * thinking: the answer is asked for, nothing sounds yet. speaking: the answer sounds, or is about to sound on.
 */
export type ConversationState =
  | "starting"
  | "listening"
  | "hearing"
  | "thinking"
  | "speaking"
  | "ended";

/**
 * Moments of a turn in the order in which they usually come. Which are missing did not happen. Of a turn whose answer was
 * withdrawn those of the new answer replace them. Of say(): `speechStarted` is when it was called.
 */
export interface TurnTimes {
  /** Speech was detected: when the server's event arrived. */
  speechStarted: number;
  /** The user's silence began, or as near as the server's event can tell. */
  speechStopped?: number;
  /** The last segment of what was said became final: the chat request goes out. */
  transcribed?: number;
  firstToken?: number;
  lastToken?: number;
  firstAudio?: number;
  /** The first sample came out of the speaker. */
  firstHeard?: number;
  /** The user was detected talking into it: silence was asked for in this tick. */
  interrupted?: number;
  /** The server's proof of each cancel arrived. */
  chatStopped?: number;
  speechReleased?: number;
  /** The turn is over, whichever way. */
  ended?: number;
}

/** Why a turn was cut short, and the proofs. */
export interface Interruption {
  /** talk: the user talked into it. app: interrupt() or end() was called. */
  by: "talk" | "app";
  /** How much of the answer was heard, by the audio clock. */
  heardMs: number;
  /** The same as text, by the server's marks; empty: none of it. */
  heard: string;
  /** null: that stream had ended, or was never opened. */
  chat: Cancel | null;
  speech: Cancel | null;
}

/**
 * The user says something, and it is answered; or the app says something (say(): `said` is empty, `chatId` null). Live: the
 * same object is told with every event, and changes, `times` with it; who compares what they keep, as React does, keeps a
 * copy: `{ ...turn, times: { ...turn.times } }`. It ends once.
 * completed: heard to its end. Also, with `chatId` and `speechId` null: what was detected was no more than a noise.
 * interrupted: while it was answered, or the conversation ended in it. failed: see `error`; what was heard until then is
 * in the messages, and the conversation goes on listening unless it has ended with it.
 */
export interface Turn {
  /** 0, 1, 2, … */
  readonly index: number;
  readonly state: "hearing" | "thinking" | "speaking" | "completed" | "interrupted" | "failed";
  /** What the user said: interim while hearing, then final. */
  readonly said: string;
  /** What the model wrote so far. More than was heard, when it was interrupted. */
  readonly written: string;
  readonly times: Readonly<TurnTimes>;
  /** Ids on the wire; null: not opened. */
  readonly chatId: number | null;
  readonly speechId: number | null;
  /** Of answers that were asked for too early: the user went on before anything sounded. Their proofs, as they come. */
  readonly withdrawn: readonly Interruption[];
  /** Known once both streams' terminals have arrived; null also where the user was still talking. */
  readonly interruption: Interruption | null;
  readonly error: PlaitError | null;
}

/**
 * Speech that was detected and taken for the answer's own sound in the microphone. Until some two seconds of answers have
 * sounded the guard knows little of the room, and takes more for an echo than it will later.
 */
export interface Echo {
  /** When it was detected. */
  at: number;
  /** The level in the microphone and the highest that the answer's sound explains, rms, 1 is full scale. */
  level: number;
  explained: number;
}

export interface ConversationEvents {
  state: { state: ConversationState; previous: ConversationState };
  /** Something of this turn changed; also its first event. */
  turn: Turn;
  /** The conversation's messages changed. */
  messages: readonly ChatMessage[];
  /** How loud the microphone is, every 30 ms. */
  level: Level;
  /** Ignored: not the user. */
  echo: Echo;
  /** Of the answer's sound; "blocked", also of the microphone's: the browser wants a gesture first. */
  playback: { state: PlaybackState };
}

export interface Conversation {
  readonly state: ConversationState;
  /** The newest 500. A new array each time. */
  readonly turns: readonly Turn[];
  /**
   * What the model is told next time: of an interrupted answer only what was heard, else nothing of it. Where that leaves
   * two of the user's messages in a row, they are joined: models expect to take turns. Never changed in place, so it can
   * be kept, and given to the next conversation. Grows: what a model cannot hold fails the turn (`context_overflow`).
   */
  readonly messages: readonly ChatMessage[];
  /** The transcription's id on the wire. */
  readonly transcriptionId: number;
  /**
   * Resolves with end() or when the microphone's track ends; rejects with what broke it, such as a StreamError
   * `connection_lost`, or `transcription_ended` where the server stopped listening, or with the signal's reason. By then
   * all of its streams are over; `messages` stay.
   */
  readonly finished: Promise<void>;
  /** As if the user had talked into it; null: nothing was being answered. Silence is asked for before it returns. */
  interrupt(): Promise<Interruption | null>;
  /**
   * Says something of the app's own, as an answer to nothing: a greeting. Interrupts what is being answered, unless a
   * listener says something else on hearing of that; while the user talks it is interrupted at once itself. Throws
   * TypeError once the conversation is over, and for what is no string.
   */
  say(text: string): void;
  /** Stops all of its streams and resolves when the server has confirmed it. The tracks stay yours. */
  end(): Promise<void>;
  on<K extends keyof ConversationEvents>(
    type: K,
    listener: (event: ConversationEvents[K]) => void,
  ): () => void;
}

/**
 * Begins at once. Throws InvalidRequestError where there is no live audio track, TypeError where there is no AudioContext.
 *
 * The user's turn is over after `endOfTurnMs` of silence, once all of it is transcribed. Who goes on talking before the
 * answer sounds takes the question back: the answer is withdrawn, and both parts are one question. Who talks into the
 * answer interrupts it, and begins a turn; if that was a mere noise nothing is asked, and the answer stays interrupted.
 * While the answer sounds, talking counts when the server detects speech and the microphone is louder than the answer's
 * own sound explains; all else is an "echo". What is transcribed of an echo is no part of any turn.
 */
export function converse(client: Plait, options: ConversationOptions): Conversation;
