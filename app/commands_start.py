"""A service that does not start: said to the dead-man's switch, since no tick will say it."""

from __future__ import annotations

import asyncio
import random
from typing import TYPE_CHECKING

from app import settings
from app.domain.errors import ConfigError, DatabaseUnavailable, SchemaOutdated

if TYPE_CHECKING:
    import argparse

    from app.domain.errors import ServiceError

TICKING = frozenset({"serve", "work", "tick"})
"""The commands that are there to tick."""


def tell_no_start(args: argparse.Namespace, error: ServiceError) -> None:
    """Ping, where the address of the switch can be read, whatever else cannot.

    In public words: how many problems there are, and not which. A tick that finds no database has pinged itself.
    """
    if args.command not in TICKING or isinstance(error, DatabaseUnavailable | SchemaOutdated):
        return
    try:
        url = settings.heartbeat_url_of(settings.from_process())
    except ConfigError:  # the file .env cannot be read either
        return
    if url is not None:
        from app.clients import heartbeat  # noqa: PLC0415 - `wakebell --help` is to come at once

        asyncio.run(heartbeat.tell_failure(url, words_of(error), random=random.SystemRandom()))


def words_of(error: ServiceError) -> str:
    """What anybody may read of why the service does not start."""
    if not isinstance(error, ConfigError):
        return "the service does not start; its log says why"
    count = len(error.problems)
    problems = "a problem" if count == 1 else f"{count} problems"
    return f"the service does not start: its configuration has {problems}; `wakebell check` tells of all"
