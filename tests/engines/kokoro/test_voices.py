"""Voices by name, blends, and directories that are not what they should be."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from plait.engines.kokoro.voices import PACK_SHAPE, KokoroVoices
from plait.errors import ModelLoadFailed, VoiceNotFound
from tests.engines.kokoro.rig import write_voices


def test_a_voice_is_its_file_and_is_shared(tmp_path: Path) -> None:
    voices = write_voices(tmp_path, "af_heart", "bf_emma")

    pack = voices.pack("bf_emma")

    assert pack.shape == PACK_SHAPE
    assert pack.dtype == np.float32
    np.testing.assert_allclose(pack, 0.1)
    assert voices.pack("bf_emma") is pack
    assert voices.shares(pack)


def test_a_blend_is_the_weighted_mean_and_leaves_its_voices_alone(tmp_path: Path) -> None:
    voices = write_voices(tmp_path, "af_heart", "bf_emma", "ef_dora")

    blend = voices.pack("bf_emma:1,ef_dora:3")

    np.testing.assert_allclose(blend, 0.25 * 0.1 + 0.75 * 0.2, rtol=1e-6)
    np.testing.assert_allclose(voices.pack("bf_emma"), 0.1)
    assert not voices.shares(blend)
    assert voices.first_of("bf_emma:1,ef_dora:3") == "bf_emma"


@pytest.mark.parametrize("voice", ["af_sky", "af_heart:0.5,af_sky:0.5", "../af_heart", "", "a,b"])
def test_a_voice_that_is_not_there_is_told_with_those_that_are(tmp_path: Path, voice: str) -> None:
    voices = write_voices(tmp_path, "af_heart", "bf_emma")

    with pytest.raises(VoiceNotFound) as refused:
        voices.pack(voice)

    assert refused.value.data == {"voices": ["af_heart", "bf_emma"]}
    assert refused.value.param == "voice"


def test_a_model_without_voices_does_not_load(tmp_path: Path) -> None:
    with pytest.raises(ModelLoadFailed, match="no voices"):
        KokoroVoices(tmp_path)


def test_a_voice_of_the_wrong_size_is_found_before_it_is_asked_for(tmp_path: Path) -> None:
    (tmp_path / "af_heart.bin").write_bytes(b"1234")

    with pytest.raises(ModelLoadFailed, match="af_heart has 4 bytes"):
        KokoroVoices(tmp_path)


def test_a_voice_that_is_no_file_is_found_before_it_is_asked_for(tmp_path: Path) -> None:
    write_voices(tmp_path, "af_heart")
    (tmp_path / "af_dead.bin").symlink_to(tmp_path / "nowhere")

    with pytest.raises(ModelLoadFailed, match="af_dead has 0 bytes"):
        KokoroVoices(tmp_path)


def test_a_voice_lost_or_damaged_later_fails_its_request_alone(tmp_path: Path) -> None:
    voices = write_voices(tmp_path, "af_heart", "bf_emma", "bm_george")
    (tmp_path / "bf_emma.bin").unlink()
    np.full(PACK_SHAPE, np.nan, "<f4").tofile(tmp_path / "bm_george.bin")

    for damaged in ("bf_emma", "bm_george", "af_heart:0.5,bf_emma:0.5"):
        with pytest.raises(ModelLoadFailed, match="is damaged on the server; take another"):
            voices.pack(damaged)
    assert voices.pack("af_heart").shape == PACK_SHAPE
