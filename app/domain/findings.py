"""What a look at one thing has found, in words for people, and what to change about it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Iterable

Status = Literal["ok", "warn", "fail", "skipped"]
"""`warn`: it works, or will not always. `skipped`: nobody has looked, and the words say why."""


CLOCK_SECONDS = 2.0
"""How far clocks may be apart: signatures, tokens and due times do not mind so much."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """Of one thing. Nothing in it is secret."""

    status: Status

    name: str = ""
    """What was looked at; empty: the one thing that whoever reads it knows of."""

    found: str

    change: str = ""
    """What to do about it; empty: nothing, or `found` says it."""

    def under(self, name: str) -> Finding:
        """The same, of a part of something."""
        return replace(self, name=f"{name} {self.name}".strip())

    @property
    def sentence(self) -> str:
        """What was found, and what to change."""
        return f"{self.found}; {self.change}" if self.change else self.found


def ok(found: str, *, name: str = "") -> Finding:
    """It is as it should be."""
    return Finding(status="ok", name=name, found=found)


def warn(found: str, change: str = "", *, name: str = "") -> Finding:
    """It works, and is worth a change."""
    return Finding(status="warn", name=name, found=found, change=change)


def fail(found: str, change: str = "", *, name: str = "") -> Finding:
    """It does not work."""
    return Finding(status="fail", name=name, found=found, change=change)


def skipped(found: str, change: str = "", *, name: str = "") -> Finding:
    """Nobody has looked."""
    return Finding(status="skipped", name=name, found=found, change=change)


def worst(findings: Iterable[Finding]) -> Status:
    """`fail`, `warn` or `ok`: what was skipped is no worse than what is well."""
    statuses = {finding.status for finding in findings}
    return "fail" if "fail" in statuses else "warn" if "warn" in statuses else "ok"


def clock(ahead_seconds: float, *, doubt_seconds: float = 0) -> Finding:
    """How far somebody's clock is before this machine's, give or take what asking took."""
    apart = abs(ahead_seconds)
    if apart <= CLOCK_SECONDS + doubt_seconds:
        return ok(f"its clock and this machine's are less than {CLOCK_SECONDS:g} s apart", name="clock")
    side = "ahead of" if ahead_seconds > 0 else "behind"
    return warn(
        f"its clock is {apart:.1f} s {side} this machine's",
        "set this machine's by NTP; signatures and tokens are judged by it",
        name="clock",
    )
