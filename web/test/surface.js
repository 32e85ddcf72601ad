/** Checked by tsc, never run: what an entry of the package exports is what its types declare. */

import * as chat from "../sdk/chat-index.js";
import * as sdk from "../sdk/index.js";

/** @type {typeof import("../sdk/types.d.ts")} */
export const surface = sdk;

/** @type {typeof import("../sdk/chat-types.d.ts")} */
export const chatSurface = chat;
