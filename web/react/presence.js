/**
 * What the states behind the hooks have in common: whose connection and which options they use, and whether the component
 * is still on the page. Who leaves and comes back in one go, as StrictMode does, has not left; nor has who was not there
 * yet: effects of children come before. Does not know React.
 */

/** @import { Lease } from "./lease.js" */

/** @template C, O */
export class Presence {
  #here = false;
  /** It was there, and has left: what its handlers still ask for, nobody would see, or stop. */
  gone = false;

  /**
   * @param {Lease<C>} lease
   * @param {O} options
   */
  constructor(lease, options) {
    this.lease = lease;
    this.options = options;
  }

  /**
   * For what is asked for from now on.
   *
   * @param {Lease<C>} lease
   * @param {O} options
   */
  configure(lease, options) {
    this.lease = lease;
    this.options = options;
  }

  /**
   * Somebody is there; returns how they go. With them goes what runs.
   *
   * @param {Lease<C>} lease
   * @returns {() => void}
   */
  enter(lease) {
    const letGo = lease.hold();
    this.#here = true;
    this.gone = false;
    return () => {
      this.leave();
      this.#here = false;
      queueMicrotask(() => {
        this.gone = !this.#here;
      });
      letGo();
    };
  }

  /** Stops what runs. */
  leave() {}
}
