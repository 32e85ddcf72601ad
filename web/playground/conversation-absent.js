/** In place of the Conversation panel where the server lacks one of the three that it needs: which, and what to do. */

import { h } from "./dom.js";

/** @import { State, Store } from "./store.js" */

const NEEDS = [
  { verb: "listen", model: "whisper-tiny.en", has: (/** @type {State} */ s) => s.hearing !== null },
  {
    verb: "answer",
    model: "smollm2-135m-instruct",
    has: (/** @type {State} */ s) => s.models.length > 0,
  },
  { verb: "speak", model: "kokoro-82m", has: (/** @type {State} */ s) => s.voices !== null },
];

/** What this connection cannot do for a conversation. @param {State} state */
export function lacking(state) {
  return state.connection.wasOpen ? NEEDS.filter(({ has }) => !has(state)) : [];
}

/** @param {string[]} words */
export function spoken(words) {
  return words.length < 2 ? words.join() : `${words.slice(0, -1).join(", ")} or ${words.at(-1)}`;
}

/** @param {Store} store */
export function createConversationAbsent(store) {
  const heading = h("h2");
  const why = h("p");
  const commands = h("pre", { class: "commands" });
  const hint = h("p", { class: "hint" });
  const element = h(
    "section",
    { class: "empty", "data-testid": "no-conversation", hidden: true },
    heading,
    why,
    commands,
    hint,
  );
  function show() {
    const { app } = store.state;
    const lack = lacking(store.state);
    const verbs = spoken(lack.map(({ verb }) => verb));
    element.hidden = lack.length === 0;
    commands.hidden = app !== null;
    heading.textContent =
      app === null ? `This server does not ${verbs} yet` : `The app ${app} does not ${verbs} here`;
    why.textContent =
      app === null
        ? "A conversation needs three models: one that listens, one that answers, one that speaks. Stop the server, install what it lacks, once, and start it again:"
        : "A conversation needs the capabilities transcribe, chat and synthesize, and a model for each. Look for the app in plait.toml.";
    commands.textContent = [
      ...lack.map(({ model }) => `plait models pull ${model}`),
      "plait serve",
    ].join("\n");
    hint.textContent =
      app === null
        ? "plait doctor says what is missing. In a checkout, make serve does all of it."
        : "plait doctor says which models the server has.";
  }
  store.subscribe(["connection"], show);
  show();
  return element;
}
