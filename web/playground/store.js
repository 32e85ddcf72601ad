/**
 * The page's one state and when it is drawn: whoever changes a part says so, and each part's
 * subscribers run at most once per animation frame. Knows neither the DOM nor the protocol.
 *
 * @typedef {"connection" | "chats" | "text" | "speech" | "audio" | "listening" | "heard" | "embedding" | "vectors" | "conversation" | "turns" | "wire" | "metrics" | "machine" | "panel"} Topic
 *
 * @typedef {import("./chats.js").Chat} Chat
 * @typedef {import("./metrics.js").Sample} Sample
 * @typedef {import("./status-reading.js").Reading} Reading
 * @typedef {import("./speeches.js").Speech} Speech
 * @typedef {import("./listenings.js").Listening} Listening
 * @typedef {import("./new-embedding.js").Embedding} Embedding
 * @typedef {import("./new-conversation.js").Run} Run
 *
 * @typedef {object} ConnectionState
 * @property {import("../sdk/types.d.ts").ConnectionState} state
 * @property {string} detail  what a person should know or do; "" when all is well
 * @property {boolean} wasOpen  true once a welcome has arrived
 * @property {number | null} leavingAt  performance.now() when the server that is shutting down will be gone
 * @property {boolean} guarded  the server asks for a token
 *
 * @typedef {object} State
 * @property {ConnectionState} connection
 * @property {string[]} models  chat models, the default first
 * @property {Chat[]} chats  in the order they were sent
 * @property {number | null} focusedKey  the chat that Esc stops
 * @property {(number | "late")[]} stops  the last 20 that had a slot to give back, in milliseconds
 * @property {string[] | null} voices  of the server, its default first; null: it does not speak
 * @property {string} voice  the one chosen; "" the server's default
 * @property {Speech | null} speech  the Speak panel's, running or over
 * @property {{ voice: string, speech: Speech } | null} preview  the last voice that said its name
 * @property {{ key: number, speech: Speech } | null} spokenAnswer  the chat whose answer was spoken last
 * @property {(number | "late")[]} speechStops  as `stops`
 * @property {{ models: string[], languages: string[] } | null} hearing  what the server listens with; null: it does not
 * @property {object | null} asking  the browser is asking for the microphone
 * @property {{ code: string, message: string } | null} microphoneTrouble  why the last Record had none
 * @property {Listening | null} listening  the Listen panel's, running or over
 * @property {(number | "late")[]} listeningStops  as `stops`
 * @property {string[] | null} embedModels  that embed, the default first; null: the server does not
 * @property {Embedding | null} embedding  the Embed panel's, running or over
 * @property {(number | "late")[]} embeddingStops  as `stops`
 * @property {object | null} askingToTalk  the browser is asking for the microphone
 * @property {{ code: string, message: string } | null} talkTrouble  why the last Start talking had none
 * @property {Run | null} conversation  the Conversation panel's, running or over
 * @property {(number | "late")[]} talkStops  as `stops`: of chats and speeches that were talked into
 * @property {Sample | null} sample  newest reading of /metrics
 * @property {Sample[]} history  the last two minutes of readings
 * @property {string | null} app  whose connection it is; null: the server knows no apps
 * @property {string[] | null} rights  what this connection may do; null: not known yet
 * @property {Reading[]} readings  of /v1/status, the last two minutes
 * @property {number | null} readingRefused  the HTTP status /v1/status was refused with
 * @property {string} panel
 */

export class Store {
  /** @type {Map<Topic, Set<() => void>>} */
  #listeners = new Map();
  /** @type {Set<Topic>} */
  #dirty = new Set();
  #scheduled = false;

  #schedule;

  /**
   * @param {State} state
   * @param {(draw: () => void) => unknown} schedule  calls back once, before the next paint
   */
  constructor(state, schedule = (draw) => requestAnimationFrame(draw)) {
    this.state = state;
    this.#schedule = schedule;
  }

  /** @param {Topic[]} topics @param {() => void} render */
  subscribe(topics, render) {
    for (const topic of topics) {
      const set = this.#listeners.get(topic) ?? new Set();
      set.add(render);
      this.#listeners.set(topic, set);
    }
  }

  /** @param {...Topic} topics */
  changed(...topics) {
    for (const topic of topics) this.#dirty.add(topic);
    if (this.#scheduled) return;
    this.#scheduled = true;
    this.#schedule(() => this.flush());
  }

  /** Draws now: for the stop click, whose effect must not wait for the next frame. */
  flush() {
    this.#scheduled = false;
    const renders = new Set(
      [...this.#dirty].flatMap((topic) => [...(this.#listeners.get(topic) ?? [])]),
    );
    this.#dirty.clear();
    for (const render of renders) render();
  }
}
