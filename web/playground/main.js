/**
 * Composition root of the page: makes the parts, hands each what it needs, shows the first panel.
 * A panel is one file in panels/ with register(app); the rail and the number keys follow from that.
 *
 * @typedef {object} PanelView
 * @property {() => void} [focus]  where typing starts
 * @property {() => void} [press]  what Ctrl+Enter does where nothing has the focus
 *
 * @typedef {object} Panel
 * @property {string} name
 * @property {string} label
 * @property {string} icon
 * @property {(root: HTMLElement) => PanelView} mount
 *
 * @typedef {object} App
 * @property {Store} store
 * @property {Chats} chats
 * @property {Speeches} speeches
 * @property {Listenings} listenings
 * @property {Embeddings} embeddings
 * @property {WireDrawer} wire
 * @property {Panel[]} panels
 * @property {(panel: Panel) => void} addPanel
 * @property {(name: string) => void} showPanel
 * @property {() => void} focusPanel
 * @property {() => void} pressPanel
 */

import { createBanner } from "./banner.js";
import { Chats } from "./chats.js";
import { h } from "./dom.js";
import { Embeddings } from "./embeddings.js";
import { FrameLog } from "./frames.js";
import { installKeys } from "./keys.js";
import { Link } from "./link.js";
import { Listenings } from "./listenings.js";
import { createMetricsReader } from "./metrics.js";
import { register as registerChat } from "./panels/chat.js";
import { register as registerEmbed } from "./panels/embed.js";
import { register as registerListen } from "./panels/listen.js";
import { register as registerMonitor } from "./panels/monitor.js";
import { register as registerSpeak } from "./panels/speak.js";
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
const chats = new Chats(
  store,
  () => link.client(),
  announce,
  () => metrics.readSoon(),
);
const speeches = new Speeches(
  store,
  () => link.client(),
  announce,
  () => metrics.readSoon(),
);
const listenings = new Listenings(
  store,
  () => link.client(),
  announce,
  () => metrics.readSoon(),
);
const embeddings = new Embeddings(
  store,
  () => link.client(),
  announce,
  () => metrics.readSoon(),
);
const link = new Link(
  store,
  boot.tokenRequired,
  (frame) => {
    app.wire.add(frame);
    // After the SDK has read the frame too: its listeners run before the stream sees the message.
    if (frame.direction === "in" && frame.streamId !== null)
      queueMicrotask(() => {
        chats.noticeFrame(Number(frame.streamId));
        speeches.noticeFrame(Number(frame.streamId));
        listenings.noticeFrame(Number(frame.streamId));
        embeddings.noticeFrame(Number(frame.streamId));
      });
  },
  askToken,
);

const centre = byId("panel");
/** @type {Map<string, { root: HTMLElement, view: PanelView }>} */
const mounted = new Map();

/** @type {App} */
const app = {
  store,
  chats,
  speeches,
  listenings,
  embeddings,
  wire: new WireDrawer(store, log, byId("wire")),
  panels: [],
  addPanel: (panel) => app.panels.push(panel),
  showPanel,
  focusPanel: () => mounted.get(store.state.panel)?.view.focus?.(),
  pressPanel: () => mounted.get(store.state.panel)?.view.press?.(),
};

/** Panels are made when first shown and kept: a stream goes on while another panel is looked at. @param {string} name */
function showPanel(name) {
  const panel = app.panels.find((known) => known.name === name);
  if (!panel) return;
  if (!mounted.has(name)) {
    const root = h("section", { class: "panel", "data-panel": name, "aria-label": panel.label });
    centre.append(root);
    mounted.set(name, { root, view: panel.mount(root) });
  }
  if (app.wire.overlays) app.wire.toggle(false, false);
  for (const [other, { root }] of mounted) root.hidden = other !== name;
  store.state.panel = name;
  store.changed("panel", "chats", "speech", "listening", "embedding", "metrics");
}

store.subscribe(["metrics"], () => {
  chats.noticeSample();
  speeches.noticeSample();
  listenings.noticeSample();
  embeddings.noticeSample();
});
registerChat(app);
registerListen(app);
registerSpeak(app);
registerEmbed(app);
registerMonitor(app);
createBanner(store, centre);
const { showHelp } = installKeys(app);
createRail(app, byId("rail"), showHelp);
new StatusBar(store, byId("status"));
app.wire.restore();
showPanel("chat");
app.focusPanel();
metrics.start();
machine.start();
void link.open();
