/** The package as npm would publish it: what is in it, and that an application can be written against it. */

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdir, mkdtemp, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

const execute = promisify(execFile);
const web = fileURLToPath(new URL("..", import.meta.url));
const tsc = join(web, "node_modules/typescript/bin/tsc");
const manifest = JSON.parse(await readFile(join(web, "package.json"), "utf8"));
const ENTRIES = ["plait", "plait/chat", "plait/conversation", "plait/react", "plait/ai"];

/** A project that has installed the package; its other packages are this one's. */
let project = "";
/** Paths in the tarball. @type {string[]} */
let packed = [];

before(async () => {
  project = await mkdtemp(join(tmpdir(), "plait-package-"));
  const { stdout } = await execute(
    "npm",
    ["pack", "--json", "--no-update-notifier", "--pack-destination", project],
    {
      cwd: web,
    },
  );
  const [{ filename, files }] = Object.values(JSON.parse(stdout));
  packed = files.map(({ path }) => path);
  const installed = join(project, "node_modules/plait");
  await mkdir(installed, { recursive: true });
  await execute("tar", ["-xzf", join(project, filename), "-C", installed, "--strip-components=1"]);
  for (const name of ["@ai-sdk", "@types", "ai", "react"]) {
    await symlink(join(web, "node_modules", name), join(project, "node_modules", name));
  }
});
after(() => rm(project, { recursive: true, force: true }));

test("every entry's code and types are in the tarball, and so are its license and its page", () => {
  const targets = Object.values(manifest.exports).flatMap((target) =>
    typeof target === "string" ? [target] : Object.values(target),
  );
  for (const target of [...targets, manifest.types, "./LICENSE", "./README.md"]) {
    const pattern = new RegExp(`^${target.slice(2).replaceAll(".", "\\.").replace("*", ".+")}$`);
    assert.ok(
      packed.some((path) => pattern.test(path)),
      `${target} is not packed`,
    );
  }
  assert.deepEqual(Object.keys(manifest.exports).slice(0, 5), [
    ".",
    ...ENTRIES.slice(1).map((name) => name.replace("plait", ".")),
  ]);
});

test("nothing else is: no test, no playground, no example", () => {
  const ours = /^(?:(?:sdk|react|ai)\/[\w-]+(?:\.d)?\.(?:js|ts)|package\.json|README\.md|LICENSE)$/;
  assert.deepEqual(
    packed.filter((path) => !ours.test(path)),
    [],
  );
  assert.deepEqual(
    packed.filter((path) => /test/.test(path)),
    [],
  );
});

test("the license is the repository's", async () => {
  const [here, above] = await Promise.all(
    [join(web, "LICENSE"), join(web, "../LICENSE")].map((path) => readFile(path, "utf8")),
  );
  assert.equal(here, above);
});

test("no runtime dependency; React and the AI SDK are optional peers", () => {
  assert.equal(manifest.dependencies, undefined);
  for (const peer of Object.keys(manifest.peerDependencies)) {
    assert.equal(manifest.peerDependenciesMeta[peer].optional, true);
  }
});

test("every entry loads in Node by the package's own name, without globals", async () => {
  const code = `const names = {};
    for (const entry of ${JSON.stringify(ENTRIES)}) names[entry] = Object.keys(await import(entry));
    console.log(JSON.stringify(names));`;
  const { stdout } = await execute(process.execPath, ["--input-type=module", "-e", code], {
    cwd: project,
  });
  const names = JSON.parse(stdout);
  assert.ok(names.plait.includes("teeStream") && names.plait.includes("models"));
  assert.deepEqual(names["plait/chat"].sort(), [
    "CapabilityDeniedError",
    "InvalidRequestError",
    "PlaitError",
    "ResourceNotAvailableError",
    "StreamCancelledError",
    "StreamError",
    "collect",
    "connect",
  ]);
});

const CONSUMER = `
import { collect, connect, embed, llm, models, PlaitError, teeStream, transcribe, tts } from "plait";
import type { ChatDelta, Stream } from "plait";
import { connect as connectChat, StreamError } from "plait/chat";
import { converse, MICROPHONE } from "plait/conversation";

const client = connect("ws://127.0.0.1:8760", { reconnect: { maxDelayMs: 1000 } });
const stream: Stream<ChatDelta> = client.llm.chatStream({
  messages: [{ role: "user", content: "hi" }],
  signal: AbortSignal.timeout(1000),
});
const [shown, spoken] = teeStream(stream);
const proof = await client.tts.synthesize({ text: spoken }).cancel();
const stopMs: number | null = proof.stopMs;
const deltas: ChatDelta[] = await collect(shown);
const vectors: Float32Array[] = await embed.create({ texts: ["a"] });
const listed: { id: string; method: string }[] = await models();
const text: string = await connectChat().llm.chat({ messages: [] });
// @ts-expect-error plait/chat does not speak
connectChat().tts;
// @ts-expect-error a controller is not its signal
llm.chatStream({ messages: [], signal: new AbortController() });
const constraints: MediaTrackConstraints = MICROPHONE;
export function explain(error: unknown): string | undefined {
  if (StreamError.isInstance(error)) return error.code;
  return PlaitError.isInstance(error) && error.retryable ? error.message : undefined;
}
export const all = [stopMs, deltas, vectors, listed, text, constraints, converse, transcribe, tts];
`;
const REACT_CONSUMER = `
import { PlaitChatTransport } from "plait/ai";
import { useStreamedChat } from "plait/react";

export const transport = new PlaitChatTransport({ system: "Be brief." });
export function text(): string {
  return useStreamedChat({ maxTokens: 100 }).text;
}
`;

/** What its compiler says to an application that has installed the package. */
async function compile(name, files, options) {
  const folder = join(project, name);
  await mkdir(folder);
  await writeFile(join(folder, "package.json"), '{ "type": "module" }');
  for (const [file, code] of Object.entries(files)) await writeFile(join(folder, file), code);
  const compilerOptions = {
    ...{ strict: true, noEmit: true, target: "ES2022", lib: ["ES2022", "DOM", "DOM.Iterable"] },
    ...{ noUncheckedIndexedAccess: true, exactOptionalPropertyTypes: true, types: [], ...options },
  };
  await writeFile(join(folder, "tsconfig.json"), JSON.stringify({ compilerOptions }));
  return execute(process.execPath, [tsc, "-p", folder]).then(
    () => "",
    ({ stdout, stderr }) => stdout + stderr,
  );
}

for (const [module, moduleResolution] of [
  ["NodeNext", "NodeNext"],
  ["ESNext", "Bundler"],
]) {
  test(`an application type-checks against the packed types: ${moduleResolution}`, async () => {
    const options = { module, moduleResolution };
    const said = await compile(`app-${moduleResolution}`, { "app.ts": CONSUMER }, options);
    assert.equal(said, "");
  });

  test(`so does one with React and the AI SDK: ${moduleResolution}`, async () => {
    const options = { module, moduleResolution, skipLibCheck: true };
    const said = await compile(`react-${moduleResolution}`, { "app.ts": REACT_CONSUMER }, options);
    assert.equal(said, "");
  });
}

/** What the page's examples take from their surroundings. */
const SURROUNDINGS = `
import type { ChatMessage } from "plait";
declare global {
  const output: HTMLElement & { textContent: string };
  const button: HTMLButtonElement;
  const input: HTMLInputElement & { files: FileList };
  const messages: ChatMessage[];
  function show(...args: unknown[]): void;
  const process: { env: Record<string, string> };
}
`;

const WS = `declare module "ws" {
  const Socket: import("plait").WebSocketClass;
  export default Socket;
}`;

test("every example of the npm page is a program the types agree with", async () => {
  const page = await readFile(join(web, "README.md"), "utf8");
  const examples = [...page.matchAll(/```(jsx?)\n(.*?)```/gs)];
  assert.ok(examples.length >= 6);
  const files = examples.map(([, language, code], i) => [
    `example-${i}.${language.replace("js", "ts")}`,
    `${code}\nexport {};`,
  ]);
  const options = { jsx: "react-jsx", skipLibCheck: true, noUncheckedIndexedAccess: false };
  const said = await compile(
    "page",
    { "surroundings.ts": SURROUNDINGS, "ws.d.ts": WS, ...Object.fromEntries(files) },
    {
      ...{ module: "ESNext", moduleResolution: "Bundler", useUnknownInCatchVariables: false },
      ...options,
    },
  );
  assert.equal(said, "");
});
