/**
 * The server's own counters: /metrics, once a second and right after a stream starts or ends.
 *
 * @typedef {{ sum: number, count: number }} Mean  running totals; two of them give a mean between
 *
 * @typedef {object} Sample
 * @property {number} at  performance.now() when it was asked for: the figures are no older
 * @property {number} active
 * @property {number} queued
 * @property {number} slotsUsed
 * @property {number} slots
 * @property {number} kvBytes
 * @property {string} kvKind  "reusable": preallocated and free for the next stream; "freed": returned
 * @property {number} wastedTokens
 * @property {Record<string, number>} audioSeconds  by model: of speech computed, or listened to, since start
 * @property {Record<string, number>} wastedAudioSeconds
 * @property {Mean} lag  seconds the event loop ran late
 * @property {number} connections
 * @property {number} busySeconds
 * @property {number} deadSeconds
 * @property {Mean} release  seconds from cancel to confirmed release
 * @property {Mean} wait  seconds in the queue
 * @property {Record<string, number>} outcomes  streams ended since start, by outcome
 */

import { keepReading, Poller } from "./poller.js";

/** How far back the history goes. */
export const HISTORY_SECONDS = 120;

/**
 * Prometheus text to `name → [{labels, value}]`.
 * @param {string} text
 */
export function parseMetrics(text) {
  /** @type {Map<string, { labels: Record<string, string>, value: number }[]>} */
  const families = new Map();
  for (const line of text.split("\n")) {
    const match = /^([a-zA-Z_:][\w:]*)(?:\{(.*)\})?\s+(\S+)/.exec(line);
    if (!match) continue;
    const [, name = "", inside = "", value = ""] = match;
    /** @type {Record<string, string>} */
    const labels = {};
    for (const [, key = "", text = ""] of inside.matchAll(/(\w+)="((?:[^"\\]|\\.)*)"/g))
      labels[key] = text;
    const series = families.get(name) ?? [];
    series.push({ labels, value: Number(value) });
    families.set(name, series);
  }
  return families;
}

/** @param {string} text @param {number} at @returns {Sample} */
export function readSample(text, at) {
  const families = parseMetrics(text);
  const sum = (/** @type {string} */ name) =>
    (families.get(name) ?? []).reduce((total, { value }) => total + value, 0);
  const pair = (/** @type {string} */ name) => ({
    sum: sum(`${name}_sum`),
    count: sum(`${name}_count`),
  });
  /** @returns {Record<string, number>} */
  const by = (/** @type {string} */ label, /** @type {string} */ name) => {
    /** @type {Record<string, number>} */
    const sums = {};
    for (const { labels, value } of families.get(name) ?? []) {
      const key = labels[label] ?? "other";
      sums[key] = (sums[key] ?? 0) + value;
    }
    return sums;
  };
  return {
    at,
    active: sum("plait_streams_active"),
    queued: sum("plait_streams_queued"),
    slotsUsed: sum("plait_slots_used"),
    slots: sum("plait_slots"),
    kvBytes: sum("plait_kv_bytes"),
    kvKind: families.get("plait_kv_info")?.[0]?.labels.kind ?? "",
    wastedTokens: sum("plait_wasted_tokens_total"),
    audioSeconds: by("model", "plait_audio_seconds_total"),
    wastedAudioSeconds: by("model", "plait_wasted_audio_seconds_total"),
    lag: pair("plait_loop_lag_seconds"),
    connections: sum("plait_connections"),
    busySeconds: sum("plait_engine_busy_seconds_total"),
    deadSeconds: sum("plait_engine_dead_seconds_total"),
    release: pair("plait_cancel_release_seconds"),
    wait: pair("plait_queue_wait_seconds"),
    outcomes: by("outcome", "plait_streams_total"),
  };
}

/**
 * Mean of what was observed between two readings, in milliseconds; null when nothing was (or the
 * server restarted in between).
 * @param {Mean} now @param {Mean | undefined} before
 */
export function meanMs(now, before) {
  if (!before || now.count <= before.count) return null;
  return ((now.sum - before.sum) / (now.count - before.count)) * 1000;
}

/**
 * Mean of all that was observed over a history, in milliseconds; null when nothing was. A restart of
 * the server in between counts from there.
 * @param {Sample[]} history @param {(sample: Sample) => Mean} pick
 */
export function meanOverMs(history, pick) {
  let sum = 0;
  let count = 0;
  for (const [index, sample] of history.entries()) {
    const before = history[index - 1];
    if (!before || pick(sample).count < pick(before).count) continue;
    sum += pick(sample).sum - pick(before).sum;
    count += pick(sample).count - pick(before).count;
  }
  return count > 0 ? (sum / count) * 1000 : null;
}

/**
 * @param {import("./store.js").Store} store @param {() => string | undefined} token
 * @returns {Poller}
 */
export function createMetricsReader(store, token) {
  return new Poller(store, token, {
    path: "/metrics",
    right: "metrics",
    take: (text, at) => {
      const sample = readSample(text, at);
      store.state.sample = sample;
      keepReading(store.state.history, sample, HISTORY_SECONDS);
      store.changed("metrics");
    },
  });
}
