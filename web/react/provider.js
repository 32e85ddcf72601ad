"use client";

/**
 * Whose connection the hooks of a tree use: one that is given, or one that is made when a hook first needs it.
 */

/** @import { Plait } from "../sdk/types.d.ts" */
/** @import { Lease } from "./lease.js" */
/** @import { ProviderProps } from "./index.d.ts" */

import { createContext, createElement, useContext, useEffect, useMemo, useRef } from "react";
import { connect } from "../sdk/index.js";
import { leaseOf, SharedLease } from "./lease.js";

const LeaseContext = createContext(/** @type {Lease} */ (new SharedLease(() => connect())));

/** @param {ProviderProps} props */
export function PlaitProvider({ children, client, ...target }) {
  const { url, ...options } = /** @type {import("./index.d.ts").OwnConnection} */ (target);
  const newest = useRef(options);
  useEffect(() => {
    newest.current = options;
  });
  const address = url === undefined ? undefined : String(url);
  const lease = useMemo(
    () => (client ? leaseOf(client) : new SharedLease(() => connect(address, newest.current))),
    [client, address],
  );
  return createElement(LeaseContext.Provider, { value: lease }, children);
}

/**
 * @template {object} C
 * @param {C | undefined} client
 * @returns {Lease<C | Plait>}
 */
export function useLease(client) {
  const shared = useContext(LeaseContext);
  return useMemo(() => (client ? leaseOf(client) : shared), [client, shared]);
}
