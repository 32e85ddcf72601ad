/** What a chat is when it begins, and how those who wait for more of it are told. */

/** @import { Ask, Chat } from "./chats.js" */

/** @param {Chat} chat */
export function wake({ listeners }) {
  for (const resolve of listeners.splice(0)) resolve();
}

/** @param {number} key @param {Ask} ask @returns {Chat} */
export function blankChat(key, ask) {
  return {
    key,
    ask,
    state: "pending",
    attempt: 0,
    stream: null,
    unread: [],
    text: "",
    listeners: [],
    stale: false,
    items: 0,
    sentAt: performance.now(),
    firstAt: null,
    lastAt: null,
    endedAt: null,
    tokens: null,
    finishReason: null,
    receipt: null,
    slotBack: false,
    trouble: null,
  };
}
