"""Audio of one stream that was received and not listened to yet, in slices.

Bounded by the client's upload credit, ten seconds, which comes back only as it is listened to.
More than `FLOOD_SECONDS` of it is no live audio: a recording, or a stream that fell behind. Beside
a decode no more of it counts as live than comes by meanwhile, and that much. Does NOT know who
listens, nor when.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from plait.engines.whisper.messages import Audio
from plait.wire.params import TranscribeParams

FLOOD_SECONDS = 2.0
# Between slices a stream hears what else comes: each takes it some 50 ms at most.
SLICE_BYTES = 32 * 1024


class Unheard:
    """`clock`: monotonic seconds."""

    def __init__(self, params: TranscribeParams, clock: Callable[[], float]) -> None:
        self._bytes_per_second = params.bytes_per_second
        self._flood_bytes = FLOOD_SECONDS * params.bytes_per_second
        self._clock = clock
        self._waiting: deque[Audio] = deque()
        self._size_bytes = 0
        self._decode_began = 0.0
        self._beside_bytes = 0

    def __bool__(self) -> bool:
        return bool(self._waiting)

    @property
    def floods(self) -> bool:
        return self._size_bytes > self._flood_bytes

    @property
    def live(self) -> bool:
        """What is next may be listened to beside the decode that runs."""
        came_by = self._bytes_per_second * (self._clock() - self._decode_began)
        return not self.floods and self._beside_bytes <= self._flood_bytes + came_by

    def begin_decode(self) -> None:
        self._decode_began = self._clock()
        self._beside_bytes = 0

    def put(self, audio: Audio) -> None:
        self._waiting.append(audio)
        self._size_bytes += len(audio.data)

    def take(self) -> tuple[memoryview, float]:
        """The next slice, and when it was received."""
        audio = self._waiting[0]
        part, audio.data = audio.data[:SLICE_BYTES], audio.data[SLICE_BYTES:]
        if not audio.data:
            self._waiting.popleft()
        self._size_bytes -= len(part)
        self._beside_bytes += len(part)
        return part, audio.at
