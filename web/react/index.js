"use client";

/**
 * The public surface of `plait/react`; index.d.ts documents it.
 */

export { useLive, useSpeech, useStreamedChat, useTranscription } from "./hooks.js";
export { PlaitProvider } from "./provider.js";
