/** What the package costs a page, and that it works bundled: alone, and twice beside itself. */

import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { test } from "node:test";
import { gzipSync } from "node:zlib";
import { transformSync } from "esbuild";
import { bundled } from "./support/bundle.js";

const KILOBYTE = 1024;
/** Modules that only sound, text to be embedded or a conversation need. */
const MEDIA =
  /audio|capture|playback|playout|speech|transcri|listening|embed|wav|sample|voices|conversation|echo/;
const MINIMAL = 'export { connect } from "plait/chat";';

class Nowhere {
  constructor() {
    throw new TypeError("no network here");
  }
}

const gzipped = (text) => gzipSync(text, { level: 9 }).length;
const importBundle = ({ text }) =>
  import(`data:text/javascript;base64,${Buffer.from(text).toString("base64")}`);

test("the minimal import is at most 8 KB gzipped, as an application ships it", async (t) => {
  const { text } = await bundled(MINIMAL, { minify: true });
  const bytes = gzipped(text);
  t.diagnostic(`connect() of plait/chat: ${bytes} bytes, minified and gzipped`);
  assert.ok(bytes <= 8 * KILOBYTE, `${bytes} bytes`);
});

test("its modules without comments and white space, nothing renamed, are at most 10 KB", async (t) => {
  const { modules } = await bundled(MINIMAL);
  const code = modules.map((path) => readFileSync(new URL(`../${path}`, import.meta.url), "utf8"));
  const stripped = code.map((text) => transformSync(text, { minifyWhitespace: true }).code);
  const bytes = gzipped(stripped.join(""));
  t.diagnostic(`${modules.length} modules: ${bytes} bytes gzipped`);
  assert.ok(bytes <= 10 * KILOBYTE, `${bytes} bytes`);
});

for (const names of ["connect, collect, PlaitError"]) {
  test(`plait/chat has no module for sound or embeddings: ${names}`, async () => {
    const { modules } = await bundled(`export { ${names} } from "plait/chat";`);
    assert.deepEqual(
      modules.filter((path) => MEDIA.test(path)),
      [],
    );
  });
}

for (const name of ["teeStream", "collect", "PlaitError", "describeVoice", "wavOf"]) {
  test(`who imports only ${name} of plait gets neither a connection nor sound`, async (t) => {
    const { modules, text } = await bundled(`export { ${name} } from "plait";`, { minify: true });
    t.diagnostic(`${name}: ${gzipped(text)} bytes of ${modules.join(", ")}`);
    const unwanted = /connection|link|client|capture|playback|playout|transcri|embed/;
    assert.deepEqual(
      modules.filter((path) => unwanted.test(path)),
      [],
    );
  });
}

test("two copies on one page know each other's errors and streams", async () => {
  const code = 'export * from "plait";';
  const [ours, theirs] = [
    await importBundle(await bundled(code, { minify: true })),
    await importBundle(await bundled(code)),
  ];
  const client = theirs.connect("ws://nowhere.test", { WebSocket: Nowhere, reconnect: false });
  const stream = client.llm.chatStream({ messages: [] });
  const [error] = await Promise.all(
    ours.teeStream(stream).map((branch) => branch.collect().catch((reason) => reason)),
  );
  await client.close();
  assert.equal(error instanceof ours.PlaitError, false);
  assert.ok(ours.PlaitError.isInstance(error) && ours.StreamError.isInstance(error));
  assert.deepEqual([error.name, error.code], ["StreamError", "connection_failed"]);
  assert.equal(ours.InvalidRequestError.isInstance(error), false);
});

test("a classic script, which has no address of its own, loads and connects", async () => {
  const { text } = await bundled('export { connect, StreamError } from "plait";', {
    format: "iife",
    globalName: "plait",
    logLevel: "silent", // it says that import.meta is empty there
  });
  const plait = new Function(`${text}; return plait;`)();
  const client = plait.connect("ws://nowhere.test", { WebSocket: Nowhere, reconnect: false });
  await assert.rejects(client.models(), plait.StreamError);
});

test("nothing in the package is Node's own, so that Deno, Bun and browsers can load it", async () => {
  const files = ["sdk", "react", "ai"].flatMap((folder) =>
    readdirSync(new URL(`../${folder}`, import.meta.url), { recursive: true })
      .filter((name) => name.endsWith(".js"))
      .map((name) => `${folder}/${name}`),
  );
  assert.ok(files.length > 40);
  for (const file of files) {
    const text = readFileSync(new URL(`../${file}`, import.meta.url), "utf8");
    const { code } = transformSync(text, { minifyWhitespace: true });
    const imported = [...code.matchAll(/\b(?:from|import)\s*\(?"([^"]+)"/g)].map(
      ([, name]) => name,
    );
    const foreign = imported.filter((name) => !/^\.\.?\//.test(name));
    assert.deepEqual(
      foreign.filter((name) => name !== "react"),
      [],
      file,
    );
    if (foreign.length > 0) assert.match(file, /^react\//);
    const globals = /(?<![.#\w])(?:process\.|Buffer\.|require\(|__dirname|__filename)/.exec(code);
    assert.equal(globals?.[0], undefined, file);
  }
});
