/**
 * The AI SDK's messages as the chat method takes them. A step of an assistant's message is what the model wrote, with
 * its calls, and then the tools' answers. What the model is not told: reasoning, sources, data parts, and calls that
 * nobody answered. Pure; knows neither streams nor React.
 */

/** @import { ChatMessage, ToolCall } from "../sdk/types.d.ts" */
/** @import { Message, MessagePart } from "./internal.d.ts" */

import { InvalidRequestError } from "../sdk/errors.js";

/**
 * @param {readonly Message[]} messages
 * @returns {ChatMessage[]}
 */
export function chatMessages(messages) {
  return messages.flatMap((message) => {
    refuseFiles(message);
    if (message.role === "assistant") return stepsOf(message.parts).flatMap(stepMessages);
    return { role: message.role, content: textOf(message.parts) };
  });
}

/** @param {Message} message */
function refuseFiles({ role, parts }) {
  const file = parts.find(({ type }) => type === "file");
  // An assistant's own file came from elsewhere; a user who attached one would think it was read.
  if (!file || role === "assistant") return;
  const text = `chat reads text only, and a ${role} message has a file (${file.mediaType})`;
  throw new InvalidRequestError(text, { param: "messages" });
}

/** @param {readonly MessagePart[]} parts */
function stepsOf(parts) {
  /** @type {MessagePart[][]} */
  const steps = [[]];
  for (const part of parts) {
    if (part.type === "step-start") steps.push([]);
    else steps.at(-1)?.push(part);
  }
  return steps;
}

/**
 * @param {readonly MessagePart[]} parts
 * @returns {ChatMessage[]}
 */
function stepMessages(parts) {
  const content = textOf(parts) || null;
  const answered = parts.flatMap((part) => {
    const answer = answerOf(part);
    return answer === undefined ? [] : [{ part, answer }];
  });
  if (content === null && answered.length === 0) return [];
  /** @type {ChatMessage} */
  const written = { role: "assistant", content };
  if (answered.length > 0) written.tool_calls = answered.map(({ part }) => callOf(part));
  const answers = answered.map(({ part, answer }) => ({
    role: "tool",
    tool_call_id: part.toolCallId,
    content: answer,
  }));
  return [written, ...answers];
}

/** @param {readonly MessagePart[]} parts */
function textOf(parts) {
  return parts.map((part) => (part.type === "text" ? part.text : "")).join("");
}

/**
 * @param {MessagePart} part
 * @returns {ToolCall}
 */
function callOf({ type, toolName, toolCallId = "", input }) {
  const name = type === "dynamic-tool" ? (toolName ?? "") : type.slice("tool-".length);
  const text = JSON.stringify(input ?? {});
  return { id: toolCallId, type: "function", function: { name, arguments: text } };
}

/**
 * @param {MessagePart} part
 * @returns {string | undefined} undefined: no call, or none that was answered
 */
function answerOf({ type, state, output, preliminary, errorText, approval }) {
  if (type !== "dynamic-tool" && !type.startsWith("tool-")) return undefined;
  if (state === "output-error") return errorText ?? "The tool failed.";
  if (state === "output-denied") return approval?.reason ?? "The user did not allow this call.";
  if (state !== "output-available" || preliminary) return undefined;
  return typeof output === "string" ? output : JSON.stringify(output ?? null);
}
