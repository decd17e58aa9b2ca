"""Whether the configuration file is still one that a start could use: a change is no more than heard of until then."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from app import settings
from app.domain.alerts import Sign, Well, key_of
from app.domain.errors import ConfigError

if TYPE_CHECKING:
    from app.settings import Settings

LASTING = 3600.0
"""Seconds for which this process, having seen a file broken, is the one to say that it is as it was."""

_BROKEN_AT: dict[str, float] = {}
"""When it saw that, by its monotonic clock."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """One of the two, or neither: the file is away, as it is where a start is under way."""

    sign: Sign | None = None
    well: Well | None = None


def look(configured: Settings) -> Found:
    """Read the file again where its content is another. What this process uses stays as it was read.

    Who started after an alert about the file was told, or reads it well now, knows better than whoever told it: with
    two replicas each has a file of its own.
    """
    path = configured.environment.config_path
    mark = settings.mark_of(path)
    key = key_of("config_broken", path.name)
    if mark is None:
        return Found()
    now = time.monotonic()
    if mark == configured.mark:  # or again
        mended = now - _BROKEN_AT.get(str(path), -math.inf) < LASTING
        return Found(well=Well(key=key, seconds=0 if mended else now - configured.read_at))
    try:
        settings.load({**settings.from_process(), "WAKEBELL_CONFIG": str(path)})
    except ConfigError as error:
        more = len(error.problems) - 1
        _BROKEN_AT[str(path)] = now
        reason = configured.mask(error.problems[0]) + (f" (and {more} more)" if more else "")
        return Found(sign=Sign(kind="config_broken", subject=path.name, reason=reason))
    return Found(well=Well(key=key))
