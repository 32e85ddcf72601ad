/**
 * The state behind useTranscription: what one listening has heard so far. Listening anew stops the one before.
 * How loud it is changes thirty times a second and is a value of its own. Does not know React.
 */

/** @import { Cancel, Level, LiveParams, Plait, Segment, StreamOptions, TranscriptStream } from "../sdk/types.d.ts" */
/** @import { Lease } from "./lease.js" */
/** @import { Schedule } from "./store.js" */
/** @import { Transcription, TranscriptionOptions } from "./index.d.ts" */

import { joined } from "../sdk/transcript.js";
import { Presence } from "./presence.js";
import { Store } from "./store.js";
import { endedBy, watchQueue } from "./watching.js";

/** @type {Level} */
const SILENCE = { rms: 0, peak: 0, at: 0 };
/** @type {readonly Segment[]} */
const NO_SEGMENTS = [];
/** @satisfies {Partial<Transcription>} */
const NOTHING = {
  segments: NO_SEGMENTS,
  text: "",
  speaking: false,
  input: /** @type {const} */ ("waiting"),
  queue: null,
  usage: undefined,
  error: undefined,
};

/** @extends {Presence<Plait, TranscriptionOptions>} */
export class TranscriptionStore extends Presence {
  /** @type {Store<Transcription>} */
  #store;
  /** @type {Store<Level>} */
  #level;
  /** @type {Hearing | null} */
  #hearing = null;

  /**
   * @param {Lease} lease
   * @param {TranscriptionOptions} [options]
   * @param {Schedule} [schedule]
   */
  constructor(lease, options = {}, schedule) {
    super(lease, options);
    this.#level = new Store(SILENCE, schedule);
    /** @type {Transcription} */
    const initial = {
      ...NOTHING,
      status: "idle",
      isListening: false,
      level: { get: this.#level.get, subscribe: this.#level.subscribe },
      start: (source, more) => this.#start(source, more),
      stop: () => this.#hearing?.stream?.stopInput(),
      cancel: () => this.#cancel(),
      reset: () => this.#reset(),
    };
    this.#store = new Store(initial, schedule);
    this.get = this.#store.get;
    this.subscribe = this.#store.subscribe;
  }

  leave() {
    void this.#cancel();
  }

  /**
   * @param {LiveParams["source"]} source
   * @param {Partial<LiveParams & StreamOptions>} [more]
   */
  #start(source, more) {
    if (this.gone) return;
    void this.#cancel();
    const hearing = new Hearing();
    this.#hearing = hearing;
    const { client: _, ...params } = this.options;
    const request = { ...params, ...more, events: true, source };
    try {
      this.#open(hearing, request);
    } catch (reason) {
      this.#end(hearing, endedBy(reason, null));
      return;
    }
    this.#store.set({ ...NOTHING, status: "queued", isListening: true });
    void this.#follow(hearing, request.signal);
  }

  /**
   * @param {Hearing} hearing
   * @param {LiveParams & StreamOptions} request
   */
  #open(hearing, request) {
    const client = this.lease.client();
    const stream = client.transcribe.live(request);
    const changed = () => this.#store.later(hearing.read);
    hearing.stream = stream;
    hearing.owned = [
      watchQueue(client, stream, changed),
      stream.on("input", ({ state }) => {
        this.#store.set({ ...hearing.read(), isListening: state !== "ended" });
      }),
      stream.on("speech", ({ type }) => {
        hearing.speaking = type === "started";
        this.#store.set(hearing.read());
      }),
      stream.on("level", (level) => this.#level.later(() => level)),
    ];
  }

  /**
   * @param {Hearing} hearing
   * @param {AbortSignal | null | undefined} signal
   */
  async #follow(hearing, signal) {
    const stream = /** @type {TranscriptStream} */ (hearing.stream);
    try {
      for await (const segment of stream) {
        if (hearing !== this.#hearing) return;
        hearing.take(segment);
        this.#store.later(hearing.read);
      }
      const { usage } = await stream.done;
      this.#end(hearing, { status: "completed", usage: usage ?? undefined });
    } catch (reason) {
      this.#end(hearing, endedBy(reason, signal));
    }
  }

  /** @returns {Promise<Cancel | null>} */
  async #cancel() {
    const hearing = this.#hearing;
    if (!hearing) return null;
    const stopped = hearing.stream?.cancel();
    this.#end(hearing, { status: "cancelled" });
    return (await stopped) ?? null;
  }

  #reset() {
    void this.#cancel();
    this.#store.set({ ...NOTHING, status: "idle" });
  }

  /**
   * Once: what ends later than that is over already.
   *
   * @param {Hearing} hearing
   * @param {Partial<Transcription>} how
   */
  #end(hearing, how) {
    if (hearing !== this.#hearing) return;
    this.#hearing = null;
    for (const letGo of hearing.owned) letGo();
    this.#level.set(SILENCE);
    const over = { speaking: false, queue: null, isListening: false };
    this.#store.set({ ...hearing.read(), ...over, input: "ended", ...how });
  }
}

/** What one stream has said so far. */
class Hearing {
  /** @type {TranscriptStream | null} */
  stream = null;
  /** Listeners to take back. @type {(() => void)[]} */
  owned = [];
  speaking = false;
  /** @type {readonly Segment[]} */
  #segments = NO_SEGMENTS;
  /** Of these segments; null: not joined yet. @type {string | null} */
  #text = "";

  /** @param {Segment} segment */
  take(segment) {
    const segments = [...this.#segments];
    segments[segment.index] = segment;
    this.#segments = segments;
    this.#text = null;
  }

  /** @returns {Partial<Transcription>} */
  read = () => {
    this.#text ??= joined([...this.#segments]);
    return {
      segments: this.#segments,
      text: this.#text,
      speaking: this.speaking,
      input: this.stream?.input ?? "waiting",
      queue: this.stream?.queue ?? null,
      status: this.stream?.state === "pending" ? "queued" : "streaming",
    };
  };
}
