"""How much chaos: bounded in every test run, full with PLAIT_TEST_PROOF=full (`make chaos`).

Every random choice comes from a seed that is part of its test's name; PLAIT_TEST_SEED asks for
another one.
"""

from __future__ import annotations

import os

from tests.proofs.sizes import FULL

TEST_SECONDS = 1800 if FULL else 170

_asked = os.environ.get("PLAIT_TEST_SEED")
SEEDS = (int(_asked),) if _asked else (1, 2, 3) if FULL else (1,)

DEATHS = 24 if FULL else 4
SHORT_STOPS = 100 if FULL else 8
OPENS_PER_CONNECTION = 10_000 if FULL else 1_000
RESETS = 2_000 if FULL else 150
FUZZED_CONNECTIONS = 600 if FULL else 40
MUTATED_REQUESTS = 2_000 if FULL else 100
IDLE_SOCKETS = 1_000 if FULL else 100
STOPPED_GATEWAY_SECONDS = 40.0 if FULL else 12.0  # beyond every time-out; beyond a ping
