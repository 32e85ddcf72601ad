/**
 * A real `plait serve` with scripted engines, in a process of its own: what a test asks for decides what it does (see
 * server/plait/engines/scripted/script.py). What it prints is kept and shown when it does not start.
 */

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { setTimeout as delay } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { WebSocket } from "ws";
import { connect } from "../../sdk/index.js";

const METHODS = ["chat", "speech", "transcribe", "embed"];
const START_MS = 150_000; // on a machine that does much else
const PATIENCE_MS = 30_000;
/** Outside of what systems hand out for port 0, so nobody else gets it while a server is down. */
const FIRST_PORT = 20_000;
const PORTS = 9_000;
const HELD =
  /^plait_(?:streams_active|streams_queued|slots_used|engine_slots_used|kv_bytes|kv_reserved_bytes)\b/;

/** It must not outlive its test, however that dies: then its stdin ends. */
const LEASHED = `
import os, runpy, signal, threading
def watch():
    os.read(0, 1)
    os.kill(os.getpid(), signal.SIGKILL)
threading.Thread(target=watch, daemon=True).start()
runpy.run_module("plait", run_name="__main__", alter_sys=True)
`;

/** Of everything a server prints. @param {{ port?: number, config?: string }} [options] */
export async function serve({ port = 0, config = "" } = {}) {
  const home = await mkdtemp(join(tmpdir(), "plait-live-"));
  await writeFile(join(home, "plait.toml"), config);
  const engines = METHODS.flatMap((method) => [`--${method}-engine`, "scripted"]);
  const child = spawn(
    process.env.PLAIT_TEST_PYTHON ?? "python3",
    ["-c", LEASHED, "serve", "--no-open", "--port", String(port), ...engines],
    {
      cwd: home,
      env: {
        PATH: process.env.PATH,
        HOME: process.env.HOME,
        PLAIT_HOME: home,
        PYTHONPATH: fileURLToPath(new URL("../../../server", import.meta.url)),
      },
      stdio: "pipe",
    },
  );
  const server = new LiveServer(child, home);
  await server.ready();
  return server;
}

/** A port that stays free while nobody listens on it. */
export async function freePort() {
  for (;;) {
    const port = FIRST_PORT + Math.floor(Math.random() * PORTS);
    const probe = createServer().listen(port, "127.0.0.1");
    const free = await once(probe, "listening").then(
      () => true,
      () => false,
    );
    if (!free) continue;
    probe.close();
    await once(probe, "close");
    return port;
  }
}

class LiveServer {
  #child;
  #home;
  #lines = [];
  #ended = false;
  #clients = [];
  url = "";
  /** Shown for the gauges, where a server asks for a token. */
  headers = {};

  constructor(child, home) {
    this.#child = child;
    this.#home = home;
    this.exited = new Promise((resolve) => {
      child.once("close", resolve);
      child.once("error", (error) => {
        this.#lines.push(String(error));
        resolve(null);
      });
    });
    void this.exited.then(() => {
      this.#ended = true;
    });
  }

  get output() {
    return this.#lines.join("\n");
  }

  /** Resolves when it has said its address, and every engine that it is ready. */
  async ready() {
    let begin;
    const started = new Promise((resolve) => {
      begin = resolve;
    });
    let engines = 0;
    for (const stream of [this.#child.stdout, this.#child.stderr]) {
      createInterface({ input: stream }).on("line", (line) => {
        this.#lines.push(line);
        this.url ||= / at (http:\/\/[^ ]*:\d+)/.exec(line)?.[1] ?? "";
        if (line.includes("worker.ready")) engines += 1;
        if (this.url && engines >= METHODS.length) begin();
      });
    }
    const patience = new AbortController();
    const late = delay(START_MS, "was not ready in time", { signal: patience.signal });
    const outcome = await Promise.race([
      started,
      this.exited.then(() => "ended before it was ready"),
      late.catch(() => {}),
    ]);
    patience.abort();
    if (!outcome) return;
    this.#child.kill("SIGKILL");
    throw new Error(`plait serve ${outcome}. It said:\n${this.output}`);
  }

  /** A client that is closed with the server. */
  client(options = {}) {
    const client = connect(this.url, { WebSocket, ...options });
    this.#clients.push(client);
    return client;
  }

  /** By name and labels, as `/metrics` writes them. */
  async metrics() {
    const response = await fetch(`${this.url}/metrics`, { headers: this.headers });
    const lines = (await response.text()).split("\n").filter((line) => /^plait_/.test(line));
    return lines.map((line) => {
      const at = line.lastIndexOf(" ");
      return { name: line.slice(0, at), value: Number(line.slice(at + 1)) };
    });
  }

  /** How many streams of a method have ended like that: completed, cancelled, errored or rejected. */
  async ended(outcome, method) {
    const labels = `plait_streams_total{method="${method}",outcome="${outcome}"}`;
    return (await this.metrics()).find(({ name }) => name === labels).value;
  }

  /** Until so many have. */
  async endedAre(count, outcome, method) {
    await this.#until(async () => {
      const ended = await this.ended(outcome, method);
      return ended === count ? null : `${ended} of ${count} ${method} streams are ${outcome}`;
    });
  }

  /** Until no stream, slot or KV byte is held, by the gateway's books and the engines'. */
  async idle() {
    await this.#until(async () => {
      const held = (await this.metrics()).filter(({ name, value }) => HELD.test(name) && value > 0);
      return held.length === 0 ? null : `still held: ${JSON.stringify(held)}`;
    });
  }

  /** What a server counts can only be asked for, again and again; `missing` says what is not so yet. */
  async #until(missing) {
    const deadline = performance.now() + PATIENCE_MS;
    for (let why = await missing(); why; why = await missing()) {
      if (performance.now() > deadline) throw new Error(`${why}\n${this.output.slice(-3000)}`);
      await delay(20);
    }
  }

  /** As if the machine had lost power. */
  async kill() {
    this.#child.kill("SIGKILL");
    await this.exited;
  }

  async stop() {
    await Promise.all(this.#clients.map((client) => client.close()));
    if (!this.#ended) await this.kill();
    await rm(this.#home, { recursive: true, force: true });
  }
}

/**
 * What the server said of the stops of this file. A machine that stalls confirms one or another after more than the
 * 100 ms it is waited for; the terminal says so then, and most of them are in time all the same.
 */
export class Proofs {
  #released = [];

  /** @param {{ by: string | null, released: boolean, stopMs: number | null }} end */
  add({ by, released, stopMs }) {
    assert.deepEqual([by, typeof released], ["client", "boolean"]);
    assert.equal(stopMs === null, !released);
    this.#released.push(released);
  }

  assertMostReleased() {
    const released = this.#released.filter(Boolean).length;
    assert.ok(released > this.#released.length / 2, `${released} of ${this.#released.length}`);
  }
}

const RATE = 16_000;
const WORDS = ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"];

/** Audio in which the scripted ears hear these words: one tone for each, 0.2 s with its pause. */
export function recite(words) {
  const pieces = words.split(" ").map((word) => {
    const hertz = 100 * (WORDS.indexOf(word) + 1);
    return Int16Array.from({ length: 0.2 * RATE }, (_, i) =>
      i < 0.15 * RATE ? 16_000 * Math.sin((2 * Math.PI * hertz * i) / RATE) : 0,
    );
  });
  return { samples: pieces, sampleRate: RATE };
}

/** A chat that does what the script says. */
export const chat = (script) => ({ messages: [{ role: "user", content: script }] });
