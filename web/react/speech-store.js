/**
 * The state behind useSpeech: what is being spoken, and how much of it was heard. Speaking anew stops the one before.
 * How much was heard changes all the time and is a value of its own. Does not know React.
 */

/** @import { Cancel, Playback, PlaybackState, Plait, SpeechParams, SpeechStream } from "../sdk/types.d.ts" */
/** @import { Lease } from "./lease.js" */
/** @import { Schedule } from "./store.js" */
/** @import { Speech, SpeechOptions } from "./index.d.ts" */

import { Presence } from "./presence.js";
import { nextFrame, Store } from "./store.js";
import { endedBy } from "./watching.js";

/** @satisfies {Partial<Speech>} */
const NOTHING = { heard: undefined, usage: undefined, error: undefined };
/** @type {Set<PlaybackState>} */
const GOES_ON = new Set(["waiting", "playing", "blocked"]);

/** @typedef {{ stream: SpeechStream | null, playback: Playback | null }} Speaking */

/** @extends {Presence<Plait, SpeechOptions>} */
export class SpeechStore extends Presence {
  #schedule;
  /** @type {Store<Speech>} */
  #store;
  /** @type {Store<{ ms: number }>} */
  #heard;
  /** @type {Speaking | null} */
  #speaking = null;
  /** The one that was asked for last, over or not. @type {Speaking | null} */
  #newest = null;
  /** Of the frame that will measure. @type {(() => void) | null} */
  #takeBack = null;

  /**
   * @param {Lease} lease
   * @param {SpeechOptions} [options]
   * @param {Schedule} [schedule]
   */
  constructor(lease, options = {}, schedule = nextFrame) {
    super(lease, options);
    this.#schedule = schedule;
    this.#heard = new Store({ ms: 0 }, schedule);
    /** @type {Speech} */
    const initial = {
      ...NOTHING,
      state: "idle",
      isSpeaking: false,
      heardMs: { get: () => this.#heard.get().ms, subscribe: this.#heard.subscribe },
      speak: (text, more) => this.#speak(text, more),
      stop: () => this.#stop(),
      resume: async () => this.#speaking?.playback?.resume(),
    };
    this.#store = new Store(initial, schedule);
    this.get = this.#store.get;
    this.subscribe = this.#store.subscribe;
  }

  leave() {
    void this.#stop();
  }

  /**
   * @param {SpeechParams["text"]} text
   * @param {Partial<SpeechOptions>} [more]
   */
  #speak(text, more) {
    if (this.gone) return;
    void this.#stop();
    const speaking = { stream: null, playback: null };
    this.#speaking = speaking;
    this.#newest = speaking;
    this.#heard.set({ ms: 0 });
    this.#store.set({ ...NOTHING, state: "waiting", isSpeaking: true });
    const options = { ...this.options, ...more };
    try {
      void this.#follow(speaking, this.#play(speaking, text, options), options.signal);
    } catch (reason) {
      this.#fail(speaking, reason, null);
    }
  }

  /**
   * @param {Speaking} speaking
   * @param {SpeechParams["text"]} text
   * @param {SpeechOptions} options
   */
  #play(speaking, text, options) {
    const { client: _, context, workletUrl, startBufferMs, destination, ...params } = options;
    speaking.stream = this.lease.client().tts.synthesize({ ...params, text });
    void speaking.stream.done.then(({ usage }) => {
      if (speaking === this.#newest) this.#store.set({ usage: usage ?? undefined });
    });
    const playback = speaking.stream.play(context, { workletUrl, startBufferMs, destination });
    speaking.playback = playback;
    playback.on("state", ({ state }) => {
      if (speaking !== this.#speaking) return;
      this.#store.set({ state, isSpeaking: GOES_ON.has(state) });
      this.#measure(playback);
    });
    return playback;
  }

  /** Now, and with every frame for as long as it plays. @param {Playback} playback */
  #measure(playback) {
    this.#takeBack?.();
    this.#takeBack = null;
    this.#heard.set({ ms: playback.heardMs });
    if (playback.state !== "playing") return;
    this.#takeBack = this.#schedule(() => this.#measure(playback));
  }

  /**
   * @param {Speaking} speaking
   * @param {Playback} playback
   * @param {AbortSignal | null | undefined} signal
   */
  async #follow(speaking, playback, signal) {
    try {
      await playback.finished;
    } catch (reason) {
      this.#fail(speaking, reason, signal);
    }
    if (speaking === this.#speaking) this.#speaking = null;
  }

  /**
   * @param {Speaking} speaking
   * @param {unknown} reason
   * @param {AbortSignal | null | undefined} signal
   */
  #fail(speaking, reason, signal) {
    if (speaking !== this.#speaking) return;
    this.#speaking = null;
    void speaking.stream?.cancel();
    const { error } = endedBy(reason, signal);
    this.#store.set({ state: error ? "failed" : "stopped", isSpeaking: false, error });
  }

  /** @returns {Promise<Cancel | null>} */
  async #stop() {
    const speaking = this.#speaking;
    const stopped = speaking?.playback?.stop(); // which says so itself, at once
    this.#speaking = null;
    if (!stopped) return null;
    const proof = await stopped;
    // Unless something else is spoken meanwhile.
    if (speaking === this.#newest) this.#store.set({ heard: proof.heard });
    return proof;
  }
}
