/**
 * What playback and capture need of the browser's audio: the page's contexts, their modules, their latency, and the
 * gestures that let them run. Does not know streams.
 */

/** @import { Runtime, Timer } from "./internal.d.ts" */

import { platform } from "./runtime.js";

// Written out, so that bundlers find the files.
// Asked for when they are needed: a bundle may have no address of its own, and only who plays or records needs one.
export const PLAYOUT_MODULE = () => new URL("./playout-worklet.js", import.meta.url);
export const CAPTURE_MODULE = () => new URL("./capture-worklet.js", import.meta.url);
export const ECHO_MODULE = () => new URL("./echo-worklet.js", import.meta.url);
const REST_AFTER_MS = 10_000;
const GESTURES = ["pointerdown", "pointerup", "keydown", "touchend"];

/** The highest rate a server takes. */
const MAX_CAPTURE_RATE = 48_000;

/** One per page: browsers allow few, and each keeps a device open. @type {AudioContext | null} */
let ownContext = null;
/** One more where the page's is too fast to be heard. @type {AudioContext | null} */
let ownCaptureContext = null;
/** Who uses our own. An idle context keeps a device awake; soon after the last user it rests. */
/** @type {WeakMap<AudioContext, { users: number, rest: Timer | null }>} */
const holds = new WeakMap();
/** @type {WeakMap<BaseAudioContext, Map<string | (() => URL), Promise<void>>>} */
const modules = new WeakMap();

/** @returns {AudioContext} the page's; made at the first play(), which a click should have caused */
export function pageContext() {
  if (typeof AudioContext === "undefined") {
    throw new TypeError(
      "play() needs a browser's AudioContext. Elsewhere, iterate the stream, or save it with toWav().",
    );
  }
  ownContext = usable(ownContext, {});
  return ownContext;
}

/** @returns {AudioContext} the page's, or where that runs faster than a server hears, one that does not */
export function captureContext() {
  if (typeof AudioContext === "undefined") {
    throw new TypeError(
      "A MediaStream needs a browser's AudioContext. Elsewhere, give the samples as an iterable.",
    );
  }
  const context = pageContext();
  if (context.sampleRate <= MAX_CAPTURE_RATE) return context;
  ownCaptureContext = usable(ownCaptureContext, { sampleRate: MAX_CAPTURE_RATE });
  return ownCaptureContext;
}

/**
 * @param {AudioContext | null} context
 * @param {AudioContextOptions} options
 */
function usable(context, options) {
  if (context && context.state !== "closed") return context;
  const made = new AudioContext({ latencyHint: "interactive", ...options });
  holds.set(made, { users: 0, rest: null });
  return made;
}

/** Somebody plays or listens in it. @param {AudioContext} context */
export function holdContext(context) {
  const hold = holds.get(context);
  if (!hold) return;
  hold.users += 1;
  hold.rest?.clear();
}

/**
 * @param {AudioContext} context
 * @param {Runtime} runtime
 */
export function releaseContext(context, runtime) {
  const hold = holds.get(context);
  if (!hold) return;
  hold.users -= 1;
  if (hold.users > 0) return;
  hold.rest?.clear();
  hold.rest = runtime.after(REST_AFTER_MS, () => void context.suspend().catch(() => {}));
}

/**
 * Each context loads a module once.
 *
 * @param {BaseAudioContext} context
 * @param {string | URL | (() => URL)} module PLAYOUT_MODULE, CAPTURE_MODULE or ECHO_MODULE, or where the page has it
 * @returns {Promise<void>} rejects with what to do about it
 */
export function loadModule(context, module) {
  const known = modules.get(context) ?? new Map();
  modules.set(context, known);
  const key = typeof module === "function" ? module : String(module);
  const loading =
    known.get(key) ??
    addModule(context, module).catch((cause) => {
      known.delete(key);
      throw cause;
    });
  known.set(key, loading);
  loading.catch(() => {}); // a stream without audio never asks
  return loading;
}

/**
 * @param {BaseAudioContext} context
 * @param {string | URL | (() => URL)} module
 */
async function addModule(context, module) {
  let url = "this bundle";
  try {
    url = String(typeof module === "function" ? module() : module);
    await context.audioWorklet.addModule(url);
  } catch (cause) {
    throw new TypeError(
      `The audio module did not load from ${url}: serve the SDK's playout-worklet.js, capture-worklet.js and, for a ` +
        "conversation, echo-worklet.js from this page's origin and give their address: play(context, { workletUrl }), " +
        "transcribe.live({ workletUrl }), converse(client, { playoutWorkletUrl, captureWorkletUrl, echoWorkletUrl }).",
      { cause },
    );
  }
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
    await loadModule(context, options.workletUrl ?? PLAYOUT_MODULE);
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
