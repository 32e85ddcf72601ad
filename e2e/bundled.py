"""Pages of our own that use the SDK, bundled by esbuild, from another origin than Plait's.

`/sdk`, `/examples` and the rest of `web` are served as they are, what a test run has built
under `/built`. Does NOT know what the pages do.
"""

from __future__ import annotations

import functools
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

WEB = Path(__file__).parents[1] / "web"
ESBUILD = WEB / "node_modules" / ".bin" / "esbuild"
PAGE = """<!doctype html>
<html lang="en">
  <meta charset="utf-8">
  <title>{name}</title>
  <link rel="icon" href="data:,">
  <script type="module" src="{name}.js"></script>
  <div id="root"></div>
</html>
"""


@dataclass(frozen=True)
class Pages:
    """`origin` serves `web`, and `built` as `/built`."""

    origin: str
    built: Path

    def build(self, source: Path, name: str, *options: str) -> None:
        """A page of one module, at `/built/name.html`; raises CalledProcessError."""
        bundle(source, self.built / f"{name}.js", *options)
        (self.built / f"{name}.html").write_text(PAGE.format(name=name))

    def url(self, path: str, **asked: str) -> str:
        return f"{self.origin}{path}?{urlencode(asked)}"


def bundle(source: Path, target: Path, *options: str) -> None:
    """One file of `source` and all that it imports; raises CalledProcessError."""
    command = [str(ESBUILD), str(source), "--bundle", "--format=esm", "--jsx=automatic"]
    subprocess.run(
        [*command, f"--outfile={target}", "--log-level=error", *options],
        cwd=WEB, check=True, timeout=120,
    )  # fmt: skip


@contextmanager
def serve_pages(built: Path) -> Iterator[Pages]:
    """From a thread, until left."""

    class Handler(SimpleHTTPRequestHandler):
        def translate_path(self, path: str) -> str:
            if path.startswith("/built/"):
                self.directory, path = str(built), path.removeprefix("/built")
            return super().translate_path(path)

        def log_message(self, *_: Any) -> None:
            pass

    handler = functools.partial(Handler, directory=str(WEB))
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield Pages(f"http://127.0.0.1:{server.server_port}", built)
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
