from __future__ import annotations

from plait.engines.base import Fault
from plait.engines.restart import Death, Limits, RestartPolicy
from plait.errors import EngineCrashed, ModelLoadFailed, OutOfMemory


def delays(policy: RestartPolicy, *ready_seconds: float | None) -> list[float | None]:
    return [policy.judge(Death("signal 9", seconds)).delay_seconds for seconds in ready_seconds]


def test_the_delay_doubles_up_to_its_maximum() -> None:
    policy = RestartPolicy("m", Limits())

    waits = delays(policy, *[1.0] * 10)

    assert waits == [0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 12.8, 25.6, 30.0]


def test_a_minute_of_health_starts_the_delay_afresh() -> None:
    policy = RestartPolicy("m", Limits())

    assert delays(policy, 1.0, 59.9, 60.0, 1.0) == [0.1, 0.2, 0.1, 0.2]


def test_a_stated_load_failure_is_final_whatever_its_code_was() -> None:
    policy = RestartPolicy("m", Limits())
    fault = Fault.of(OutOfMemory("needs 4 GB"))

    verdict = policy.judge(Death("exit status 0", None, fault))

    assert verdict.delay_seconds is None
    assert isinstance(verdict.error, ModelLoadFailed)
    assert verdict.error.message == "needs 4 GB"


def test_five_deaths_in_a_row_while_loading_are_final() -> None:
    policy = RestartPolicy("m", Limits())

    assert delays(policy, *[None] * 5) == [0.1, 0.2, 0.4, 0.8, None]


def test_having_been_ready_starts_the_count_of_load_deaths_afresh() -> None:
    policy = RestartPolicy("m", Limits(max_deaths_while_loading=2))

    assert None not in delays(policy, None, 1.0, None, 1.0, None)


def test_the_error_says_what_happened_and_when_to_retry() -> None:
    verdict = RestartPolicy("m", Limits()).judge(Death("signal 9", 3.0))

    assert isinstance(verdict.error, EngineCrashed)
    assert "model 'm' stopped (signal 9)" in verdict.error.message
    assert verdict.error.retry_after_ms == 100


def test_a_machine_that_starts_no_process_counts_nothing_against_the_model() -> None:
    policy = RestartPolicy("m", Limits())

    verdicts = [policy.judge(Death("it could not be started", spawned=False)) for _ in range(11)]

    assert [verdict.delay_seconds for verdict in verdicts[-3:]] == [25.6, 30.0, 30.0]
