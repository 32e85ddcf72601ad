"""The engine `onnx`: embeddings of any number of texts in micro-batches.

A step is one micro-batch (see `packing`), of texts of all running jobs. It is computed in a thread
of its own, so a cancel of any job that is not in it is released at once; a cancel of one that is
cuts it short, and the others' texts are computed again. While it runs the next texts are encoded
and answers go out. A text that cannot be embedded is answered with an error and ends nothing else;
where a batch fails its texts are tried alone. Knows no sockets, streams or scheduling.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

import msgspec
import numpy as np

from plait.engines.base import (
    CancelFlags,
    EngineInfo,
    Event,
    Feed,
    Finished,
    Item,
    LoadSpec,
    Prepare,
    Prepared,
    Stats,
)
from plait.engines.computing import CallThread, ComputingThread
from plait.engines.embed.encoding import TextEncoder
from plait.engines.embed.job import EmbedJob, job_bytes, read_params, texts_ahead
from plait.engines.embed.model import EmbeddingModel, Floats, Interrupted
from plait.engines.embed.packing import Batch, Pace, Packer
from plait.engines.embed.pooling import normalized
from plait.engines.embed.texts import no_vector
from plait.engines.job_keeping import JobKeeping
from plait.errors import InvalidRequest, UnsupportedMethod
from plait.wire.messages import Format

# How long a step waits for a batch at most, if no command comes.
SLICE_SECONDS = 0.05
ENCODE_SECONDS = 0.005
# Steps go on while a batch hangs, so nobody else would notice.
STALLED_SECONDS = 60.0
# Paused streams keep their memory and yield their slot, so there is room for more than the slots.
JOBS_PER_SLOT = 8


class EmbedEngine(JobKeeping[EmbedJob]):
    """Implements `Engine` for embed; see the module's docstring."""

    def __init__(
        self,
        spec: LoadSpec,
        flags: CancelFlags,
        model: EmbeddingModel,
        encoder: TextEncoder,
        *,
        pace: Pace | None = None,
        thread: CallThread[Floats] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._packer = Packer()
        super().__init__(spec, self._packer, clock)
        self._flags = flags
        self._model = model
        self._encoder = encoder
        self._settings = encoder.settings
        self._ahead = texts_ahead(self._settings)
        self._job_bytes = job_bytes(self._settings)
        self._pace = pace or Pace()
        self._thread = ComputingThread[Floats]("batches") if thread is None else thread
        # What is under way; also read by the command reader thread.
        self._computing: Batch | None = None
        self._submitted_at = 0.0

    @property
    def info(self) -> EngineInfo:
        spec, settings = self._spec, self._settings
        return EngineInfo(
            engine=spec.engine,
            model=spec.model,
            methods=["embed"],
            slots=spec.slots,
            context_tokens=settings.max_tokens,
            max_tokens=0,
            kv_budget_bytes=spec.kv_budget_bytes or spec.slots * JOBS_PER_SLOT * self._job_bytes,
            kv_kind="freed",
            format=Format("f32", dims=settings.dims),
            cores=spec.threads,
        )

    # --- a job's life --------------------------------------------------------------------------

    def prepare(self, job: Prepare) -> Prepared:
        """Nothing is encoded yet: a job's texts may be many."""
        if job.method != "embed":
            raise UnsupportedMethod(f"Model '{self._spec.model}' does embed, not '{job.method}'.")
        params = read_params(job)
        texts, entry = params.texts, EmbedJob(job.job, params, self._encoder, self._ahead)
        if texts is None:
            entry.fed = True
        else:
            entry.params = msgspec.structs.replace(params, texts=None)  # they are let go one by one
            entry.feed(texts)
            entry.finish_input()
        self._jobs[job.job] = entry
        return Prepared(job.job, 0, self._job_bytes, 0)

    def feed(self, feed: Feed) -> None:
        """Legal before and after `start`. Raises InvalidRequest when the texts are complete."""
        entry = self._jobs.get(feed.job)
        if entry is None:
            return
        if entry.input_ended:
            raise InvalidRequest("The texts of this stream are complete; open another for more.")
        entry.feed(feed.texts or ())

    def resume(self, job: int) -> None:
        super().resume(job)
        assert self._slots_used() <= self._spec.slots, "the scheduler overbooked the slots"

    def cancel(self, job: int) -> None:
        entry = self._jobs.get(job)
        if entry is None:
            return
        if not entry.started:
            del self._jobs[job]
        elif self._computing is not None and job in self._computing.jobs:
            if not entry.leaving:
                entry.leaving = True
                self._model.interrupt()
        else:
            self._release(entry)

    # --- computing -----------------------------------------------------------------------------

    def interrupt(self) -> None:
        """From the command reader thread. Only a batch with texts of a job that is cancelled is
        cut short; any other goes on while the command is answered."""
        batch = self._computing
        if batch is not None and any(self._flags.stamp(job) is not None for job in batch.jobs):
            # If it has just ended, the next one is cut instead, and computed again.
            self._model.interrupt()
        self._thread.wake()

    def step(self) -> list[Event]:
        """A slice of a batch. A batch that never ends is a crash: the worker is started anew."""
        if self._computing is not None:
            if self._thread.wait(SLICE_SECONDS):
                self._take_batch(self._computing)
            elif self._clock() - self._submitted_at > STALLED_SECONDS:
                raise RuntimeError(f"a batch has been under way for {STALLED_SECONDS:g} s")
        if self._computing is None:
            self._submit()
        self._encode()
        self._answer()
        events, self._events = self._events, []
        return events

    def _submit(self) -> None:
        batch = self._packer.pack(self._pace.tokens)
        if batch is None:
            return
        self._computing = batch
        # Asked after `_computing` is set: a cancel is seen here, or it sees what it must cut.
        if any(self._flags.stamp(job) is not None for job in batch.jobs):
            self._computing = None
            self._put_back(batch)
            return
        self._submitted_at = self._clock()
        texts = batch.texts
        self._thread.submit(lambda: self._model.embed(texts))

    def _put_back(self, batch: Batch) -> None:
        for job in {job.id: job for job, _ in batch.entries}.values():
            job.put_back(batch.texts_of(job))

    def _take_batch(self, batch: Batch) -> None:
        self._computing = None
        try:
            vectors = self._thread.take()
        except Interrupted:
            self._model.rearm()
            self._put_back(batch)
        except Exception as error:  # noqa: BLE001 - whatever breaks is these texts' failure
            self._blame(batch, error)
        else:
            self._pace.took(batch.tokens, self._clock() - self._submitted_at)
            self._share_out(batch, vectors)
        for job in {job.id: job for job, _ in batch.entries}.values():
            if job.leaving:
                self._release(job)

    def _share_out(self, batch: Batch, vectors: Floats) -> None:
        finite = np.atleast_1d(np.isfinite(vectors).all(axis=1))
        for (job, text), vector, is_finite in zip(batch.entries, vectors, finite, strict=True):
            if job.leaving:
                # Computed after its cancel: the loop counts it as wasted, and sends nothing.
                self._events.append(Item(job.id, b"", 1, aux=text.index))
            elif not is_finite:
                job.answer(text, no_vector(text.index, "gave no finite vector for it"))
            elif job.params.normalize or self._settings.normalize:
                job.answer(text, normalized(vector))
            else:
                job.answer(text, vector.copy())

    def _blame(self, batch: Batch, error: Exception) -> None:
        """A batch failed: its texts are tried one by one; one that fails alone is at fault."""
        # Without the message, which may quote what the peer sent.
        sys.stderr.write(f"embed: a batch of {len(batch.entries)} broke: {type(error).__name__}\n")
        if len(batch.entries) == 1:
            ((job, text),) = batch.entries
            job.answer(text, no_vector(text.index, "could not compute it"))
            return
        for _, text in batch.entries:
            text.alone = True
        self._put_back(batch)

    def _encode(self) -> None:
        """Those first that have least to compute; a step must not grow with their number."""
        until = self._clock() + ENCODE_SECONDS
        jobs = [job for job in self._jobs.values() if job.can_encode]
        for job in sorted(jobs, key=lambda job: len(job.waiting)):
            if self._flags.stamp(job.id) is None:
                job.encode()
            if self._clock() >= until:
                return

    def _answer(self) -> None:
        for job in list(self._jobs.values()):
            if job.can_answer:
                self._events += job.take_events()
            if job.active and job.ended:
                self._events.append(Finished(job.id, "stop", job.usage))
                self._release(job)
            elif job.starves:
                self._events.append(job.starve())

    @property
    def idle(self) -> bool:
        return (
            not self._events and self._computing is None and not any(map(_has_work, self._jobs_now))
        )

    @property
    def _jobs_now(self) -> list[EmbedJob]:
        return [job for job in self._jobs.values() if job.active]

    def stats(self) -> Stats:
        held = sum(job.held_bytes for job in self._jobs.values() if job.started)
        return Stats(slots_used=self._slots_used(), kv_bytes=held)

    def close(self) -> None:
        self._jobs.clear()
        self._model.interrupt()
        self._thread.close()
        self._model.close()


def _has_work(job: EmbedJob) -> bool:
    return bool(job.waiting) or job.can_encode or job.can_answer or job.ended or job.starves
