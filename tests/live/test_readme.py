"""The README's programs run as they are printed (only the port is another one)."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.live.server import LiveServer

ROOT = Path(__file__).parents[2]
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```", (ROOT / "README.md").read_text(), re.M | re.S)
PYTHON = [code for language, code in BLOCKS if language == "python"]
JAVASCRIPT = [code for language, code in BLOCKS if language == "js"]


def run(command: list[str], cwd: Path) -> str:
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=90, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("code", PYTHON, ids=["client", "raw"])
def test_the_python_programs_of_the_readme_print_an_answer(server: LiveServer, code: str) -> None:
    program = code.replace("127.0.0.1:8760", f"127.0.0.1:{server.port}")
    assert "w0" in run([sys.executable, "-c", program], ROOT / "server")


def test_the_javascript_program_of_the_readme_prints_an_answer(server: LiveServer) -> None:
    node = shutil.which("node")
    assert node, "node 20 or newer is needed for the tests"
    (code,) = [code for code in JAVASCRIPT if "connect(" in code]  # the others need a page
    url = f'"ws://127.0.0.1:{server.port}/v1/ws"'
    # Only the port is another one, and Node 20 has no WebSocket of its own.
    program = "import { WebSocket } from 'ws';\n" + code.replace(
        '"ws://127.0.0.1:8760/v1/ws"', f"{url}, {{ WebSocket }}"
    )
    assert "w0" in run([node, "--input-type=module", "-e", program], ROOT / "web")
