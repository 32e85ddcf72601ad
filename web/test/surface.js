/** Checked by tsc, never run: what index.js exports is what types.d.ts declares. */

import * as sdk from "../sdk/index.js";

/** @type {typeof import("../sdk/types.d.ts")} */
export const surface = sdk;
