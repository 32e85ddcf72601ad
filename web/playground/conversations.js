/**
 * What is talked about on this page: one conversation at a time, from the microphone to the loudspeaker. State only;
 * panels draw it. Everything goes through the public SDK, and a receipt holds only what the server's terminals said.
 * The microphone is open no longer than the conversation.
 *
 * @typedef {import("./new-conversation.js").Run} Run
 * @typedef {import("./new-conversation.js").TalkOptions} TalkOptions
 */

import { preparePlayback } from "../sdk/index.js";
import { MAX_STOPS, troubleFrom } from "./ending.js";
import { plural } from "./format.js";
import { MICROPHONE, onceGone } from "./microphone.js";
import { blankRun, isConversing, turnCount } from "./new-conversation.js";
import { stopTimesOf } from "./turn-stages.js";

/** @import { Conversation, Echo, Interruption, Turn } from "../sdk/conversation.d.ts" */
/** @import { Level } from "../sdk/types.d.ts" */

/** Sound alone is drawn ten times a second, however often it is measured. */
const DRAWN_SECONDS = 0.1;
/** Turns that are kept. What the model is told is the conversation's own. */
const MAX_ENTRIES = 200;
/** Speech goes on for about so long before it is known. */
const DETECTION_SECONDS = 0.15;
const GONE =
  "The microphone is gone. All turns are kept; plug it in again, or choose another, and go on.";
/** How a microphone is asked for, in words. */
export const TALKING = { press: "Start talking", instead: "" };
/** What a test gives others of. The SDK's part is fetched with the panel: the page begins without it. */
const PARTS = {
  microphone: MICROPHONE,
  prepare: preparePlayback,
  sdk: () => import("../sdk/conversation.js"),
};

export class Conversations {
  #store;
  #client;
  #announce;
  #onEdge;
  #parts;
  #nextKey = 1;

  /**
   * @param {import("./store.js").Store} store
   * @param {() => import("../sdk/types.d.ts").Plait} client
   * @param {(text: string) => void} announce
   * @param {() => void} onEdge  a stream started or ended: counters are worth reading now
   * @param {typeof PARTS} parts
   */
  constructor(store, client, announce, onEdge, parts = PARTS) {
    this.#store = store;
    this.#client = client;
    this.#announce = announce;
    this.#onEdge = onEdge;
    this.#parts = parts;
  }

  /**
   * Once the browser gives the microphone. What was shown before stays until then.
   * @param {TalkOptions} options @param {Run | null} before  to go on from
   */
  async start(options, before = null) {
    const { state } = this.#store;
    if (state.askingToTalk || isConversing(state.conversation)) return;
    const asking = {};
    state.askingToTalk = asking;
    state.talkTrouble = null;
    this.#store.changed("conversation");
    const { microphone, prepare, sdk } = this.#parts;
    prepare().catch(() => {}); // in the gesture; a conversation that finds it blocked says so
    try {
      const { converse, MICROPHONE: audio } = await sdk();
      const media = await microphone.open(options.device, { ...TALKING, audio });
      // Thought better of it in the meantime.
      if (state.askingToTalk !== asking) microphone.close(media);
      else this.#begin(blankRun(options, before), media, converse);
    } catch (error) {
      const { code = "internal", message = String(error) } = /** @type {any} */ (error);
      if (state.askingToTalk === asking) state.talkTrouble = { code, message };
    }
    if (state.askingToTalk === asking) state.askingToTalk = null;
    this.#store.changed("conversation");
  }

  /** The browser may still show its question; what it answers is not wanted any more. */
  stopAsking() {
    const { state } = this.#store;
    if (!state.askingToTalk) return;
    state.askingToTalk = null;
    this.#store.changed("conversation");
  }

  /** As if the user had talked into the answer. */
  interrupt() {
    const { conversation: run } = this.#store.state;
    if (run?.state === "running") run.conversation?.interrupt().catch(() => {}); // `finished` says it
  }

  /** Silent in this tick; how long it took is known once the server has confirmed all of it. @param {Run | null} run */
  stop(run) {
    this.stopAsking();
    if (!run?.conversation || run.state !== "running") return;
    run.state = "stopping";
    run.stoppingAt = performance.now();
    this.#store.changed("conversation", "turns");
    run.conversation.end().catch(() => {}); // `finished` says it
    this.#closeMicrophone(run);
    this.#store.flush();
  }

  stopAll() {
    this.stop(this.#store.state.conversation);
  }

  /** What Esc means. */
  focused() {
    const { conversation: run } = this.#store.state;
    return run?.state === "running" ? run : null;
  }

  /** @param {Run} run @param {MediaStream} media @param {typeof import("../sdk/conversation.js").converse} converse */
  #begin(run, media, converse) {
    this.#store.state.conversation = run;
    run.media = media;
    onceGone(media, () => {
      if (run.state === "running") run.note = GONE;
    });
    const { options, history } = run;
    try {
      const conversation = converse(this.#client(), {
        microphone: media,
        messages: history,
        endOfTurnMs: options.endOfTurnMs,
        bargeIn: options.bargeIn,
        ...(options.model && { chat: { model: options.model } }),
        ...(options.voice && { speech: { voice: options.voice } }),
      });
      run.conversation = conversation;
      this.#follow(run, conversation);
    } catch (error) {
      this.#failed(run, error);
    }
    this.#store.changed("conversation", "turns");
  }

  /** @param {Run} run @param {Conversation} conversation */
  #follow(run, conversation) {
    const first = turnCount(run);
    conversation.on("state", ({ state, previous }) => this.#moved(run, state, previous));
    conversation.on("turn", (turn) => this.#turned(run, first, turn));
    conversation.on("level", (level) => this.#heardSound(run, level));
    conversation.on("echo", (echo) => this.#ignored(run, echo));
    conversation.on("playback", ({ state }) => {
      run.blocked = state === "blocked";
      this.#store.changed("conversation");
    });
    conversation.finished.then(
      () => this.#ended(run),
      (error) => this.#failed(run, error),
    );
  }

  /**
   * @param {Run} run
   * @param {import("../sdk/conversation.d.ts").ConversationState} state
   * @param {import("../sdk/conversation.d.ts").ConversationState} previous
   */
  #moved(run, state, previous) {
    if (previous === "starting" && state !== "ended") this.#announce("Conversation started.");
    if (state === "hearing") run.talk.begin(run.levels.seconds - DETECTION_SECONDS);
    else run.talk.end(run.levels.seconds - quietSeconds(run));
    this.#store.changed("conversation");
    this.#onEdge();
  }

  /** @param {Run} run @param {number} first @param {Turn} turn */
  #turned(run, first, turn) {
    const at = first + turn.index - run.dropped;
    if (at < 0) return; // forgotten
    let entry = run.entries[at];
    const told = entry?.told ?? false;
    if (!entry) {
      entry = {
        key: this.#nextKey,
        turn,
        told: false,
        withdrawn: 0,
        transcriptionId: run.conversation?.transcriptionId ?? null,
        endOfTurnMs: run.options.endOfTurnMs,
      };
      this.#nextKey += 1;
      run.entries[at] = entry;
      this.#forget(run);
    }
    entry.turn = turn;
    run.changed.add(entry);
    for (const early of turn.withdrawn.slice(entry.withdrawn)) this.#keepStops(early);
    entry.withdrawn = turn.withdrawn.length;
    if (turn.interruption && !told) this.#interrupted(run, entry, turn.interruption);
    this.#store.changed("turns");
  }

  /** The oldest go. @param {Run} run */
  #forget(run) {
    if (run.entries.length <= MAX_ENTRIES) return;
    run.entries.shift();
    run.dropped += 1;
  }

  /**
   * @param {Run} run @param {import("./new-conversation.js").Entry} entry
   * @param {Interruption} interruption
   */
  #interrupted(run, entry, interruption) {
    entry.told = true;
    run.interruptions += 1;
    this.#keepStops(interruption);
    const { heardMs } = interruption;
    const when =
      heardMs > 0 ? `after ${(heardMs / 1000).toFixed(1)} seconds` : "before it was heard";
    this.#announce(`Answer interrupted ${when}.`);
    this.#onEdge();
  }

  /** @param {Interruption} interruption */
  #keepStops(interruption) {
    const { talkStops } = this.#store.state;
    talkStops.push(...stopTimesOf(interruption));
    talkStops.splice(0, Math.max(0, talkStops.length - MAX_STOPS));
    this.#store.changed("conversation");
  }

  /** @param {Run} run @param {Level} level */
  #heardSound(run, { peak, at }) {
    const { levels, beforeSeconds } = run;
    const drawn = Math.floor(levels.seconds / DRAWN_SECONDS);
    levels.push(peak, beforeSeconds + at);
    if (Math.floor(levels.seconds / DRAWN_SECONDS) > drawn) this.#store.changed("turns");
  }

  /** @param {Run} run @param {Echo} echo */
  #ignored(run, echo) {
    run.echoes += 1;
    run.echo = echo;
    this.#store.changed("turns");
  }

  /** @param {Run} run */
  #ended(run) {
    this.#over(run, "ended");
    this.#announce(`Conversation ended: ${plural(turnCount(run), "turn")}.`);
  }

  /** @param {Run} run @param {unknown} error  a PlaitError, or what the browser threw */
  #failed(run, error) {
    run.trouble = troubleFrom(error);
    this.#over(run, "errored");
    this.#announce(`Conversation failed: ${run.trouble.message}`);
  }

  /** @param {Run} run @param {"ended" | "errored"} state */
  #over(run, state) {
    run.state = state;
    run.endedAt = performance.now();
    run.blocked = false;
    run.talk.end(run.levels.seconds);
    this.#closeMicrophone(run);
    this.#store.changed("conversation", "turns");
    this.#onEdge();
  }

  /** @param {Run} run */
  #closeMicrophone(run) {
    this.#parts.microphone.close(run.media);
    run.media = null;
  }
}

/** How long the user has been silent. @param {Run} run */
function quietSeconds({ entries }) {
  const { times } = entries.at(-1)?.turn ?? {};
  const since = times?.speechStopped ?? performance.now();
  return Math.max(0, (performance.now() - since) / 1000);
}
