"""How often the no-op handler has run in this process."""

from __future__ import annotations

import asyncio

_ran = 0
_wanted = 0
_reached: asyncio.Event | None = None


def count() -> None:
    """Once more."""
    global _ran  # noqa: PLW0603 - one process, one trial
    _ran += 1
    if _reached is not None and _ran >= _wanted:
        _reached.set()


def ran() -> int:
    """So often until now."""
    return _ran


async def reach(wanted: int) -> None:
    """Wait until it has run so often in all: for workers that do not end by themselves."""
    global _wanted, _reached
    _wanted, _reached = wanted, asyncio.Event()
    if _ran < wanted:
        await _reached.wait()
