"""Structured logs on stderr: one line per transition, with session and stream id, never a payload.

JSON when stderr is not a terminal, readable columns when it is. Uvicorn's own loggers are kept to
warnings, because its access lines print URLs and a URL may carry what does not belong in a log.
"""

from __future__ import annotations

import logging
import sys
from contextlib import suppress
from typing import TextIO, cast

import structlog


def configure(level: str) -> None:
    """Set up structlog and the standard library's root for this process."""
    threshold = getattr(logging, level.upper())
    terminal = sys.stderr.isatty()
    renderer = structlog.dev.ConsoleRenderer() if terminal else structlog.processors.JSONRenderer()
    stream = cast("TextIO", _WhileTaken(sys.stderr))  # as far as a log needs one
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info,
            renderer,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(threshold),
        logger_factory=structlog.PrintLoggerFactory(stream),
        cache_logger_on_first_use=True,
    )
    logging.basicConfig(
        stream=stream, level=logging.WARNING, format="%(levelname)s %(name)s %(message)s"
    )
    logging.getLogger("uvicorn.error").addFilter(_is_not_the_peers_fault)


class _WhileTaken:
    """Lines that cannot be written are lost: their reader is gone, or the disk is full.

    A stream does not end for want of its log line, and there is nowhere to say so.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        with suppress(OSError):
            self._stream.write(text)
        return len(text)

    def flush(self) -> None:
        with suppress(OSError):
            self._stream.flush()


def _is_not_the_peers_fault(record: logging.LogRecord) -> bool:
    """Uvicorn logs a peer's invalid UTF-8 with a traceback of its own; the 1007 says enough."""
    return "Invalid UTF-8" not in record.getMessage()
