/**
 * An answer as text to be spoken: all of it when it is over, or piece by piece while it is written. An answer that
 * is stopped ends its speech too: stopping a chain stops all of it.
 */

import { isRunning } from "./chats.js";

/** @import { Chat } from "./chats.js" */

/** @param {Chat} chat @returns {string | AsyncIterable<string>} */
export function textOf(chat) {
  return isRunning(chat) ? asItIsWritten(chat) : chat.text;
}

/** @param {Chat} chat */
async function* asItIsWritten(chat) {
  const { attempt } = chat;
  let spoken = 0;
  while (chat.attempt === attempt) {
    if (spoken < chat.text.length && chat.state !== "stopping") {
      const piece = chat.text.slice(spoken);
      spoken += piece.length;
      yield piece;
    } else if (chat.state === "completed") return;
    else if (!isRunning(chat) || chat.state === "stopping") break;
    else await new Promise((resolve) => chat.listeners.push(resolve));
  }
  throw new DOMException("The answer was stopped, and so is its speech.", "AbortError");
}
