/**
 * The messages of a conversation: what the model is told next time. An answer is there with what was heard of it, and
 * not at all when that is nothing. Where that leaves two messages of the user's in a row they become one, as templates
 * expect. Grows with the conversation: what is too long for the model is the app's to decide.
 */

/** @import { ChatMessage } from "./types.d.ts" */

import { joined } from "./transcript.js";

export class History {
  /** @type {readonly ChatMessage[]} */
  messages;

  /** @param {readonly ChatMessage[]} messages */
  constructor(messages) {
    this.messages = structuredClone(messages);
  }

  /**
   * @param {string} said
   * @returns {() => void} takes it back; to be called before anything else is added
   */
  ask(said) {
    const last = this.messages.at(-1);
    const unanswered = last?.role === "user" && typeof last.content === "string" ? [last] : [];
    const texts = [...unanswered.map(({ content }) => ({ text: content ?? "" })), { text: said }];
    const asked = { ...unanswered[0], role: "user", content: joined(texts) };
    this.#replace(unanswered, [asked]);
    return () => this.#replace([asked], unanswered);
  }

  /**
   * @param {string} text what was heard of the answer
   * @returns {(text: string) => void} says better what it was
   */
  answer(text) {
    /** @type {ChatMessage[]} */
    let shown = spoken(text);
    this.#replace([], shown);
    return (better) => {
      // It was nothing: what follows has been asked on that ground.
      if (!shown[0] || better === shown[0].content) return;
      const now = spoken(better);
      this.#replace(shown, now);
      shown = now;
    };
  }

  /**
   * @param {readonly ChatMessage[]} old one of the messages; none: at the end
   * @param {readonly ChatMessage[]} now
   */
  #replace([old], now) {
    const { messages } = this;
    const place = old ? messages.indexOf(old) : messages.length;
    if (place < 0) return;
    this.messages = [...messages.slice(0, place), ...now, ...messages.slice(place + (old ? 1 : 0))];
  }
}

/** @param {string} text @returns {ChatMessage[]} */
function spoken(text) {
  return text.trim() ? [{ role: "assistant", content: text }] : [];
}
