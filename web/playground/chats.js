/**
 * The chats of this page: ask, read, stop, retry. State only; panels draw it. Everything here goes
 * through the public SDK, and a receipt holds only what the server's terminal said.
 *
 * @typedef {"pending" | "streaming" | "stopping" | "completed" | "cancelled" | "errored"} ChatState
 *
 * @typedef {object} Ask
 * @property {string} prompt
 * @property {string} [system]
 * @property {string} [model]
 * @property {number} [maxTokens]
 * @property {number} [temperature]
 * @property {number} [seed]
 *
 * @typedef {object} Trouble
 * @property {string} code
 * @property {string} message
 * @property {boolean} lost  the connection went, so what was received is all there is
 *
 * @typedef {object} Chat
 * @property {number} key  of the card; survives a retry
 * @property {Ask} ask
 * @property {ChatState} state
 * @property {number} attempt
 * @property {import("../sdk/types.d.ts").Stream<import("../sdk/types.d.ts").ChatDelta> | null} stream
 * @property {string[]} unread  deltas not drawn yet
 * @property {string} text  all that came
 * @property {((value?: unknown) => void)[]} listeners  called once, when there is more or it ended
 * @property {boolean} stale  the drawn text is a previous attempt's; cleared with the next delta
 * @property {number} items
 * @property {number} sentAt
 * @property {number | null} firstAt
 * @property {number | null} lastAt
 * @property {number | null} endedAt
 * @property {number | null} tokens  the server's count, once it has said so
 * @property {string | null} finishReason
 * @property {import("../sdk/types.d.ts").Cancel | null} receipt
 * @property {boolean} slotBack  a release that was late is over: the server's gauges show it
 * @property {Trouble | null} trouble
 */

import { keepStop, showsSlotBack, stoppedText, troubleFrom } from "./ending.js";
import { blankChat, wake } from "./new-chat.js";

const MAX_CHATS = 24;

/** @param {Chat} chat */
export function isRunning(chat) {
  return chat.state === "pending" || chat.state === "streaming" || chat.state === "stopping";
}

/**
 * The calls that are complete, a line each, as an answer shows them.
 *
 * @param {import("../sdk/types.d.ts").ToolCallDelta[]} [deltas]
 */
export function callsText(deltas = []) {
  const calls = deltas.filter((delta) => delta.complete).map((delta) => delta.function);
  return calls.map((call) => `→ ${call.name}(${call.arguments})\n`).join("");
}

export class Chats {
  #store;
  #client;
  #announce;
  #onEdge;
  #nextKey = 1;

  /**
   * @param {import("./store.js").Store} store
   * @param {() => import("../sdk/types.d.ts").Plait} client
   * @param {(text: string) => void} announce
   * @param {() => void} onEdge  a stream started or ended: counters are worth reading now
   */
  constructor(store, client, announce, onEdge) {
    this.#store = store;
    this.#client = client;
    this.#announce = announce;
    this.#onEdge = onEdge;
  }

  /** @param {Ask} ask @param {number} copies */
  ask(ask, copies = 1) {
    for (let copy = 0; copy < copies; copy += 1) {
      // Same question, another seed: copies that say the same would show nothing.
      const own = ask.seed === undefined ? ask : { ...ask, seed: ask.seed + copy };
      const chat = blankChat(this.#nextKey, own);
      this.#nextKey += 1;
      this.#store.state.chats.push(chat);
      this.#store.state.focusedKey = chat.key;
      this.#run(chat);
    }
    this.#trim();
    this.#store.changed("chats");
  }

  /** @param {Chat} chat */
  retry(chat) {
    if (isRunning(chat)) return;
    const { listeners } = chat;
    Object.assign(chat, {
      ...blankChat(chat.key, chat.ask),
      attempt: chat.attempt + 1,
      stale: true,
    });
    for (const resolve of listeners) resolve();
    this.#store.state.focusedKey = chat.key;
    this.#run(chat);
    this.#store.changed("chats");
  }

  /** Freezes the text in this tick; the receipt comes with the terminal. @param {Chat} chat */
  stop(chat) {
    this.#cancel(chat);
    this.#store.flush();
  }

  /** All cancels leave before anything is drawn. */
  stopAll() {
    for (const chat of this.#store.state.chats) this.#cancel(chat);
    this.#store.flush();
  }

  /** @param {Chat} chat */
  #cancel(chat) {
    if (!chat.stream || chat.state === "stopping" || !isRunning(chat)) return;
    chat.state = "stopping";
    wake(chat);
    chat.unread.length = 0; // what was not drawn yet never will be: the text stands still from here
    this.#store.changed("chats", "text");
    const attempt = chat.attempt;
    chat.stream.cancel().then((receipt) => {
      if (chat.attempt === attempt && chat.state === "stopping") this.#stopped(chat, receipt);
    });
  }

  /** The chat Esc means: the focused one if it runs, else the newest that does. */
  focused() {
    const running = this.#store.state.chats.filter(
      (chat) => isRunning(chat) && chat.state !== "stopping",
    );
    return (
      running.find((chat) => chat.key === this.#store.state.focusedKey) ?? running.at(-1) ?? null
    );
  }

  /** @param {Chat} chat */
  focus(chat) {
    if (this.#store.state.focusedKey === chat.key) return;
    this.#store.state.focusedKey = chat.key;
    this.#store.changed("chats");
  }

  /** @param {Chat} chat */
  remove(chat) {
    if (isRunning(chat)) return;
    this.#store.state.chats = this.#store.state.chats.filter((other) => other !== chat);
    this.#store.changed("chats");
  }

  clearFinished() {
    this.#store.state.chats = this.#store.state.chats.filter(isRunning);
    this.#store.changed("chats");
  }

  /** @param {Chat} chat */
  #run(chat) {
    const { prompt, system, ...params } = chat.ask;
    const messages = [{ role: "user", content: prompt }];
    if (system) messages.unshift({ role: "system", content: system });
    let stream;
    try {
      stream = this.#client().llm.chatStream({ ...params, messages });
    } catch (error) {
      this.#failed(chat, error);
      return;
    }
    chat.stream = stream;
    void this.#read(chat, stream, chat.attempt);
  }

  /**
   * @param {Chat} chat
   * @param {NonNullable<Chat["stream"]>} stream
   * @param {number} attempt
   */
  async #read(chat, stream, attempt) {
    // Once stopped, or retried, the word is with stop(), or with the next attempt.
    const mine = () => chat.attempt === attempt && isRunning(chat) && chat.state !== "stopping";
    try {
      for await (const delta of stream) {
        const said = delta.content + callsText(delta.toolCalls);
        if (said && mine()) this.#received(chat, said);
      }
      const end = await stream.done;
      if (mine()) this.#completed(chat, end);
    } catch (error) {
      const end = await stream.done;
      if (!mine()) return;
      if (end.state === "cancelled") this.#stopped(chat, end);
      else this.#failed(chat, error, end);
    }
  }

  /** A frame of this stream arrived; its state may have moved. @param {number} id */
  noticeFrame(id) {
    const chat = this.#store.state.chats.find((other) => other.stream?.id === id);
    if (chat?.stream?.state === "streaming" && chat.state === "pending") this.#started(chat);
    else if (chat?.state === "pending") this.#store.changed("text");
  }

  /** New figures of the server: they may show that a late release is over. */
  noticeSample() {
    const { chats, sample } = this.#store.state;
    for (const chat of chats) {
      if (!sample || chat.slotBack || !showsSlotBack(chat, sample)) continue;
      chat.slotBack = true;
      this.#store.changed("chats");
    }
  }

  /** @param {Chat} chat */
  #started(chat) {
    chat.state = "streaming";
    this.#store.changed("chats");
    this.#announce(`Answer ${chat.key} started.`);
    this.#onEdge();
  }

  /** @param {Chat} chat @param {string} content */
  #received(chat, content) {
    if (chat.state === "pending") this.#started(chat);
    const now = performance.now();
    chat.firstAt ??= now;
    chat.lastAt = now;
    chat.items += 1;
    chat.unread.push(content);
    chat.text += content;
    wake(chat);
    this.#store.changed("text");
  }

  /** @param {Chat} chat @param {import("../sdk/types.d.ts").End} end */
  #completed(chat, end) {
    this.#ended(chat, "completed", end.usage);
    if (end.state === "completed") chat.finishReason = end.finishReason ?? null;
    this.#announce(`Answer ${chat.key} finished.`);
  }

  /** @param {Chat} chat @param {import("../sdk/types.d.ts").Cancel} receipt */
  #stopped(chat, receipt) {
    this.#ended(chat, "cancelled", receipt.usage);
    chat.receipt = receipt;
    keepStop(this.#store.state.stops, chat);
    this.#announce(stoppedText(`Answer ${chat.key}`, receipt));
  }

  /**
   * @param {Chat} chat
   * @param {any} error  a PlaitError, or what the browser threw
   * @param {import("../sdk/types.d.ts").End} [end]
   */
  #failed(chat, error, end) {
    this.#ended(chat, "errored", end?.usage ?? null);
    chat.trouble = troubleFrom(error);
    this.#announce(`Answer ${chat.key} failed: ${chat.trouble.message}`);
  }

  /**
   * @param {Chat} chat
   * @param {ChatState} state
   * @param {import("../sdk/types.d.ts").Usage | null} usage
   */
  #ended(chat, state, usage) {
    chat.state = state;
    chat.endedAt = performance.now();
    chat.tokens = usage?.completionTokens ?? null;
    wake(chat);
    this.#store.changed("chats", "text");
    this.#onEdge();
  }

  #trim() {
    const { chats } = this.#store.state;
    const finished = chats.filter((chat) => !isRunning(chat));
    const excess = new Set(finished.slice(0, Math.max(0, chats.length - MAX_CHATS)));
    if (excess.size > 0) this.#store.state.chats = chats.filter((chat) => !excess.has(chat));
  }
}
