"""The installed voices: style vectors by name, and blends of them.

A voice is a file `<name>.bin`: raw little-endian float32 [510, 256], one style for each length of
an utterance in phonemes. Only names found when the directory was opened are ever turned into a
path. A voice is read when it is first asked for, and kept (half a megabyte each); one that is
damaged by then fails its request, and no other's. Does NOT know what a style does, nor which
languages can be spoken.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from plait.engines.kokoro.model import Floats
from plait.errors import ModelLoadFailed, VoiceNotFound
from plait.speech.voices import parse_voice

PACK_SHAPE = (510, 256)
PACK_BYTES = 4 * PACK_SHAPE[0] * PACK_SHAPE[1]


class KokoroVoices:
    """The voices of `directory`. Raises ModelLoadFailed when there is none, or a broken one."""

    def __init__(self, directory: Path) -> None:
        self._paths = {path.stem: path for path in sorted(directory.glob("*.bin"))}
        self._packs: dict[str, Floats] = {}  # at most one per voice
        if not self._paths:
            raise ModelLoadFailed("The speech model has no voices; install it again.")
        for name, path in self._paths.items():
            size_bytes = path.stat().st_size if path.is_file() else 0
            if size_bytes != PACK_BYTES:
                raise ModelLoadFailed(
                    f"Voice {name} has {size_bytes} bytes and must have {PACK_BYTES}; "
                    "install the speech model again."
                )

    @property
    def names(self) -> list[str]:
        return list(self._paths)

    def pack(self, voice: str) -> Floats:
        """Styles [510, 256] of a voice, or of a blend like `af_heart:0.6,bf_emma:0.4`.

        A blend is the weighted mean of its voices' styles, and a new array; a voice's own is
        shared: not to be written to. Raises VoiceNotFound (data: voices), and ModelLoadFailed where
        a voice's file was damaged since.
        """
        parts = self._parse(voice)
        if len(parts) == 1:
            return self._load(parts[0][0])
        blend = np.zeros(PACK_SHAPE, np.float32)
        for name, weight in parts:
            blend += np.float32(weight) * self._load(name)
        return blend

    def shares(self, pack: Floats) -> bool:
        """Whether `pack` is one of the voices themselves."""
        return any(pack is shared for shared in self._packs.values())

    def first_of(self, voice: str) -> str:
        """The name that decides a blend's language. Raises VoiceNotFound (data: voices)."""
        return self._parse(voice)[0][0]

    def _parse(self, voice: str) -> Sequence[tuple[str, float]]:
        try:
            parts = parse_voice(voice)
        except VoiceNotFound as error:
            raise self._not_found(error.message) from error
        for name, _ in parts:
            if name not in self._paths:
                raise self._not_found(f"voice: there is no voice {name} here.")
        return parts

    def _load(self, name: str) -> Floats:
        pack = self._packs.get(name)
        if pack is None:
            pack = self._packs[name] = _read(name, self._paths[name])
        return pack

    def _not_found(self, what: str) -> VoiceNotFound:
        names = self.names
        return VoiceNotFound(
            f"{what} Use one of the {len(names)} in data.voices, or a blend of them.",
            param="voice",
            data={"voices": names},
        )


def _read(name: str, path: Path) -> Floats:
    try:
        flat = np.fromfile(path, "<f4")
    except OSError:
        flat = np.zeros(0, np.float32)
    if flat.nbytes != PACK_BYTES or not np.isfinite(flat).all():
        raise ModelLoadFailed(
            f"Voice {name} is damaged on the server; take another voice. Its operator can install "
            "the speech model again.",
            param="voice",
        )
    return flat.reshape(PACK_SHAPE).astype(np.float32, copy=False)
