/** What the monitor knows without a page: readings of /v1/status, shares of the budget, words for what is not allowed. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { formatDuration } from "../playground/format.js";
import { deniedText } from "../playground/panels/monitor.js";
import { keepReading, mayRead, Poller } from "../playground/poller.js";
import { readStatus, sharesOf } from "../playground/status-reading.js";
import { appShown, modelShown } from "../playground/status-shown.js";
import { Store } from "../playground/store.js";

const MODEL = {
  name: "m",
  method: "embed",
  engine: "onnx",
  state: "ready",
  slots: 8,
  slots_used: 2,
  active: 2,
  queued: 1,
  kv_bytes: 0,
  kv_reserved_bytes: 0,
  loaded_bytes: 300,
  prefix_cache_bytes: 50,
  loads: 1,
  evictions: 0,
};
const BODY = {
  server: "plait/0.1.0",
  uptime_seconds: 12.5,
  memory: { budget_bytes: 1000, used_bytes: 600, machine_available_bytes: 900, pressure: false },
  cores: { budget: 4, used: 2 },
  models: [
    MODEL,
    { ...MODEL, name: "out", state: "unloaded", loaded_bytes: 0, prefix_cache_bytes: 0 },
  ],
  apps: [
    {
      name: "notes",
      connections: 1,
      active: 2,
      queued: 0,
      memory_bytes: 2048,
      memory_budget_bytes: 4096,
    },
  ],
};

test("a reading is the server's figures in this page's spelling, and when it was asked for", () => {
  const { at, memory, models, apps } = readStatus(BODY, 7);
  assert.deepEqual([at, memory.machineAvailableBytes, models[0].slotsUsed], [7, 900, 2]);
  assert.equal(apps[0].memoryBudgetBytes, 4096);
});

test("the budget goes to models that are loaded, to prefixes, and the rest of it to streams", () => {
  assert.deepEqual(sharesOf(readStatus(BODY, 0)), {
    models: [{ name: "m", index: 0, bytes: 300 }],
    prefixBytes: 50,
    streamBytes: 250,
  });
});

test("figures that do not add up never make a negative share", () => {
  const memory = { ...BODY.memory, used_bytes: 100 };
  assert.equal(sharesOf(readStatus({ ...BODY, memory }, 0)).streamBytes, 0);
});

test("a model is shown with its state, its figures, and what ran while it was there", () => {
  const before = readStatus({ ...BODY, models: [] }, 1_000);
  const now = readStatus(BODY, 3_000);
  const { state, tone, kind, points, top, figures } = modelShown([before, now], now, 0);
  assert.deepEqual([state, tone, kind, top], ["ready", "good", "embeds · onnx", 8]);
  assert.deepEqual(points, [
    { age: 2, value: null },
    { age: 0, value: 2 },
  ]);
  assert.deepEqual(figures.find(([label]) => label === "Slots")?.[1], "2 of 8");
  assert.equal(
    modelShown([now], { ...now, models: [{ ...now.models[0], state: "loading" }] }, 0).tone,
    "busy",
  );
});

test("an app is shown with what it holds of its own budget, where it has one", () => {
  const now = readStatus(BODY, 0);
  const memory = (shown) => shown.figures.find(([label]) => label === "Memory")?.[1];
  assert.equal(memory(appShown([now], now, 0)), "2.0 KB of 4.0 KB");
  const free = readStatus({ ...BODY, apps: [{ ...BODY.apps[0], memory_budget_bytes: 0 }] }, 0);
  assert.equal(memory(appShown([free], free, 0)), "2.0 KB");
});

test("who may not read the status is told what to add, and where", () => {
  assert.equal(deniedText(null, null), "");
  assert.equal(deniedText(["chat", "admin", "metrics"], null), "");
  assert.match(deniedText(["chat", "metrics"], null), /capability admin.*plait\.toml\.$/);
  assert.match(deniedText(["chat"], null), /capability metrics/);
  assert.match(deniedText(["admin"], 401), /token/);
  assert.match(deniedText(["admin"], 403), /capability admin/);
  assert.match(deniedText(["admin"], 500), /HTTP 500/);
});

test("nothing is read before the rights are known, or without the right", () => {
  assert.deepEqual(
    [mayRead(null, "admin"), mayRead(["chat"], "admin"), mayRead(["admin"], "admin")],
    [false, false, true],
  );
  let asked = 0;
  const poller = new Poller(
    new Store({ rights: ["chat"] }, () => {}),
    () => {
      asked += 1;
      return undefined;
    },
    { path: "/v1/status", right: "admin", take: () => {} },
  );
  poller.readSoon();
  assert.equal(asked, 0);
});

test("readings that come in a burst replace each other, and old ones go", () => {
  const history = [];
  for (const at of [0, 100, 900, 1_200, 2_500]) keepReading(history, { at }, 2);
  assert.deepEqual(
    history.map(({ at }) => at),
    [1_200, 2_500],
  );
});

test("a time that has passed is said in two units at most", () => {
  assert.deepEqual([42.9, 61, 18_345, 200_000].map(formatDuration), [
    "42 s",
    "1 min",
    "5 h 5 min",
    "2 d 7 h",
  ]);
});
