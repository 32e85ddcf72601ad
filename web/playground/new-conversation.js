/**
 * One conversation: what is known of it, what it begins with, how it reads once it is over. State only.
 *
 * @typedef {"running" | "stopping" | "ended" | "errored"} RunState
 *
 * @typedef {object} TalkOptions
 * @property {string} device  "" the default one
 * @property {string} voice  "" the server's default
 * @property {string} model  "" the server's default
 * @property {string} instructions  the system message; "" none
 * @property {number} endOfTurnMs
 * @property {boolean} bargeIn
 *
 * @typedef {object} Entry  one turn, as the page keeps it
 * @property {number} key
 * @property {import("../sdk/conversation.d.ts").Turn} turn
 * @property {boolean} told  that it was interrupted
 * @property {number} withdrawn  answers that were taken back, and are among the last stops
 * @property {number | null} transcriptionId
 * @property {number} endOfTurnMs
 *
 * @typedef {object} Run
 * @property {TalkOptions} options
 * @property {RunState} state
 * @property {import("../sdk/conversation.d.ts").Conversation | null} conversation
 * @property {MediaStream | null} media  while the microphone is open
 * @property {Entry[]} entries  the newest, also of the conversations this one goes on from
 * @property {number} dropped  how many older ones are forgotten
 * @property {number} interruptions
 * @property {Set<Entry>} changed  since they were drawn
 * @property {readonly ChatMessage[]} history  what the model is told first
 * @property {import("./levels.js").Levels} levels
 * @property {import("./levels.js").Talk} talk
 * @property {number} beforeSeconds  of the conversations this one goes on from
 * @property {number} echoes  how often its own voice was detected, and ignored
 * @property {import("../sdk/conversation.d.ts").Echo | null} echo  the last one
 * @property {boolean} blocked  the browser plays nothing before a gesture
 * @property {string} note  what a person should know of the microphone; "" nothing
 * @property {number | null} stoppingAt
 * @property {number | null} endedAt
 * @property {import("./chats.js").Trouble | null} trouble
 */

import { formatMs, plural } from "./format.js";
import { Levels, Talk } from "./levels.js";

/** @import { ChatMessage } from "../sdk/types.d.ts" */
/** @import { Ending } from "./ending.js" */

/** @param {Run | null} run */
export function isConversing(run) {
  return run !== null && (run.state === "running" || run.state === "stopping");
}

/** @param {TalkOptions} options @param {Run | null} before @returns {Run} */
export function blankRun(options, before) {
  return {
    options,
    state: "running",
    conversation: null,
    media: null,
    entries: before ? [...before.entries] : [],
    dropped: before?.dropped ?? 0,
    interruptions: before?.interruptions ?? 0,
    changed: new Set(),
    history: historyOf(options, before),
    levels: before?.levels ?? new Levels(),
    talk: before?.talk ?? new Talk(),
    beforeSeconds: before?.levels.seconds ?? 0,
    echoes: before?.echoes ?? 0,
    echo: null,
    blocked: false,
    note: "",
    stoppingAt: null,
    endedAt: null,
    trouble: null,
  };
}

/** What was said stays; the instructions are those that are written now. @param {TalkOptions} options @param {Run | null} before */
function historyOf({ instructions }, before) {
  const said = before?.conversation?.messages ?? before?.history ?? [];
  const system = instructions ? [{ role: "system", content: instructions }] : [];
  return [...system, ...said.filter(({ role }) => role !== "system")];
}

/** What is heard of the conversation's own state; "ended" and "lost" are the page's. @param {Run} run */
export function phaseOf({ state, conversation, trouble }) {
  if (state === "running") return conversation?.state ?? "starting";
  if (state === "stopping") return "stopping";
  if (state === "ended") return "ended";
  return trouble?.lost ? "lost" : "failed";
}

/** All there were. @param {Run} run */
export function turnCount({ entries, dropped }) {
  return dropped + entries.length;
}

/** @param {Run} run  one that is over @returns {Ending} */
export function endingOf(run) {
  const { interruptions, state, trouble, note, stoppingAt, endedAt } = run;
  if (trouble) return { tone: "bad", mark: "alert", parts: [troubleText(trouble)] };
  const counts = [
    plural(turnCount(run), "turn"),
    ...(interruptions > 0 ? [plural(interruptions, "interruption")] : []),
  ];
  if (note) return { tone: "warn", mark: "alert", parts: [note, ...counts] };
  const took =
    stoppingAt === null || endedAt === null ? "" : ` in ${formatMs(endedAt - stoppingAt)}`;
  const tone = state === "ended" && took ? "good" : "plain";
  return { tone, mark: "check", parts: [`all streams stopped${took}`, ...counts] };
}

/** @param {import("./chats.js").Trouble} trouble */
function troubleText({ message, lost }) {
  return lost
    ? "The connection was lost. The turns are kept, and Go on begins again with what was said in them."
    : message;
}
