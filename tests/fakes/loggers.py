"""Loggers that a test has configured, as they were before."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager

from app import logs


@contextmanager
def kept() -> Iterator[None]:
    """The handlers of the root logger and all levels are the same again afterwards."""
    root = logging.getLogger()
    handlers = root.handlers[:]
    levels = {logger: logger.level for logger in (root, *map(logging.getLogger, logs.QUIET))}
    yield
    root.handlers[:] = handlers
    for logger, level in levels.items():
        logger.setLevel(level)
