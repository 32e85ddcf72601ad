"""How big the proofs are: bounded in every test run, full with PLAIT_TEST_PROOF=full.

The reduced sizes prove the same things on two slow cores in a few minutes; `make proof` runs the
sizes the requirements name, and writes them down.
"""

from __future__ import annotations

import os

FULL = os.environ.get("PLAIT_TEST_PROOF") == "full"
TEST_SECONDS = 1800 if FULL else 400

SLOTS = 4
CONTEXT_TOKENS = 2048
MAX_TOKENS = 200

# mlx-lm on a Linux CPU takes 0.1 to 0.3 s a step.
CANCELS = {"llamacpp": 500, "mlx": 500} if FULL else {"llamacpp": 60, "mlx": 12}
LONG_WORDS = 1400 if FULL else 300  # about 1.1 tokens a word
PROMPTS = 30 if FULL else 5
ANSWER_TOKENS = 40 if FULL else 8

# Speech takes about half as long as it lasts.
SPEECH_CANCELS = 200 if FULL else 24
HANG_UPS = 60 if FULL else 6
PARAGRAPH_CHARACTERS = 3000 if FULL else 350
UNBROKEN_CHARACTERS = 1200 if FULL else 150
WORD_CHARACTERS = 600 if FULL else 60
SPEECH_LANGUAGES = ("en", "ja", "zh") if FULL else ("en",)
SPEECH_SPEED = 1.0 if FULL else 2.0  # of long texts: half the audio, half the time

# Connections of up to four streams of any method, eight at a time.
SOAK_CONNECTIONS = 4000 if FULL else 40

# Streams that listen at once: one more than decode beside a cancel.
LISTENERS = 6
TRANSCRIBE_CANCELS = 100 if FULL else 12
TRANSCRIBE_STOPS = 100 if FULL else 3
