/**
 * Whose connection a hook uses. One that was given stays the giver's. One that is made here is made when it is first
 * used, shared by all who hold the lease, and closed when the last of them has let go; who comes later gets a new one.
 * Does not know React.
 */

/** @import { Plait } from "../sdk/types.d.ts" */

/**
 * @template [C=Plait]
 * @typedef {object} Lease
 * @property {() => C} client the connection to use now; ask anew for each request
 * @property {() => () => void} hold returns how to let go
 */

/**
 * @template C
 * @param {C} client
 * @returns {Lease<C>}
 */
export function leaseOf(client) {
  return { client: () => client, hold: () => () => {} };
}

/** @implements {Lease} */
export class SharedLease {
  #connect;
  /** @type {Plait | null} */
  #client = null;
  #holders = 0;

  /** @param {() => Plait} connect */
  constructor(connect) {
    this.#connect = connect;
  }

  client() {
    // One that is closed for good (a refused token, say) would refuse for ever.
    if (this.#client === null || this.#client.state === "closed") this.#client = this.#connect();
    return this.#client;
  }

  hold() {
    this.#holders += 1;
    let held = true;
    return () => {
      if (!held) return;
      held = false;
      this.#holders -= 1;
      // Not at once: StrictMode lets go and takes hold again in one go, and the socket need not notice.
      queueMicrotask(() => this.#closeIfLeft());
    };
  }

  #closeIfLeft() {
    if (this.#holders > 0) return;
    void this.#client?.close();
    this.#client = null;
  }
}
