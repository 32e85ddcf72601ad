"""What a llama.cpp job computed after its cancel: prompt by chunks, and the step under way."""

from __future__ import annotations

from plait.engines.chat.text import AnswerText, Vocabulary
from plait.engines.llamacpp.job import Job
from plait.engines.llamacpp.wire import Progress
from plait.wire.messages import ChatParams

CHUNK = 4


def reading_job() -> Job:
    """Of a prompt of ten tokens."""
    params = ChatParams(messages=[])
    answer = AnswerText(Vocabulary([], frozenset()), (), 8)
    job = Job(1, "a", params, list(range(10)), answer, max_tokens=8)
    job.begin_request()
    return job


def progress(job: Job, processed: int, cache: int = 0) -> Progress:
    return Progress(len(job.prompt), cache, processed)


def test_chunks_read_before_the_cancel_are_not_wasted_and_those_after_are() -> None:
    job = reading_job()

    job.note_progress(progress(job, 4))
    job.note_progress(progress(job, 8), dead=True)

    assert (job.wasted_prompt, job.processed_tokens) == ([4], 8)


def test_what_was_in_the_cache_was_not_computed() -> None:
    job = reading_job()

    job.note_progress(progress(job, 6, cache=5), dead=True)

    assert job.wasted_prompt == [1]


def test_the_step_under_way_is_a_chunk_while_the_prompt_is_read() -> None:
    job = reading_job()
    job.note_progress(progress(job, 4))

    job.waste_step(CHUNK)

    assert (job.wasted_prompt, job.wasted) == ([CHUNK], 0)


def test_the_step_under_way_is_no_longer_than_what_is_left_of_the_prompt() -> None:
    job = reading_job()
    job.note_progress(progress(job, len(job.prompt) - 1))

    job.waste_step(CHUNK)

    assert job.wasted_prompt == [1]
