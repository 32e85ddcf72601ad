/**
 * The page's one connection: makes the SDK client, keeps its state in the store, feeds the wire
 * inspector, and asks for a token where the server wants one. The token lives in sessionStorage
 * (this tab, until it closes), never in a URL; each attempt to connect shows a ticket for it. Knows no DOM.
 */

import { connect } from "../sdk/index.js";
import { fetchTicket, TokenRefused } from "./ticket.js";

/** @import { FrameEvent, Plait, StateEvent, Welcome } from "../sdk/types.d.ts" */

const TOKEN_KEY = "plait.token";

export class Link {
  #store;
  #tokenRequired;
  #onFrame;
  #askToken;
  /** @type {Plait | null} */
  #client = null;

  /**
   * @param {import("./store.js").Store} store
   * @param {boolean} tokenRequired
   * @param {(frame: FrameEvent) => void} onFrame
   * @param {(refused: boolean) => Promise<string>} askToken
   */
  constructor(store, tokenRequired, onFrame, askToken) {
    this.#store = store;
    this.#tokenRequired = tokenRequired;
    this.#onFrame = onFrame;
    this.#askToken = askToken;
  }

  /** @throws {Error} while the token is still being asked for */
  client() {
    if (!this.#client) throw new Error("Not connected yet: give the token, then send again.");
    return this.#client;
  }

  /** The one in use, for requests beside the socket; undefined where none is needed. */
  token() {
    return (this.#tokenRequired && sessionStorage.getItem(TOKEN_KEY)) || undefined;
  }

  async open(refused = false) {
    const token = this.#tokenRequired ? await this.#token(refused) : undefined;
    const client = connect(
      undefined,
      token === undefined ? {} : { token: () => this.#ticket(token) },
    );
    this.#client = client;
    this.#store.state.connection.guarded = token !== undefined;
    client.on("frame", (frame) => {
      if (frame.type === "goaway") noticeLeaving(this.#store, frame);
      this.#onFrame(frame);
    });
    client.on("state", (event) => this.#noticeState(client, event));
    client.models().catch(() => {}); // Opens the socket; how that went arrives as state.
  }

  /** @param {boolean} refused */
  async #token(refused) {
    const kept = refused ? null : sessionStorage.getItem(TOKEN_KEY);
    const token = kept ?? (await this.#askToken(refused));
    sessionStorage.setItem(TOKEN_KEY, token);
    return token;
  }

  /** @param {string} token */
  async #ticket(token) {
    try {
      return await fetchTicket(token);
    } catch (error) {
      if (error instanceof TokenRefused) this.#askAgain();
      throw error;
    }
  }

  /** The token is no good: leave the client that has it, and ask for another. */
  #askAgain() {
    void this.#client?.close();
    this.#client = null;
    this.#tokenRequired = true;
    void this.open(true);
  }

  /** @param {Plait} client @param {StateEvent} event */
  #noticeState(client, { state, error }) {
    if (client !== this.#client) return;
    const { connection } = this.#store.state;
    connection.state = state;
    connection.detail = detailOf(connection);
    if (state === "open" && client.welcome) this.#noticeWelcome(client.welcome);
    if (state === "closed" && error?.code === "unauthorized") {
      connection.detail = ""; // the dialog says it
      this.#askAgain();
    }
    this.#store.changed("connection");
  }

  /** @param {Welcome} welcome */
  #noticeWelcome(welcome) {
    const { state } = this.#store;
    Object.assign(state.connection, { wasOpen: true, leavingAt: null, detail: "" });
    state.rights = welcome.capabilities ?? [];
    state.app = welcome.app ?? null;
    const { chat, synthesize, transcribe, embed } = welcome.methods ?? {};
    state.models = namesOf(chat?.models);
    state.hearing = transcribe
      ? { models: namesOf(transcribe.models), languages: transcribe.languages ?? [] }
      : null;
    state.embedModels = embed ? namesOf(embed.models) : null;
    state.voices = synthesize ? (synthesize.voices ?? []) : null;
  }
}

/** @param {unknown[]} [models]  names, or objects with one */
function namesOf(models = []) {
  return models.map((model) =>
    String(typeof model === "object" && model ? Reflect.get(model, "id") : model),
  );
}

/**
 * The server said it is about to go, and in how long.
 * @param {import("./store.js").Store} store @param {FrameEvent} frame
 */
export function noticeLeaving(store, { message, time }) {
  const { connection } = store.state;
  connection.leavingAt = time + Number(message?.drain_ms ?? 0);
  connection.detail = detailOf(connection);
  store.changed("connection");
}

/** @param {import("./store.js").ConnectionState} connection */
export function detailOf({ state, wasOpen, leavingAt }) {
  if (state === "closed") return "The connection is closed. Reload the page to connect again.";
  if (leavingAt !== null)
    return state === "open"
      ? "The server is shutting down"
      : "The server shut down. Text already received is kept; waiting for it to come back.";
  if (state === "open" || state === "idle" || (state === "connecting" && !wasOpen)) return "";
  if (wasOpen) return "Connection lost. Text already received is kept; reconnecting.";
  return "No answer from the server. Is plait serve still running? Trying again.";
}
