/**
 * How the state of a chat, a speech, a listening or an embedding reads: what it waits for, how it ended, and what its last stops
 * took. Says nothing but what the server's terminal or its counters said. Pure; knows no DOM.
 *
 * @typedef {object} Run  what they have in common
 * @property {"speech" | "listening" | "embedding"} [kind]  absent: a chat
 * @property {string} state
 * @property {{ queue: Progress | null, started: unknown } | null} stream
 * @property {number} items
 * @property {number} sentAt
 * @property {number | null} endedAt
 * @property {string | null} finishReason
 * @property {Cancel | null} receipt
 * @property {boolean} slotBack
 * @property {Trouble | null} trouble
 * @property {Usage | null} [usage]
 * @property {Timing | null} [timing]
 *
 * @typedef {object} Ending
 * @property {"good" | "warn" | "bad" | "plain"} tone
 * @property {string} mark  the icon
 * @property {string[]} parts  each is kept on one line where it fits
 */

import { formatCount, formatMs, ordinal, plural } from "./format.js";

/** @import { Trouble } from "./chats.js" */
/** @import { Cancel, Progress, Timing, Usage, Wasted } from "../sdk/types.d.ts" */

/** Of each kind, the last so many are shown. */
export const MAX_STOPS = 20;

/** The connection went, so what was received is all there is. */
const LOST = new Set(["connection_lost", "connection_failed", "connection_closed"]);

const STOPPED_BY = {
  deadline: "its deadline passed",
  slow: "the page read too slowly",
  disconnect: "the connection went",
  shutdown: "the server was shutting down",
};

const WORDS = {
  chat: {
    reading: "Reading the prompt…",
    preparing: "Preparing the prompt",
    waste: (/** @type {Wasted} */ { tokens }) =>
      tokens === undefined ? [] : [`${plural(tokens, "token")} wasted`],
    released: "slot and cache released",
    over: ["it had just finished", "nothing was left to stop"],
    lost: "The connection was lost in mid-answer. The text so far is kept; Retry asks again.",
  },
  speech: {
    reading: "Computing the first sound…",
    preparing: "Preparing the text",
    waste: (/** @type {Wasted} */ { audioMs }) =>
      audioMs === undefined ? [] : [`${formatMs(audioMs)} of audio wasted`],
    released: "slot released",
    over: ["silent", "all of it had been computed"],
    lost: "The connection was lost in mid-sentence. What had arrived was spoken and can be saved; Speak asks again.",
  },
  listening: {
    reading: "Listening…",
    preparing: "Preparing to listen",
    waste: (/** @type {Wasted} */ { audioMs }) =>
      audioMs === undefined ? [] : [`${formatMs(audioMs)} of audio wasted`],
    released: "slot released",
    over: ["it had just finished", "nothing was left to stop"],
    lost: "The connection was lost while listening. The text so far is kept and can be saved.",
  },
  embedding: {
    reading: "Embedding the first lines…",
    preparing: "Preparing the lines",
    waste: (/** @type {Wasted} */ { texts }) =>
      texts === undefined ? [] : [`${plural(texts, "line")} wasted`],
    released: "slot released",
    over: ["it had just finished", "nothing was left to stop"],
    lost: "The connection was lost in mid-batch. The vectors so far are kept and can be saved; Again asks for all of them.",
  },
};

/** @param {Run} run */
function wordsFor(run) {
  return WORDS[run.kind ?? "chat"];
}

/** What the card says in place of text; "" when there is text. @param {Run} chat */
export function waitingText(chat) {
  if (chat.state === "streaming") return chat.items === 0 ? wordsFor(chat).reading : "";
  if (chat.state !== "pending") return "";
  const queue = chat.stream?.queue;
  if (!queue) return "Sent";
  if (queue.phase === "loading")
    return queue.percent === undefined
      ? "Loading the model"
      : `Loading the model, ${Math.round(queue.percent)} %`;
  if (queue.phase === "preparing") return wordsFor(chat).preparing;
  const eta =
    queue.etaMs === undefined
      ? ""
      : ` · about ${plural(Math.max(1, Math.round(queue.etaMs / 1000)), "second")}`;
  return queue.position === 0
    ? `Next in line${eta}`
    : `${ordinal(queue.position + 1)} in line${eta}`;
}

/** @param {Run} chat  one that ended @returns {Ending} */
export function endingOf(chat) {
  if (chat.trouble) return { tone: "bad", mark: "alert", parts: [troubleText(chat, chat.trouble)] };
  if (chat.receipt) return receiptOf(chat, chat.receipt);
  if (chat.kind === "speech") return { tone: "plain", mark: "check", parts: spokenParts(chat) };
  if (chat.kind === "listening") return { tone: "plain", mark: "check", parts: heardParts(chat) };
  if (chat.kind === "embedding") return embeddedEnding(chat);
  const seconds = chat.endedAt === null ? "" : ` in ${formatMs(chat.endedAt - chat.sentAt)}`;
  const why = chat.finishReason === "length" ? ["reached its token limit"] : [];
  return { tone: "plain", mark: "check", parts: [`done${seconds}`, ...why] };
}

/** How long it was and how long the computing of it took. @param {Run} speech */
function spokenParts({ usage, timing }) {
  const audioMs = usage?.audioMs;
  if (audioMs === undefined) return ["done"];
  if (audioMs === 0) return ["done", "there was nothing to speak"];
  const computedMs = computingMs(timing);
  const computed = computedMs === null ? [] : [`computed in ${formatMs(computedMs)}`];
  return [`spoke ${formatMs(audioMs)}`, ...computed];
}

/** How long it was, and whether there was anything to write down. @param {Run} listening */
function heardParts({ usage, items }) {
  const heard = usage?.audioMs === undefined ? "done" : `heard ${formatMs(usage.audioMs)}`;
  return [heard, items === 0 ? "nobody spoke" : "all of it is final"];
}

/** How many lines have a vector, and that some have none. @param {Run} embedding @returns {Ending} */
function embeddedEnding({ usage, timing, items }) {
  const failed = Number(usage?.failed ?? 0);
  const cut = Number(usage?.truncated ?? 0);
  const computedMs = computingMs(timing);
  const parts = [
    `embedded ${plural(items - failed, "line")}`,
    ...(computedMs === null ? [] : [`in ${formatMs(computedMs)}`]),
    ...(cut > 0 ? [`${formatCount(cut)} cut`] : []),
    ...(failed > 0 ? [`${plural(failed, "line")} without a vector, marked in the list`] : []),
  ];
  return failed > 0
    ? { tone: "warn", mark: "alert", parts }
    : { tone: "plain", mark: "check", parts };
}

/** The time it held a slot and was not at rest for its listener. @param {Timing | null | undefined} timing */
export function computingMs(timing) {
  if (timing?.totalMs === undefined) return null;
  return Math.max(0, timing.totalMs - (timing.queuedMs ?? 0) - (timing.pausedMs ?? 0));
}

/** @param {any} error  a PlaitError, or what the browser threw @returns {Trouble} */
export function troubleFrom(error) {
  const code = String(error?.code ?? "internal");
  return { code, message: String(error?.message ?? error), lost: LOST.has(code) };
}

/** @param {Run} run @param {Trouble} trouble */
function troubleText(run, { code, message }) {
  return code === "connection_lost" && run.items > 0 ? wordsFor(run).lost : message;
}

/** @param {Run} chat @param {Cancel} receipt @returns {Ending} */
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

/** @param {Run} chat @param {Cancel} receipt @returns {string[]} */
function confirmedParts(chat, { stopMs, wasted }) {
  const words = wordsFor(chat);
  if (stopMs === 0 && !heldSlot(chat)) return ["stopped before it started", "nothing was computed"];
  if (stopMs === 0 && wasted === null) return words.over;
  const took = stopMs === null ? "stopped" : `stopped in ${formatMs(stopMs)}`;
  return [took, ...(wasted ? words.waste(wasted) : []), words.released];
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

/** The server said it started, or had something to give back. @param {Run} chat */
function heldSlot({ stream, receipt }) {
  return stream?.started != null || (receipt?.stopMs ?? 0) > 0;
}

/**
 * What a stop adds to the last stops: milliseconds, "late" when the release was not confirmed in time,
 * null when there was no slot to give back or the server did not get to say.
 * @param {Run} chat  with its receipt
 * @returns {number | "late" | null}
 */
export function stopTimeOf(chat) {
  const { receipt } = chat;
  if (receipt?.by !== "client") return null;
  if (!receipt.released) return receipt.usage === null ? null : "late";
  return heldSlot(chat) && receipt.wasted !== null ? receipt.stopMs : null;
}

/** Adds a stop to the last ones of its kind. @param {(number | "late")[]} stops @param {Run} run  with its receipt */
export function keepStop(stops, run) {
  const stop = stopTimeOf(run);
  if (stop !== null) stops.push(stop);
  if (stops.length > MAX_STOPS) stops.shift();
}

/** For the ear: what stopped, and how soon. @param {string} what @param {Cancel} receipt */
export function stoppedText(what, { stopMs }) {
  const took = stopMs === null ? "" : ` in ${Math.round(stopMs)} milliseconds`;
  return `${what} stopped${took}.`;
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
 * @param {Run} chat @param {import("./metrics.js").Sample} sample
 */
export function showsSlotBack({ endedAt, receipt }, sample) {
  if (!receipt || receipt.released || receipt.usage === null || endedAt === null) return false;
  return sample.at > endedAt && sample.slotsUsed <= sample.active;
}
