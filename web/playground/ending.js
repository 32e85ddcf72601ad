/**
 * How a chat's state reads: what it waits for, how it ended, and what its last stops took. Says nothing
 * but what the server's terminal or its counters said. Pure; knows no DOM.
 *
 * @typedef {object} Ending
 * @property {"good" | "warn" | "bad" | "plain"} tone
 * @property {string} mark  the icon
 * @property {string[]} parts  each is kept on one line where it fits
 */

import { formatMs, ordinal, plural } from "./format.js";

/** @import { Chat, Trouble } from "./chats.js" */
/** @import { Cancel } from "../sdk/types.d.ts" */

const STOPPED_BY = {
  deadline: "its deadline passed",
  slow: "the page read too slowly",
  disconnect: "the connection went",
  shutdown: "the server was shutting down",
};

/** What the card says in place of text; "" when there is text. @param {Chat} chat */
export function waitingText(chat) {
  if (chat.state === "streaming") return chat.items === 0 ? "Reading the prompt…" : "";
  if (chat.state !== "pending") return "";
  const queue = chat.stream?.queue;
  if (!queue) return "Sent";
  if (queue.phase === "loading")
    return queue.percent === undefined
      ? "Loading the model"
      : `Loading the model, ${Math.round(queue.percent)} %`;
  if (queue.phase === "preparing") return "Preparing the prompt";
  const eta =
    queue.etaMs === undefined
      ? ""
      : ` · about ${plural(Math.max(1, Math.round(queue.etaMs / 1000)), "second")}`;
  return queue.position === 0
    ? `Next in line${eta}`
    : `${ordinal(queue.position + 1)} in line${eta}`;
}

/** @param {Chat} chat  one that ended @returns {Ending} */
export function endingOf(chat) {
  if (chat.trouble)
    return { tone: "bad", mark: "alert", parts: [troubleText(chat.trouble, chat.items)] };
  if (chat.receipt) return receiptOf(chat, chat.receipt);
  const seconds = chat.endedAt === null ? "" : ` in ${formatMs(chat.endedAt - chat.sentAt)}`;
  const why = chat.finishReason === "length" ? ["reached its token limit"] : [];
  return { tone: "plain", mark: "check", parts: [`done${seconds}`, ...why] };
}

/** @param {Trouble} trouble @param {number} items */
function troubleText({ code, message }, items) {
  if (code !== "connection_lost" || items === 0) return message;
  return "The connection was lost in mid-answer. The text so far is kept; Retry asks again.";
}

/** @param {Chat} chat @param {Cancel} receipt @returns {Ending} */
function receiptOf(chat, receipt) {
  const reason = STOPPED_BY[/** @type {keyof typeof STOPPED_BY} */ (receipt.by)];
  const parts = receipt.released
    ? confirmedParts(chat, receipt)
    : unconfirmedParts(receipt, chat.slotBack);
  const good = receipt.released && !reason;
  return {
    tone: good ? "good" : "warn",
    mark: good ? "check" : "alert",
    parts: reason ? [reason, ...parts] : parts,
  };
}

/** @param {Chat} chat @param {Cancel} receipt @returns {string[]} */
function confirmedParts(chat, { stopMs, wasted }) {
  if (stopMs === 0 && !heldSlot(chat)) return ["stopped before it started", "nothing was computed"];
  if (stopMs === 0 && wasted === null) return ["it had just finished", "nothing was left to stop"];
  const took = stopMs === null ? "stopped" : `stopped in ${formatMs(stopMs)}`;
  const tokens = wasted?.tokens;
  const waste = tokens === undefined ? [] : [`${plural(tokens, "token")} wasted`];
  return [took, ...waste, "slot and cache released"];
}

/**
 * A terminal from the server always counts usage; without one, the connection went first.
 * @param {Cancel} receipt @param {boolean} slotBack @returns {string[]}
 */
function unconfirmedParts({ usage }, slotBack) {
  if (usage === null) return ["stopped", "the connection was lost before the server confirmed it"];
  const late = ["stopped", "the engine needed more than 100 ms to confirm"];
  return slotBack ? [...late, "slot back since"] : late;
}

/** The server said it started, or had something to give back. @param {Chat} chat */
function heldSlot({ stream, receipt }) {
  return stream?.started != null || (receipt?.stopMs ?? 0) > 0;
}

/**
 * What a stop adds to the last stops: milliseconds, "late" when the release was not confirmed in time,
 * null when there was no slot to give back or the server did not get to say.
 * @param {Chat} chat  with its receipt
 * @returns {number | "late" | null}
 */
export function stopTimeOf(chat) {
  const { receipt } = chat;
  if (receipt?.by !== "client") return null;
  if (!receipt.released) return receipt.usage === null ? null : "late";
  return heldSlot(chat) && receipt.wasted !== null ? receipt.stopMs : null;
}

/** @param {(number | "late")[]} stops */
export function stopsText(stops) {
  const times = stops.filter((stop) => stop !== "late").sort((a, b) => a - b);
  const late = stops.length - times.length;
  const median = times[Math.floor((times.length - 1) / 2)];
  const parts = median === undefined ? [] : [`median stop ${formatMs(median)}`];
  if (late > 0) parts.push(`${late} late`);
  return parts.join(" · ");
}

/**
 * Whether the gauges prove that a slot not confirmed in time is back: read after the stream had ended,
 * they know no more slots in use than streams that run.
 * @param {Chat} chat @param {import("./metrics.js").Sample} sample
 */
export function showsSlotBack({ endedAt, receipt }, sample) {
  if (!receipt || receipt.released || receipt.usage === null || endedAt === null) return false;
  return sample.at > endedAt && sample.slotsUsed <= sample.active;
}
