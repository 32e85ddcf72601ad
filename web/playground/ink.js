/** Code in a few inks: spans around tokens, every character still a text node. */

import { h } from "./dom.js";

const JSON_TOKENS =
  /(?<key>"(?:[^"\\]|\\.)*"(?=\s*:))|(?<text>"(?:[^"\\]|\\.)*")|(?<value>\b(?:true|false|null)\b|-?\d[\d.eE+-]*)/g;
const JAVASCRIPT_TOKENS =
  /(?<comment>\/\/[^\n]*)|(?<text>"(?:[^"\\]|\\.)*")|(?<key>\b(?:import|from|const|new|for|await|of)\b)/g;

/** @param {string} json */
export function inkJson(json) {
  return ink(json, JSON_TOKENS);
}

/** @param {string} source */
export function inkJavaScript(source) {
  return ink(source, JAVASCRIPT_TOKENS);
}

/** @param {string} source @param {RegExp} tokens  a named group per ink @returns {(Node | string)[]} */
function ink(source, tokens) {
  /** @type {(Node | string)[]} */
  const parts = [];
  let end = 0;
  for (const { 0: token, index, groups = {} } of source.matchAll(tokens)) {
    const kind = Object.keys(groups).find((name) => groups[name] !== undefined);
    parts.push(source.slice(end, index), h("span", { class: `ink-${kind}` }, token));
    end = index + token.length;
  }
  return [...parts, source.slice(end)];
}
