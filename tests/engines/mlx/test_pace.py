from __future__ import annotations

from plait.engines.mlx.pace import FIRST_TOKENS, LEAST_TOKENS, MOST_TOKENS, StepPace


def paced(seconds_per_token: float, steps: int = 20) -> StepPace:
    pace = StepPace()
    for _ in range(steps):
        tokens = pace.chunk_tokens
        pace.observe_prefill(seconds_per_token * tokens, tokens, decoding=False)
    return pace


def test_a_chunk_takes_about_fifty_milliseconds() -> None:
    assert paced(seconds_per_token=0.0005).chunk_tokens == 100


def test_a_slow_machine_still_moves_prompts_on() -> None:
    assert paced(seconds_per_token=0.1).chunk_tokens == LEAST_TOKENS


def test_a_fast_machine_grows_in_doublings_up_to_a_bound() -> None:
    assert paced(seconds_per_token=1e-7, steps=1).chunk_tokens == 2 * FIRST_TOKENS
    assert paced(seconds_per_token=1e-7).chunk_tokens == MOST_TOKENS


def test_the_decode_of_other_rows_is_not_charged_to_the_chunk() -> None:
    pace = StepPace()
    pace.observe_decode(0.04)

    pace.observe_prefill(0.04 + 0.025, 32, decoding=True)

    assert pace.chunk_tokens == 64


def test_a_wrong_decode_estimate_cannot_make_chunks_look_free() -> None:
    pace = StepPace()
    pace.observe_decode(10.0)

    for _ in range(10):
        pace.observe_prefill(4.0, 32, decoding=True)

    assert pace.chunk_tokens == LEAST_TOKENS


def test_a_step_that_prefilled_nothing_teaches_nothing() -> None:
    pace = StepPace()

    pace.observe_prefill(1.0, 0, decoding=False)

    assert pace.chunk_tokens == FIRST_TOKENS
