/** The hooks where there is no page: rendered on a server, by both generations of React, and nothing is opened. */

import assert from "node:assert/strict";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { pathToFileURL } from "node:url";
import { bundled } from "./support/bundle.js";

const PAGE = `
import { PlaitProvider, useLive, useSpeech, useStreamedChat, useTranscription } from "plait/react";
import { createElement, version } from "react";
import { renderToString } from "react-dom/server";

function Page() {
  const chat = useStreamedChat({ messages: [{ role: "assistant", content: "Hello." }] });
  const heard = useTranscription();
  const speech = useSpeech();
  const loud = useLive(heard.level).rms + useLive(speech.heardMs);
  return [chat.messages[0].content, chat.status, heard.status, speech.state, loud].join(" ");
}
class Refused {
  constructor() {
    throw new Error("a server opens no connection to render");
  }
}
export { version };
export const html = renderToString(
  createElement(PlaitProvider, { url: "ws://127.0.0.1:1", WebSocket: Refused }, createElement(Page)),
);
export const alone = renderToString(createElement(Page));
`;

/** What React's server has of Node is required: so not as a module. */
const NODE = { platform: "node", format: "cjs", external: [], logLevel: "error" };
let folder = "";
before(async () => {
  folder = await mkdtemp(join(tmpdir(), "plait-react-"));
});
after(() => rm(folder, { recursive: true, force: true }));

for (const [major, react, dom] of [
  ["19", "react", "react-dom"],
  ["18", "react-18", "react-dom-18"],
]) {
  test(`React ${major} renders the hooks on a server as they begin, without a connection`, async () => {
    const alias = { react, "react-dom": dom };
    const { text } = await bundled(PAGE, { ...NODE, alias });
    const file = join(folder, `page-${major}.cjs`);
    await writeFile(file, text);
    const { version, html, alone } = (await import(pathToFileURL(file))).default;
    assert.equal(version.split(".")[0], major);
    assert.equal(html, "Hello. idle idle idle 0");
    assert.equal(alone, html);
  });
}
