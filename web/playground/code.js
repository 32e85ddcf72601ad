/**
 * The code tab: the file a test runs is the text shown, with the import as another page would write it.
 */

import { copyButton, h } from "./dom.js";
import { inkJavaScript } from "./ink.js";

/** @param {string} name  of a file in examples/ */
export function codeView(name) {
  const code = h("code");
  let text = "";
  const element = h(
    "section",
    { class: "code-view", "aria-label": "The same through the SDK" },
    h(
      "header",
      {},
      h("h2", {}, "The same through the SDK"),
      copyButton("Copy the code", () => text),
    ),
    h("pre", { tabindex: "0" }, code),
    h(
      "p",
      { class: "hint" },
      "No build step and no dependency: any page of this server can import it as shown, and connect() alone means the server the page came from. A page elsewhere brings its own copy of the SDK, gives this address, and has its origin in the server's allowed_origins.",
    ),
  );
  const load = async () => {
    if (text) return;
    try {
      const response = await fetch(new URL(`examples/${name}.js`, import.meta.url));
      if (!response.ok) throw new Error(`HTTP ${response.status}`);
      text = forReaders(await response.text(), location.origin);
      code.replaceChildren(...inkJavaScript(text));
    } catch (error) {
      code.textContent = `The example could not be loaded (${error instanceof Error ? error.message : error}). Open this tab again to retry.`;
    }
  };
  return { element, load };
}

/** With the addresses written out, as they work from wherever it is pasted. @param {string} source @param {string} origin */
export function forReaders(source, origin) {
  const socket = `${origin.replace(/^http/, "ws")}/v1/ws`;
  return source
    .replace("../../sdk/", `${origin}/static/sdk/`)
    .replaceAll('fetch("/', `fetch("${origin}/`)
    .replace("connect()", `connect("${socket}")`);
}
