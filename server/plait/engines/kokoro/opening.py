"""A loaded Kokoro backend → the engine around it: norms, voices, front end, and a warm-up.

Both backends end their `load` here, so they differ in their three functions only. The warm-up
speaks once, because first calls plan memory and kernels. Does NOT know which backend it has.
"""

from __future__ import annotations

from pathlib import Path

from plait.engines.base import CancelFlags, LoadSpec, Report
from plait.engines.kokoro.engine import KokoroEngine
from plait.engines.kokoro.model import KokoroModel
from plait.engines.kokoro.norms import NormPredictor
from plait.engines.kokoro.synthesis import Synthesizer
from plait.engines.kokoro.voices import KokoroVoices
from plait.errors import ModelLoadFailed
from plait.speech.front import FrontEnd

WARM_UP = "wan tu tri, for faiv siks."


def open_engine(
    spec: LoadSpec, flags: CancelFlags, report: Report, model: KokoroModel
) -> KokoroEngine:
    """`spec.options["voices"]`: the directory of voices. Raises ModelLoadFailed."""
    report("voices", 50)
    voices = KokoroVoices(Path(spec.options["voices"]))
    # All of them now: the first use of a language would stall everybody's streams for seconds.
    languages = FrontEnd.languages()
    front_end = FrontEnd.load(languages, report=lambda phase, percent: report(phase, 60))
    report("warm-up", 80)
    synthesizer = Synthesizer(model, NormPredictor.load())
    utterance = synthesizer.begin(WARM_UP, voices.pack(voices.names[0]), 1.0, 0)
    try:
        while not utterance.done:
            utterance.next_window()
    except (RuntimeError, ValueError, MemoryError) as error:
        raise ModelLoadFailed(
            "The speech model was loaded but could not speak; verify it or install it again."
        ) from error
    return KokoroEngine(spec, flags, synthesizer, front_end, voices)
