"use client";

/**
 * The hooks: each is a store of its own, read as React reads stores, that lives as long as the component.
 */

/** @import { Lease } from "./lease.js" */
/** @import { Live, Speech, SpeechOptions, StreamedChat, StreamedChatOptions, Transcription, TranscriptionOptions } from "./index.d.ts" */

import { useEffect, useState, useSyncExternalStore } from "react";
import { ChatStore } from "./chat-store.js";
import { useLease } from "./provider.js";
import { SpeechStore } from "./speech-store.js";
import { TranscriptionStore } from "./transcription-store.js";

/**
 * @template T, O, C
 * @typedef {Live<T> & { configure(lease: Lease<C>, options: O): void, enter(lease: Lease<C>): () => void }} LivingStore
 */

/**
 * @param {StreamedChatOptions} [options]
 * @returns {StreamedChat}
 */
export function useStreamedChat(options = {}) {
  const lease = useLease(options.client);
  const [store] = useState(() => new ChatStore(lease, options));
  return useStore(store, lease, options);
}

/**
 * @param {TranscriptionOptions} [options]
 * @returns {Transcription}
 */
export function useTranscription(options = {}) {
  const lease = useLease(options.client);
  const [store] = useState(() => new TranscriptionStore(lease, options));
  return useStore(store, lease, options);
}

/**
 * @param {SpeechOptions} [options]
 * @returns {Speech}
 */
export function useSpeech(options = {}) {
  const lease = useLease(options.client);
  const [store] = useState(() => new SpeechStore(lease, options));
  return useStore(store, lease, options);
}

/**
 * @template T
 * @param {Live<T>} live
 * @returns {T}
 */
export function useLive(live) {
  return useSyncExternalStore(live.subscribe, live.get, live.get);
}

/**
 * @template T, O, C
 * @param {LivingStore<T, O, C>} store
 * @param {Lease<C>} lease
 * @param {O} options
 * @returns {T}
 */
function useStore(store, lease, options) {
  useEffect(() => store.configure(lease, options));
  // With another connection what runs on the old one has nobody left: it is stopped, like on leaving.
  useEffect(() => store.enter(lease), [store, lease]);
  return useLive(store);
}
