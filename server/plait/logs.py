"""Structured logs on stderr: one line per transition, with session and stream id, never a payload.

JSON when stderr is not a terminal, readable columns when it is. Uvicorn's own loggers are kept to
warnings, because its access lines print URLs and a URL may carry what does not belong in a log.
"""

from __future__ import annotations

import logging
import sys

import structlog


def configure(level: str) -> None:
    """Set up structlog and the standard library's root for this process."""
    threshold = getattr(logging, level.upper())
    terminal = sys.stderr.isatty()
    renderer = structlog.dev.ConsoleRenderer() if terminal else structlog.processors.JSONRenderer()
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info,
            renderer,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(threshold),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
        cache_logger_on_first_use=True,
    )
    logging.basicConfig(
        stream=sys.stderr, level=logging.WARNING, format="%(levelname)s %(name)s %(message)s"
    )
    logging.getLogger("uvicorn.error").addFilter(_is_not_the_peers_fault)


def _is_not_the_peers_fault(record: logging.LogRecord) -> bool:
    """Uvicorn logs a peer's invalid UTF-8 with a traceback of its own; the 1007 says enough."""
    return "Invalid UTF-8" not in record.getMessage()
