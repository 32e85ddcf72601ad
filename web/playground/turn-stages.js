/**
 * What the moments of a turn amount to: the stages a person reads, the bars of its timeline, and the receipt of an
 * interruption. Says nothing but what the conversation's times and the server's proofs said. Pure; knows no DOM.
 *
 * @typedef {object} Bar  milliseconds since the turn began
 * @property {"wait" | "work"} kind
 * @property {number} from
 * @property {number} to
 *
 * @typedef {object} Lane
 * @property {"you" | "chat" | "speech"} name
 * @property {number | null} streamId
 * @property {Bar[]} bars
 * @property {number | null} cancelled  when the server's proof of its cancel arrived
 *
 * @typedef {number | undefined} Moment
 * @typedef {{ text: string, streamId: number | null }} Part
 * @typedef {{ tone: "good" | "warn" | "bad" | "plain", mark: string, parts: Part[] }} Receipt
 */

import { formatMs } from "./format.js";

/** @import { Cancel } from "../sdk/types.d.ts" */
/** @import { Interruption, Turn } from "../sdk/conversation.d.ts" */

/** A timeline's length moves in steps, or its bars would never rest while it grows. */
const SPANS_MS = [2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128].map((seconds) => seconds * 1000);
const MARKS = 4;

/** In the order in which they happen, and what exactly is measured. */
export const STAGES = /** @type {const} */ ([
  { name: "spoke", label: "you spoke", title: "From the first speech to your silence" },
  { name: "wait", label: "end of turn", title: "The silence that means you have finished" },
  { name: "transcription", label: "transcription", title: "From there to the final text" },
  { name: "token", label: "first token", title: "From asking to the first token" },
  { name: "sound", label: "first audio", title: "From the first token to its first sound" },
  { name: "answer", label: "answer after", title: "From your silence to the first sound" },
  { name: "speaking", label: "speaking", title: "From the first sound to the last" },
]);

/** @param {Turn} turn */
export function isOver({ state }) {
  return state === "completed" || state === "interrupted" || state === "failed";
}

/**
 * From the user's silence to the answer's first sound: what a person waits for. Null before it sounds, and where the
 * turn answers nothing.
 * @param {Turn} turn
 */
export function answeredAfterMs(turn) {
  return stagesOf(turn, 0).answer ?? null;
}

/** The milliseconds of each stage that is over, by its name. @param {Turn} turn @param {number} endOfTurnMs */
export function stagesOf(turn, endOfTurnMs) {
  const { speechStarted, speechStopped, transcribed, firstToken, firstHeard, interrupted, ended } =
    turn.times;
  const quiet = speechStopped === undefined ? undefined : speechStopped + endOfTurnMs;
  const waited =
    quiet === undefined || transcribed === undefined ? undefined : Math.min(quiet, transcribed);
  /** @type {Record<string, number>} */
  const stages = {};
  const add = (
    /** @type {string} */ name,
    /** @type {Moment} */ from,
    /** @type {Moment} */ to,
  ) => {
    if (from !== undefined && to !== undefined) stages[name] = Math.max(0, to - from);
  };
  add("spoke", speechStarted, speechStopped);
  add("wait", speechStopped, waited);
  add("transcription", waited, transcribed);
  add("token", transcribed, firstToken);
  add("sound", firstToken, firstHeard);
  add("answer", speechStopped, firstHeard);
  add("speaking", firstHeard, interrupted ?? ended);
  return stages;
}

/** @param {Turn} turn @param {number} now @param {number | null} transcriptionId @returns {Lane[]} */
export function lanesOf(turn, now, transcriptionId) {
  const { times, chatId, speechId } = turn;
  const end = times.ended ?? now;
  const from = times.speechStarted;
  // On a page that was busy a moment may be told before the one it follows.
  const since = (/** @type {number} */ moment) => Math.max(0, moment - from);
  const bar = (
    /** @type {Bar["kind"]} */ kind,
    /** @type {number | undefined} */ start,
    stop = end,
  ) =>
    start === undefined ? [] : [{ kind, from: since(start), to: since(Math.max(start, stop)) }];
  const { speechStopped, transcribed, firstToken, firstHeard } = times;
  const spoken = times.interrupted ?? end;
  const asked = chatId === null ? undefined : transcribed;
  return [
    {
      name: "you",
      streamId: transcriptionId,
      bars: [
        ...bar("work", from, speechStopped ?? transcribed),
        ...bar("wait", speechStopped, transcribed),
      ],
      cancelled: null,
    },
    {
      name: "chat",
      streamId: chatId,
      bars: [
        ...bar("wait", asked, firstToken ?? spoken),
        ...bar("work", firstToken, times.lastToken ?? spoken),
      ],
      cancelled: sinceStart(turn, times.chatStopped),
    },
    {
      name: "speech",
      streamId: speechId,
      bars: [...bar("wait", firstToken, firstHeard ?? spoken), ...bar("work", firstHeard, spoken)],
      cancelled: sinceStart(turn, times.speechReleased),
    },
  ];
}

/** @param {Turn} turn @param {number | undefined} at */
export function sinceStart({ times }, at) {
  return at === undefined ? null : at - times.speechStarted;
}

/** From edge to edge of the timeline, in milliseconds. @param {Turn} turn @param {number} now */
export function spanOf({ times }, now) {
  const { speechStarted, chatStopped = 0, speechReleased = 0 } = times;
  const last = Math.max(times.ended ?? now, chatStopped, speechReleased) - speechStarted;
  return SPANS_MS.find((span) => span >= last) ?? Math.ceil(last / 60_000) * 60_000;
}

/** Times to write below a timeline, from its beginning on. @param {number} spanMs */
export function marksOf(spanMs) {
  return Array.from({ length: MARKS + 1 }, (_, index) => (index * spanMs) / MARKS / 1000);
}

/**
 * The answer as two texts: what was heard, and what was not. The marks' text may break its words elsewhere.
 * @param {string} written @param {Interruption | null} interruption
 * @returns {[heard: string, unheard: string]}
 */
export function splitHeard(written, interruption) {
  if (!interruption) return [written, ""];
  const wanted = interruption.heard.replace(/\s+/g, "").length;
  let at = 0;
  for (let seen = 0; at < written.length && seen < wanted; at += 1) {
    if (/\S/.test(written.charAt(at))) seen += 1;
  }
  return [written.slice(0, at), written.slice(at)];
}

/**
 * Empty where there is nothing to say. Its place is taken with the interruption, its proofs come with the server's.
 * @param {Turn} turn @returns {Receipt}
 */
export function endingOf(turn) {
  const { error, interruption, times } = turn;
  if (error) return { tone: "bad", mark: "alert", parts: [plain(error.message)] };
  if (interruption) return receiptOf(turn, interruption);
  const stopping = times.interrupted !== undefined && turn.chatId !== null;
  return { tone: "plain", mark: "stop", parts: stopping ? [plain("interrupted")] : [] };
}

/** @param {Turn} turn @param {Interruption} interruption @returns {Receipt} */
function receiptOf(turn, { by, heardMs, chat, speech }) {
  const verb = by === "talk" ? "interrupted" : "stopped";
  const what = heardMs > 0 ? `${verb} after ${formatMs(heardMs)}` : `${verb} before it was heard`;
  const proofs = [
    ...proofOf("chat", chat, turn.chatId),
    ...proofOf("speech", speech, turn.speechId),
  ];
  const sure = [chat, speech].every((proof) => proof === null || proof.released);
  const end = plain(sure ? "released" : "not confirmed within 100 ms");
  return {
    tone: sure ? "good" : "warn",
    mark: sure ? "check" : "alert",
    parts: [plain(what), ...proofs, ...(proofs.length > 0 ? [end] : [])],
  };
}

/** @param {string} text @returns {Part} */
function plain(text) {
  return { text, streamId: null };
}

/** @param {string} what @param {Cancel | null} proof @param {number | null} streamId @returns {Part[]} */
function proofOf(what, proof, streamId) {
  if (!proof) return [];
  const took = proof.stopMs === null ? "stopped" : `stopped in ${formatMs(proof.stopMs)}`;
  return [{ text: `${what} ${took}`, streamId }];
}

/**
 * Of answers that were asked for too early, and taken back when the user went on. "" there are none.
 * @param {Turn} turn
 */
export function withdrawnText({ withdrawn }) {
  const [last] = withdrawn.slice(-1);
  if (!last) return "";
  const proofs = [...proofOf("chat", last.chat, null), ...proofOf("speech", last.speech, null)];
  const times = withdrawn.length === 1 ? "" : ` (${withdrawn.length} times)`;
  const took = proofs.map(({ text }) => ` · ${text}`).join("");
  return `you went on, so the answer was taken back${times}${took}`;
}

/** What the two proofs add to the last stops. @param {Interruption} interruption @returns {(number | "late")[]} */
export function stopTimesOf({ chat, speech }) {
  const asked = [chat, speech].filter((proof) => proof?.by === "client");
  return asked
    .map((proof) => (proof?.released ? proof.stopMs : "late"))
    .filter((stop) => stop != null);
}
