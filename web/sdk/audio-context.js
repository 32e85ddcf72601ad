/**
 * What playback needs of the browser's audio: the page's context, its modules, its latency, and the gestures that
 * let it sound. Does not know streams.
 */

/** @import { Runtime, Timer } from "./internal.d.ts" */

import { platform } from "./runtime.js";

const WORKLET_URL = new URL("./playout-worklet.js", import.meta.url);
const REST_AFTER_MS = 10_000;
const GESTURES = ["pointerdown", "pointerup", "keydown", "touchend"];

/** One per page: browsers allow few, and each keeps a device open. @type {AudioContext | null} */
let ownContext = null;
let players = 0;
/** An idle context keeps a device awake; soon after the last player it rests. @type {Timer | null} */
let rest = null;
/** @type {WeakMap<BaseAudioContext, Map<string, Promise<void>>>} */
const modules = new WeakMap();

/** @returns {AudioContext} the page's; made at the first play(), which a click should have caused */
export function pageContext() {
  if (typeof AudioContext === "undefined") {
    throw new TypeError(
      "play() needs a browser's AudioContext. Elsewhere, iterate the stream, or save it with toWav().",
    );
  }
  if (!ownContext || ownContext.state === "closed") {
    ownContext = new AudioContext({ latencyHint: "interactive" });
    players = 0;
  }
  return ownContext;
}

/** Somebody plays in it. @param {AudioContext} context */
export function holdContext(context) {
  if (context !== ownContext) return;
  players += 1;
  rest?.clear();
}

/**
 * @param {AudioContext} context
 * @param {Runtime} runtime
 */
export function releaseContext(context, runtime) {
  if (context !== ownContext) return;
  players -= 1;
  if (players > 0) return;
  rest?.clear();
  rest = runtime.after(REST_AFTER_MS, () => void context.suspend().catch(() => {}));
}

/**
 * Each context loads a module once.
 *
 * @param {BaseAudioContext} context
 * @param {string | URL} [workletUrl]
 * @returns {Promise<void>} rejects with what to do about it
 */
export function loadModule(context, workletUrl = WORKLET_URL) {
  const url = String(workletUrl);
  const known = modules.get(context) ?? new Map();
  modules.set(context, known);
  const module =
    known.get(url) ??
    context.audioWorklet.addModule(url).catch((cause) => {
      known.delete(url);
      throw new TypeError(
        `The player's audio module did not load from ${url}: serve sdk/playout-worklet.js from ` +
          "this page's origin and give its address as play(context, { workletUrl }).",
        { cause },
      );
    });
  known.set(url, module);
  module.catch(() => {}); // a stream without audio never asks
  return module;
}

/**
 * Opens the audio device and loads the player, which the first play() else has to wait for.
 *
 * @param {AudioContext} [context]
 * @param {import("./types.d.ts").PlaybackOptions} [options]
 * @returns {Promise<void>}
 */
export async function preparePlayback(context = pageContext(), options = {}) {
  holdContext(context);
  try {
    await loadModule(context, options.workletUrl);
  } finally {
    releaseContext(context, platform);
  }
}

/** From the audio thread's clock to the ear. @param {AudioContext} context */
export function latencySeconds({ outputLatency, baseLatency }) {
  return outputLatency || baseLatency || 0;
}

/**
 * @param {() => void} listener
 * @param {boolean} listen
 */
export function listenForGestures(listener, listen) {
  for (const type of typeof document === "undefined" ? [] : GESTURES) {
    if (listen) document.addEventListener(type, listener, { capture: true });
    else document.removeEventListener(type, listener, { capture: true });
  }
}
