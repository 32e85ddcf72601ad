"""The Hugging Face source, against a small hub on loopback and against none at all.

huggingface_hub reads its endpoint when it is imported, so each case runs in its own process.
"""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import ClassVar

import pytest

SCRIPT = """
import sys
from pathlib import Path
from plait.models import ModelStore, StoreError
seen = []
try:
    model = ModelStore(Path(sys.argv[1])).ensure(
        sys.argv[2], sys.argv[3], lambda phase, percent: seen.append(phase))
except StoreError as error:
    print(type(error).__name__, error)
else:
    print(model.name, model.context_limit, model.form(sys.argv[3]), sorted(set(seen)))
"""
COMMIT = "0123456789abcdef0123456789abcdef01234567"


class Hub(BaseHTTPRequestHandler):
    """As much of the hub's HTTP interface as a download needs."""

    files: ClassVar[dict[str, bytes]] = {}

    def do_HEAD(self) -> None:
        self._answer(send_body=False)

    def do_GET(self) -> None:
        self._answer(send_body=True)

    def _answer(self, *, send_body: bool) -> None:
        body, kind = self._find()
        self.send_response(404 if body is None else 200)
        for name, value in {
            "X-Repo-Commit": COMMIT,
            "ETag": f'"{hashlib.sha256(body or b"").hexdigest()}"',
            "Content-Type": kind,
            "Content-Length": str(len(body or b"")),
            **({"X-Error-Code": "EntryNotFound"} if body is None else {}),
        }.items():
            self.send_header(name, value)
        self.end_headers()
        if send_body and body:
            self.wfile.write(body)

    def _find(self) -> tuple[bytes | None, str]:
        path = self.path.split("?")[0]
        if path.startswith("/api/models/org/tiny/tree/"):
            tree = [
                {"type": "file", "path": name, "size": len(body), "oid": "0" * 40}
                for name, body in self.files.items()
            ]
            return json.dumps(tree).encode(), "application/json"
        if path.startswith("/api/models/org/tiny"):
            siblings = [{"rfilename": name} for name in self.files]
            about = {"id": "org/tiny", "sha": COMMIT, "siblings": siblings, "private": False}
            return json.dumps(about).encode(), "application/json"
        file = path.partition(f"/resolve/{COMMIT}/")[2] or path.partition("/resolve/main/")[2]
        return self.files.get(file), "application/octet-stream"

    def log_message(self, format: str, *args: object) -> None:
        """Keep the test's output quiet."""


def serve() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Hub)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def hub(tiny_gguf: Path, english_ggml: Path) -> Iterator[str]:
    Hub.files = {
        "ggml-tiny.bin": english_ggml.read_bytes(),
        "ggml-half.bin": english_ggml.read_bytes()[:-1],
        "tiny.gguf": tiny_gguf.read_bytes(),
        "config.json": b'{"max_position_embeddings": 77}',
        "tokenizer.json": b"{}",
        "model.safetensors": b"\0" * 1000,
        "evil.py": b"raise SystemExit",
    }
    yield from serve()


@pytest.fixture
def embedding_hub(embedder: Path) -> Iterator[str]:
    names = [path.relative_to(embedder).as_posix() for path in embedder.rglob("*.*")]
    Hub.files = {name: (embedder / name).read_bytes() for name in names}
    Hub.files |= {"onnx/model.onnx": b"never fetched", "pytorch_model.bin": b"nor this"}
    yield from serve()


def pull(tmp_path: Path, configured: str, engine: str, **environ: str) -> str:
    result = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(tmp_path / "home"), configured, engine],
        env={
            "PYTHONPATH": str(Path(__file__).parents[2] / "server"),
            "HF_HOME": str(tmp_path / "hf"),
            "HF_HUB_DISABLE_XET": "1",
            "PATH": "/usr/bin:/bin",
            **environ,
        },
        capture_output=True,
        text=True,
        timeout=50,
        check=True,
    )
    return result.stdout.strip()


def test_a_gguf_file_comes_from_the_hub(tmp_path: Path, hub: str) -> None:
    said = pull(tmp_path, "hf:org/tiny/tiny.gguf", "llamacpp", HF_ENDPOINT=hub)

    assert said.startswith("tiny 512 ")
    assert said.endswith("model.gguf ['download']")


def test_a_ggml_file_comes_from_the_hub(tmp_path: Path, hub: str) -> None:
    said = pull(tmp_path, "hf:org/tiny/ggml-tiny.bin", "whisper", HF_ENDPOINT=hub)

    assert said.startswith("ggml-tiny 0 ")
    assert said.endswith("ggml.bin ['download']")


def test_a_ggml_file_of_the_hub_that_breaks_off_is_refused(tmp_path: Path, hub: str) -> None:
    said = pull(tmp_path, "hf:org/tiny/ggml-half.bin", "whisper", HF_ENDPOINT=hub)

    assert said.startswith("ModelDamaged ")
    assert not list((tmp_path / "home" / "models").glob("hf*"))


def test_an_mlx_repository_comes_from_the_hub_without_its_code(tmp_path: Path, hub: str) -> None:
    said = pull(tmp_path, "hf:org/tiny", "mlx", HF_ENDPOINT=hub)

    assert said.startswith("tiny 77 ")
    mlx = next((tmp_path / "home" / "models").glob("hf*/mlx"))
    assert {path.name for path in mlx.iterdir()} == {
        "config.json",
        "tokenizer.json",
        "model.safetensors",
    }


def test_an_embedding_model_comes_from_the_hub_with_the_weights_it_is_made_from_alone(
    tmp_path: Path, embedding_hub: str
) -> None:
    said = pull(tmp_path, "hf:org/tiny", "onnx", HF_ENDPOINT=embedding_hub)

    assert said.startswith("tiny 16 ")
    assert said.endswith("['convert', 'download']")
    (model,) = (tmp_path / "home" / "models").glob("hf*")
    assert (model / "1_Pooling" / "config.json").is_file()
    assert not list(model.rglob("pytorch_model.bin"))
    assert b"never" not in (model / "embed-1" / "model.onnx").read_bytes()


def test_a_file_the_hub_does_not_have_is_unavailable(tmp_path: Path, hub: str) -> None:
    said = pull(tmp_path, "hf:org/tiny/other.gguf", "llamacpp", HF_ENDPOINT=hub)

    assert said.startswith("SourceUnavailable hf:org/tiny/other.gguf")
    assert "Check the spelling" in said


@pytest.mark.parametrize(
    ("configured", "engine", "environ"),
    [
        ("hf:org/tiny", "mlx", {"HF_HUB_OFFLINE": "1"}),
        ("hf:org/tiny/tiny.gguf", "mlx", {"HF_HUB_OFFLINE": "1"}),
        ("hf:org/tiny/ggml-tiny.bin", "whisper", {"HF_HUB_OFFLINE": "1"}),
        ("hf:org/tiny", "mlx", {"HF_ENDPOINT": "http://127.0.0.1:9"}),
        ("hf:org/tiny", "onnx", {"HF_HUB_OFFLINE": "1"}),
    ],
)
def test_without_a_hub_the_next_step_is_named(
    tmp_path: Path, configured: str, engine: str, environ: dict[str, str]
) -> None:
    said = pull(tmp_path, configured, engine, **environ)

    assert said.startswith(f"SourceUnavailable {configured} could not be fetched")
    instead = {"whisper": "whisper-tiny.en", "onnx": "all-minilm-l6-v2"}
    assert instead.get(engine, "smollm2-135m-instruct") in said
    assert not list((tmp_path / "home" / "models").glob("hf*"))
