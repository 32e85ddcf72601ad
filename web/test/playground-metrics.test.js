/** The playground's reading of /metrics. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { meanMs, meanOverMs, parseMetrics, readSample } from "../playground/metrics.js";

test("labels may hold spaces, braces and escaped quotes", () => {
  const families = parseMetrics('# HELP x y\nplait_slots{model="a {b} \\"c\\"",kind="k"} 4.0\n');

  assert.deepEqual(families.get("plait_slots"), [
    { labels: { model: 'a {b} \\"c\\"', kind: "k" }, value: 4 },
  ]);
});

test("a sample sums over labels and keeps outcomes apart", () => {
  const text = [
    'plait_streams_active{method="chat"} 2',
    'plait_streams_active{method="embed"} 1',
    'plait_streams_total{method="chat",outcome="completed"} 5',
    'plait_streams_total{method="embed",outcome="completed"} 1',
    'plait_streams_total{method="chat",outcome="cancelled"} 3',
    'plait_kv_info{kind="reusable",model="m"} 1',
  ].join("\n");

  const sample = readSample(text, 7);

  assert.equal(sample.active, 3);
  assert.deepEqual(sample.outcomes, { completed: 6, cancelled: 3 });
  assert.equal(sample.kvKind, "reusable");
  assert.equal(sample.queued, 0);
});

test("a mean needs something observed between two readings", () => {
  assert.equal(meanMs({ sum: 0.5, count: 3 }, { sum: 0.3, count: 1 }), 100);
  assert.equal(meanMs({ sum: 0.5, count: 3 }, { sum: 0.5, count: 3 }), null);
  assert.equal(meanMs({ sum: 0, count: 0 }, { sum: 0.5, count: 3 }), null, "a restarted server");
  assert.equal(meanMs({ sum: 0.5, count: 3 }, undefined), null);
});

test("a mean over a history is of all that was observed, and a restart loses only its own step", () => {
  const totals = [
    ...[
      { sum: 9, count: 90 },
      { sum: 9.2, count: 92 },
      { sum: 9.2, count: 92 },
    ],
    ...[
      { sum: 0, count: 0 },
      { sum: 0.7, count: 1 },
    ],
  ];

  assert.equal(Math.round(meanOverMs(/** @type {any} */ (totals), (mean) => mean) ?? 0), 300);
  assert.equal(
    meanOverMs(/** @type {any} */ (totals.slice(0, 1)), (mean) => mean),
    null,
  );
});
