/**
 * What the server says of its machine, models and apps: /v1/status, once a second, for who may read it.
 *
 * @typedef {object} ModelReading
 * @property {string} name
 * @property {string} method
 * @property {string} engine
 * @property {string} state
 * @property {number} slots
 * @property {number} slotsUsed
 * @property {number} active
 * @property {number} queued
 * @property {number} kvBytes
 * @property {number} kvReservedBytes
 * @property {number} loadedBytes
 * @property {number} prefixCacheBytes
 * @property {number} loads
 * @property {number} evictions
 *
 * @typedef {object} AppReading
 * @property {string} name
 * @property {number} connections
 * @property {number} active
 * @property {number} queued
 * @property {number} memoryBytes
 * @property {number} memoryBudgetBytes  0: none of its own
 *
 * @typedef {object} Reading
 * @property {number} at  performance.now() when it was asked for: the figures are no older
 * @property {string} server
 * @property {number} uptimeSeconds
 * @property {{ budgetBytes: number, usedBytes: number, machineAvailableBytes: number, pressure: boolean }} memory
 * @property {{ budget: number, used: number }} cores
 * @property {ModelReading[]} models
 * @property {AppReading[]} apps
 */

import { HISTORY_SECONDS } from "./metrics.js";
import { keepReading, Poller } from "./poller.js";

/**
 * @param {import("./store.js").Store} store @param {() => string | undefined} token
 * @returns {Poller}
 */
export function createStatusReader(store, token) {
  return new Poller(store, token, {
    path: "/v1/status",
    right: "admin",
    take: (text, at) => {
      store.state.readingRefused = null;
      keepReading(store.state.readings, readStatus(JSON.parse(text), at), HISTORY_SECONDS);
      store.changed("machine");
    },
    refused: (status) => {
      store.state.readingRefused = status;
      store.changed("machine");
    },
  });
}

/** Keys as this page spells them; what a newer server adds is kept. @param {unknown} body @param {number} at @returns {Reading} */
export function readStatus(body, at) {
  const reading = /** @type {Reading} */ (camel(body));
  return { ...reading, at };
}

/**
 * Where the memory goes: models' weights, prefixes kept, and what running streams hold.
 * @param {Reading} reading
 */
export function sharesOf({ memory, models }) {
  const parts = models
    .map(({ name, loadedBytes }, index) => ({ name, index, bytes: loadedBytes }))
    .filter(({ bytes }) => bytes > 0);
  const prefixBytes = models.reduce((sum, model) => sum + model.prefixCacheBytes, 0);
  const loadedBytes = parts.reduce((sum, { bytes }) => sum + bytes, 0);
  const streamBytes = Math.max(0, memory.usedBytes - loadedBytes - prefixBytes);
  return { models: parts, prefixBytes, streamBytes };
}

/** @param {unknown} value @returns {unknown} */
function camel(value) {
  if (Array.isArray(value)) return value.map(camel);
  if (typeof value !== "object" || value === null) return value;
  const entries = Object.entries(value).map(([key, inner]) => [
    key.replace(/_([a-z])/g, (_, letter) => letter.toUpperCase()),
    camel(inner),
  ]);
  return Object.fromEntries(entries);
}
