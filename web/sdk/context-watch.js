/**
 * Gets an AudioContext to run and says when it does not: browsers keep a page silent until a gesture (autoplay), and
 * may interrupt it later. While it is blocked the page's next gesture wakes it.
 * Does not know what it is used for.
 */

/** @import { Runtime, Timer } from "./internal.d.ts" */

import { listenForGestures } from "./audio-context.js";

/** A context that may start does so within this time; one that may not waits for a gesture. */
const START_PATIENCE_MS = 400;

export class ContextWatch {
  #context;
  #on;
  #blocked = false;
  /** @type {Timer | null} */
  #timer = null;

  /**
   * @param {AudioContext} context
   * @param {Runtime} runtime
   * @param {{ blocked(blocked: boolean): void, closed(): void }} on `blocked`: when it changes
   */
  constructor(context, runtime, on) {
    this.#context = context;
    this.#on = on;
    context.addEventListener("statechange", this.#onState);
    if (context.state === "running") return;
    context.resume().catch(() => {}); // its state tells
    this.#timer = runtime.after(START_PATIENCE_MS, this.#onState);
  }

  get blocked() {
    return this.#blocked;
  }

  stop() {
    this.#timer?.clear();
    listenForGestures(this.#onGesture, false);
    this.#context.removeEventListener("statechange", this.#onState);
  }

  #onState = () => {
    if (this.#context.state === "closed") {
      this.stop();
      this.#on.closed();
      return;
    }
    const blocked = this.#context.state !== "running";
    if (blocked === this.#blocked) return;
    this.#timer?.clear();
    this.#blocked = blocked;
    listenForGestures(this.#onGesture, blocked);
    this.#on.blocked(blocked);
  };

  #onGesture = () => void this.#context.resume().catch(() => {});
}
