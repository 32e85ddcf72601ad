/** How a model and an app of a reading are shown: words and figures. Pure. */

import { formatBytes, formatCount, streamHue } from "./format.js";

/** @import { Shown } from "./status-card.js" */
/** @import { Reading } from "./status-reading.js" */

/** @type {Record<string, Shown["tone"]>} */
const TONES = { ready: "good", unloaded: "plain", stalled: "bad", failed: "bad", dead: "bad" };
const METHODS = /** @type {Record<string, string>} */ ({
  chat: "chat",
  transcribe: "listens",
  synthesize: "speaks",
  embed: "embeds",
});

/** @param {Reading[]} history @param {Reading} reading @param {number} index @returns {Shown} */
export function modelShown(history, reading, index) {
  const model = reading.models[index];
  if (!model) throw new RangeError(`no model ${index}`);
  const { name, method, engine, state, slots, slotsUsed } = model;
  return {
    title: name,
    kind: `${METHODS[method] ?? method} · ${engine}`,
    state,
    tone: TONES[state] ?? "busy",
    hue: streamHue(index + 1),
    figures: [
      ["Active", formatCount(model.active), "Streams running"],
      ["Queued", formatCount(model.queued), "Streams waiting for a slot"],
      ["Slots", `${formatCount(slotsUsed)} of ${formatCount(slots)}`, "Places in the engine"],
      ["Loads", formatCount(model.loads), "How often it was loaded since the server started"],
      ["Weights", formatBytes(model.loadedBytes), "What being loaded takes of the budget"],
      [
        "KV cache",
        formatBytes(model.kvBytes),
        `${formatBytes(model.kvReservedBytes)} reserved for streams`,
      ],
      [
        "Prefixes",
        formatBytes(model.prefixCacheBytes),
        "Kept of chats that are over; given up before anybody is refused",
      ],
      ["Evictions", formatCount(model.evictions), "How often it made room for another model"],
    ],
    points: history.map((one) => ({
      age: (reading.at - one.at) / 1000,
      value: one.models.find((other) => other.name === name)?.active ?? null,
    })),
    top: Math.max(1, slots),
  };
}

/** @param {Reading[]} history @param {Reading} reading @param {number} index @returns {Shown} */
export function appShown(history, reading, index) {
  const app = reading.apps[index];
  if (!app) throw new RangeError(`no app ${index}`);
  const { name, memoryBytes, memoryBudgetBytes } = app;
  const points = history.map((one) => ({
    age: (reading.at - one.at) / 1000,
    value: one.apps.find((other) => other.name === name)?.active ?? null,
  }));
  const of = memoryBudgetBytes > 0 ? ` of ${formatBytes(memoryBudgetBytes)}` : "";
  return {
    title: name,
    kind: "",
    state: app.connections > 0 ? "connected" : "away",
    tone: app.connections > 0 ? "good" : "plain",
    hue: streamHue(index + 1),
    figures: [
      ["Connections", formatCount(app.connections), "Open now"],
      ["Active", formatCount(app.active), "Streams running"],
      ["Queued", formatCount(app.queued), "Streams waiting for a slot"],
      ["Memory", `${formatBytes(memoryBytes)}${of}`, "Held by its streams"],
    ],
    points,
    top: Math.max(1, ...points.map(({ value }) => value ?? 0)),
  };
}
