"""WAV files as `transcribe.file` takes them: headers, samples, and what is refused."""

from __future__ import annotations

import io
import struct
from array import array
from pathlib import Path

import pytest

from plait.client import connect
from plait.client.wav import wav
from plait.client.wav_file import PIECE_BYTES, WavFile
from plait.errors import InvalidAudio
from plait.wire.codec import decode_params
from plait.wire.messages import Accepted, End, Open, Started, TranscribeParams
from tests.client.peer import Peer, done, serving

PCM, FLOAT, MU_LAW, EXTENSIBLE = 1, 3, 7, 0xFFFE
SAMPLES = array("h", [0, 1, -1, 32767, -32768, 258])


def chunk(name: bytes, data: bytes, size: int | None = None) -> bytes:
    size_bytes = len(data) if size is None else size
    return name + size_bytes.to_bytes(4, "little") + data + b"\0" * (len(data) % 2)


def wave_file(
    data: bytes,
    format: int = PCM,
    bits: int = 16,
    rate: int = 16000,
    channels: int = 1,
    *,
    before: bytes = b"",
    size: int | None = None,
    extra: bytes = b"",
) -> bytes:
    width = bits // 8 * channels
    facts = struct.pack("<HHIIHH", format, channels, rate, rate * width, width, bits) + extra
    body = b"WAVE" + chunk(b"fmt ", facts) + before + chunk(b"data", data, size)
    return chunk(b"RIFF", body)


def samples_of(file: WavFile) -> bytes:
    return b"".join(iter(file.read, b""))


def as_read(data: bytes) -> tuple[str, bytes]:
    file = WavFile.open(data)
    return file.encoding, samples_of(file)


PCM16 = SAMPLES.tobytes()
IN_24_BITS = b"".join((value * 256 + 7).to_bytes(3, "little", signed=True) for value in SAMPLES)
IN_32_BITS = b"".join((value * 65536 + 70).to_bytes(4, "little", signed=True) for value in SAMPLES)
IN_8_BITS = bytes([0, 128, 255])
FLOATS = struct.pack("<3f", 0.0, 0.5, -1.0)
DOUBLES = struct.pack("<3d", 0.0, 0.5, -1.0)


@pytest.mark.parametrize(
    ("file", "expected"),
    [
        (wave_file(PCM16), ("pcm_s16le", PCM16)),
        (wave_file(IN_24_BITS, bits=24), ("pcm_s16le", PCM16)),
        (wave_file(IN_32_BITS, bits=32), ("pcm_s16le", PCM16)),
        (wave_file(IN_8_BITS, bits=8), ("pcm_s16le", struct.pack("<3h", -32768, 0, 32512))),
        (wave_file(FLOATS, FLOAT, 32), ("pcm_f32le", FLOATS)),
        (wave_file(DOUBLES, FLOAT, 64), ("pcm_f32le", FLOATS)),
    ],
    ids=["16 bits", "24 bits", "32 bits", "8 bits", "floats", "doubles"],
)
def test_samples_of_every_common_kind_are_read(file: bytes, expected: tuple[str, bytes]) -> None:
    assert as_read(file) == expected


def test_what_a_header_may_hold_besides_is_passed_over() -> None:
    extensible = struct.pack("<HHI", 22, 16, 4) + PCM.to_bytes(2, "little") + bytes(14)
    files = [
        wave_file(PCM16, before=chunk(b"LIST", b"odd")),
        wave_file(PCM16, EXTENSIBLE, extra=extensible),
        wave_file(PCM16) + chunk(b"LIST", b"not sound"),
        wav(PCM16, 16000),
    ]
    assert [as_read(file) for file in files] == [("pcm_s16le", PCM16)] * 4


@pytest.mark.parametrize("size", [0, 0xFFFFFFFF, 4000])
def test_a_length_that_is_not_filled_in_or_too_long_means_until_the_end(size: int) -> None:
    assert as_read(wave_file(PCM16, size=size)) == ("pcm_s16le", PCM16)


def test_half_a_sample_at_the_end_is_dropped() -> None:
    assert as_read(wave_file(IN_24_BITS[:-1], bits=24)) == ("pcm_s16le", PCM16[:-2])


@pytest.mark.parametrize(
    ("file", "why"),
    [
        (b"", "no WAV file"),
        (b"ID3\x04 an mp3", "ffmpeg"),
        (b"RIFF\0\0\0\0AVI LIST", "no WAV file"),
        (wave_file(PCM16)[:20], "cut short"),
        (wave_file(PCM16)[:36], "ends before"),
        (chunk(b"RIFF", b"WAVE" + chunk(b"data", PCM16)), "ends before"),
        (wave_file(PCM16, MU_LAW, 8), "format 7 with 8 bits"),
        (wave_file(PCM16, rate=96000), "96000 Hz"),
        (wave_file(PCM16, rate=0), "0 Hz"),
        (wave_file(PCM16, channels=6), "6 channels"),
    ],
)
def test_what_cannot_be_sent_says_why_and_what_helps(file: bytes, why: str) -> None:
    with pytest.raises(InvalidAudio, match=why) as caught:
        WavFile.open(file)
    assert "Convert it" in caught.value.message


class Pipe(io.RawIOBase):
    """It gives little at a time and cannot seek; `asked` is the most it was asked for."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.asked = 0

    def read(self, size: int = -1, /) -> bytes:
        assert size >= 0, "all of it at once"
        self.asked = max(self.asked, size)
        head, self.data = self.data[: min(size, 1000)], self.data[min(size, 1000) :]
        return head


def test_a_long_file_is_read_piece_by_piece_even_from_a_pipe() -> None:
    data = bytes(range(256)) * 4000
    pipe = Pipe(wave_file(data, before=chunk(b"JUNK", bytes(100_001))))
    file = WavFile.open(pipe)  # type: ignore[arg-type]

    assert samples_of(file) == data
    file.close()
    assert pipe.asked <= PIECE_BYTES
    assert not pipe.closed


# --- through the client ------------------------------------------------------------------------


async def transcribed(peer: Peer, size_bytes: int, opened: list[Open], audio: list[bytes]) -> None:
    opened.append(await peer.receive_open())
    id = opened[-1].id
    await peer.send(Accepted(id, "queued", 0, window_bytes=1 << 20), Started(id, "m"))
    audio.append(b"".join(await peer.receive_audio(size_bytes)))
    assert await peer.receive() == End(id)
    await peer.hear(id, 1, "Hello.", is_final=True)
    await peer.send(done(id, 1))
    await peer.gone()


async def test_a_file_goes_up_without_its_header_and_as_its_header_says(tmp_path: Path) -> None:
    data = wave_file(SAMPLES.tobytes(), rate=44100, channels=2)
    path = tmp_path / "speech.wav"
    path.write_bytes(data)
    opened: list[Open] = []
    audio: list[bytes] = []

    async def script(peer: Peer) -> None:
        await transcribed(peer, len(PCM16), opened, audio)

    for source in (path, str(path), data, io.BytesIO(data)):
        async with serving(script) as url, connect(url) as client:
            assert (await client.transcribe.file(source)).text == "Hello."
    assert audio == [PCM16] * 4
    params = {bytes(message.params) for message in opened}
    assert [decode_params("transcribe", raw) for raw in params] == [
        TranscribeParams(44100, channels=2, interim=False)
    ]


async def test_what_is_no_wav_file_never_opens_a_stream(tmp_path: Path) -> None:
    (tmp_path / "song.mp3").write_bytes(b"ID3\x04")

    async with serving(Peer.gone) as url, connect(url) as client:
        with pytest.raises(InvalidAudio):
            await client.transcribe.file(tmp_path / "song.mp3")
        with pytest.raises(FileNotFoundError):
            await client.transcribe.file(tmp_path / "none.wav")
        assert not client.live_ids
