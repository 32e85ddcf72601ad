"""How many streams the cores can follow, and what each of them holds.

Pure arithmetic on what was measured once, at load. Does NOT know how it was measured.
"""

from __future__ import annotations

import math

# The measured window: about what a segment has grown to at half its length.
WINDOW_SECONDS = 6.0
# Under load a stream decodes all that came since its last turn; wider than this, text is hardly
# live, and the decodes that close segments come as often anyway.
WIDEST_STEP_SECONDS = 1.5
# The rest is for VAD, resampling and the system.
UTILISATION = 0.9
MOST_SLOTS = 64

# Paused streams keep their process and yield their slot, so there is room for more than the slots.
STREAMS_PER_SLOT = 8
MIB = 1024 * 1024
FORKED_BYTES = 96 * MIB  # private pages of a forked child: measured 40 to 80 MB
SPAWNED_BYTES = 128 * MIB  # an interpreter with its libraries, besides the weights


def slots_for(decode_seconds: float, cores: int) -> int:
    """Streams that may talk at once when a `WINDOW_SECONDS` decode costs `decode_seconds` of CPU.

    Each decodes once per `WIDEST_STEP_SECONDS`. At least 1: one stream works as fast as it can.
    """
    busy = max(decode_seconds, 1e-3) / WIDEST_STEP_SECONDS
    return max(1, min(MOST_SLOTS, math.floor(cores * UTILISATION / busy)))


def stream_bytes(weights_bytes: int, *, forked: bool) -> int:
    """What one stream is booked with: a forked child shares the weights, a spawned one does not."""
    return FORKED_BYTES if forked else SPAWNED_BYTES + weights_bytes
