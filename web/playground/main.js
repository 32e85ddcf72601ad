/**
 * Composition root of the page: makes the parts, hands each what it needs, shows the first panel.
 *
 * @typedef {object} App
 * @property {Store} store
 * @property {Chats} chats
 * @property {Speeches} speeches
 * @property {Listenings} listenings
 * @property {Embeddings} embeddings
 * @property {Conversations} conversations
 * @property {WireDrawer} wire
 * @property {import("./panels.js").Panel[]} panels
 * @property {(name: string) => void} showPanel
 * @property {() => void} focusPanel
 * @property {() => void} pressPanel
 */

/** @import { Plait } from "../sdk/types.d.ts" */

import { createBanner } from "./banner.js";
import { Chats } from "./chats.js";
import { Conversations } from "./conversations.js";
import { h } from "./dom.js";
import { Embeddings } from "./embeddings.js";
import { FrameLog } from "./frames.js";
import { installKeys } from "./keys.js";
import { Link } from "./link.js";
import { Listenings } from "./listenings.js";
import { createMetricsReader } from "./metrics.js";
import { PANELS, PanelStack } from "./panels.js";
import { createRail } from "./rail.js";
import { Speeches } from "./speeches.js";
import { StatusBar } from "./status.js";
import { createStatusReader } from "./status-reading.js";
import { Store } from "./store.js";
import { askToken } from "./token.js";
import { WireDrawer } from "./wire.js";

const MAX_ANNOUNCEMENTS = 5;

/** @param {string} id */
function byId(id) {
  const element = document.getElementById(id);
  if (!element) throw new Error(`the page has no #${id}`);
  return element;
}

/** Starts, stops and ends only: a screen reader cannot use every token. @param {string} text */
function announce(text) {
  const announcer = byId("announcer");
  announcer.append(h("p", {}, text));
  if (announcer.children.length > MAX_ANNOUNCEMENTS) announcer.firstElementChild?.remove();
}

/** @type {{ tokenRequired: boolean }} */
const boot = JSON.parse(byId("boot").textContent ?? "{}");

const store = new Store({
  connection: { state: "idle", detail: "", wasOpen: false, leavingAt: null, guarded: false },
  models: [],
  chats: [],
  focusedKey: null,
  stops: [],
  voices: null,
  voice: "",
  speech: null,
  preview: null,
  spokenAnswer: null,
  speechStops: [],
  hearing: null,
  asking: null,
  microphoneTrouble: null,
  listening: null,
  listeningStops: [],
  embedModels: null,
  embedding: null,
  embeddingStops: [],
  askingToTalk: null,
  talkTrouble: null,
  conversation: null,
  talkStops: [],
  app: null,
  rights: null,
  sample: null,
  history: [],
  readings: [],
  readingRefused: null,
  panel: "chat",
});

const log = new FrameLog();
const metrics = createMetricsReader(store, () => link.token());
const machine = createStatusReader(store, () => link.token());
/** What every kind of run is made with. @type {[Store, () => Plait, (text: string) => void, () => void]} */
const shared = [store, () => link.client(), announce, () => metrics.readSoon()];
const chats = new Chats(...shared);
const speeches = new Speeches(...shared);
const listenings = new Listenings(...shared);
const embeddings = new Embeddings(...shared);
const conversations = new Conversations(...shared);
const kinds = [chats, speeches, listenings, embeddings];
const link = new Link(
  store,
  boot.tokenRequired,
  (frame) => {
    app.wire.add(frame);
    // After the SDK has read the frame too: its listeners run before the stream sees the message.
    if (frame.direction === "in" && frame.streamId !== null)
      queueMicrotask(() => {
        for (const kind of kinds) kind.noticeFrame(Number(frame.streamId));
      });
  },
  askToken,
);

/** @type {App} */
const app = {
  store,
  chats,
  speeches,
  listenings,
  embeddings,
  conversations,
  wire: new WireDrawer(store, log, byId("wire")),
  panels: PANELS,
  showPanel,
  focusPanel: () => void stack.focus(),
  pressPanel: () => void stack.press(),
};
const stack = new PanelStack(app, byId("panel"));

/** @param {string} name */
function showPanel(name) {
  if (app.wire.overlays) app.wire.toggle(false, false);
  stack.show(name);
  store.state.panel = name;
  store.changed("panel", "chats", "speech", "listening", "embedding", "conversation", "metrics");
}

store.subscribe(["metrics"], () => {
  for (const kind of kinds) kind.noticeSample();
});
createBanner(store, byId("panel"));
const { showHelp } = installKeys(app);
createRail(app, byId("rail"), showHelp);
new StatusBar(store, byId("status"));
app.wire.restore();
showPanel("chat");
app.focusPanel();
metrics.start();
machine.start();
void link.open();
