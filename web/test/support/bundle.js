/** What a bundler makes of an entry of the package, and of which modules. */

import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const folder = fileURLToPath(new URL("../../", import.meta.url));

/**
 * @param {string} code imports of "plait", "plait/chat", …, as an application would write them
 * @param {import("esbuild").BuildOptions} [options]
 */
export async function bundled(code, options) {
  const { outputFiles, metafile } = await build({
    stdin: { contents: code, resolveDir: folder, loader: "js" },
    bundle: true,
    format: "esm",
    platform: "neutral",
    write: false,
    metafile: true,
    absWorkingDir: folder,
    external: ["react", "react-dom"],
    ...options,
  });
  const [{ inputs }] = Object.values(metafile.outputs);
  const modules = Object.entries(inputs)
    .filter(([, { bytesInOutput }]) => bytesInOutput > 0)
    .map(([path]) => path)
    .filter((path) => path !== "<stdin>")
    .sort();
  return { text: outputFiles[0].text, modules };
}
