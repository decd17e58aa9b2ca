"""`[memory]`: how much of each conversation is remembered."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta


@dataclass(frozen=True, slots=True, kw_only=True)
class MemorySettings:
    """`[memory]`, read."""

    turns: int = 12
    """Things said, by either side."""

    keep: timedelta = timedelta(days=7)
    """After the last one."""
