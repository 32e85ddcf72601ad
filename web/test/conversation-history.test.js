/** What is kept of a conversation: which words were heard, and what the model is told next time. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { heardText } from "../sdk/conversation-heard.js";
import { History } from "../sdk/conversation-history.js";

const MARKS = [
  {
    text: "Hello there. ",
    start: 0,
    end: 1.4,
    words: [
      { text: "Hello", start: 0.05, end: 0.5 },
      { text: "there", start: 0.6, end: 1.1 },
    ],
  },
  { text: "Well. ", start: 1.4, end: 2, words: [{ text: "Well", start: 1.5, end: 1.9 }] },
];

test("heard is to the last word that was over, and a whole mark with what follows its words", () => {
  const heard = [0, 499, 500, 1100, 1399, 1400, 1899, 1900, 2000, 9000].map((ms) =>
    heardText(MARKS, ms),
  );
  const both = "Hello there. Well. ";
  const [hello, there, first] = ["Hello", "Hello there", "Hello there. "];
  const expected = ["", "", hello, there, there, first, first, `${first}Well`, both, both];
  assert.deepEqual(heard, expected);
});

test("words that are not found in their text, and marks without words, do no harm", () => {
  const odd = [{ text: "5 apples", start: 0, end: 2, words: [{ text: "five", start: 0, end: 1 }] }];
  assert.equal(heardText(odd, 1000), "5 ap");
  assert.equal(heardText([{ text: "Hm. ", start: 0, end: 1 }], 900), "");
  assert.equal(heardText([], 900), "");
});

const contents = ({ messages }) => messages.map(({ content }) => content);

test("what was given is copied, and no array changes in which somebody looks", () => {
  const given = [{ role: "system", content: "Be brief." }];
  const history = new History(given);
  const before = history.messages;
  history.ask("Hi.");
  given[0].content = "Be long.";
  assert.deepEqual([before.length, contents(history)], [1, ["Be brief.", "Hi."]]);
});

test("a question is taken back as if it had not been asked, whatever was corrected meanwhile", () => {
  const history = new History([]);
  history.ask("One?");
  const correct = history.answer("Yes, it");
  const unask = history.ask("Two?");
  correct("Yes");
  unask();
  unask();
  assert.deepEqual(contents(history), ["One?", "Yes"]);
});

test("questions in a row are one, and each can be taken back from it", () => {
  const history = new History([]);
  history.ask("One?");
  const unask = history.ask("Two?");
  assert.deepEqual(contents(history), ["One? Two?"]);
  unask();
  assert.deepEqual(contents(history), ["One?"]);
});

test("an answer that turns out to have been heard by nobody goes, wherever it stands", () => {
  const history = new History([]);
  history.ask("One?");
  const correct = history.answer("Yes");
  history.ask("Two?");
  correct(" ");
  assert.deepEqual(contents(history), ["One?", "Two?"]);
  history.answer("  ")("late");
  assert.deepEqual(contents(history), ["One?", "Two?"]);
});
