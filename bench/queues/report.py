"""What was measured, as one table and as goals that are met or missed."""

from __future__ import annotations

from statistics import median
from typing import TYPE_CHECKING

from bench.queues.contenders import CONTENDERS

if TYPE_CHECKING:
    from bench.queues.trials import Measured

OURS = "Wakebell, one tick"
LOOP = "loop over SQLAlchemy"
BOSS = "pg-boss"
PYTHON_PEERS = [contender.name for contender in CONTENDERS if contender.peer and contender.where == "peers"]

MOST_COMMITS = 12
MOST_MIB = 20

COLUMNS = {
    "put": "put in, jobs/s",
    "drain": "drain, jobs/s",
    "cpu": "its CPU, µs a job",
    "0 jobs": "0 jobs, ms",
    "100 jobs": "100 jobs, ms",
    "0 jobs far": "0 jobs, far, ms",
    "100 jobs far": "100 jobs, far, ms",
    "commits": "commits for 100",
    "writing": "of them writing",
    "idle peak": "idle, MiB",
    "peak": "drain, MiB",
}


class Report:
    """The figures of one run."""

    def __init__(self, measured: Measured) -> None:
        self._figures = measured.figures
        self.faults = measured.faults

    def table(self) -> str:
        """Medians, least and most in brackets, and for the first two the ratio to ours. Markdown."""
        lines = ["| | " + " | ".join(COLUMNS.values()) + " |", "|---|" + "---:|" * len(COLUMNS)]
        for name in self._figures:
            cells = [self._cell(name, measure) for measure in COLUMNS]
            lines.append(f"| {name} | " + " | ".join(cells) + " |")
        return "\n".join(lines)

    def _cell(self, name: str, measure: str) -> str:
        figures = self._figures[name].get(measure)
        if not figures:
            return "-"
        told = f"{median(figures):,.0f} ({min(figures):,.0f}-{max(figures):,.0f})"
        ours = self._median(OURS, measure)
        if measure in {"put", "drain"} and ours and name != OURS:
            told += f", {median(figures) / ours:.2f} x"
        return told

    def _median(self, name: str, measure: str) -> float | None:
        figures = self._figures[name].get(measure) if name in self._figures else None
        return median(figures) if figures else None

    def goals(self) -> dict[str, bool | None]:
        """Each goal in words with its figure, and whether it is met; None: what it compares with was not there."""
        drain, put = self._median(OURS, "drain"), self._median(OURS, "put")
        commits, peak, idle = (self._median(OURS, measure) for measure in ("commits", "peak", "idle peak"))
        told = dict(
            [
                self._at_least("drain at least 1.5 x the fastest Python peer", drain, self._fastest("drain"), 1.5),
                self._at_least("drain at least pg-boss", drain, self._median(BOSS, "drain"), 1.0),
                self._at_least(
                    "drain at least half of the loop over SQLAlchemy", drain, self._median(LOOP, "drain"), 0.5
                ),
                self._at_least("put-in at least the fastest Python peer", put, self._fastest("put"), 1.0),
            ]
        )
        if commits is not None:
            told[f"100 jobs in at most {MOST_COMMITS} commits: {commits:.0f}"] = commits <= MOST_COMMITS
        if peak is not None and idle is not None:
            words = f"a drain within {MOST_MIB} MiB of an idle process: {peak - idle:.1f} MiB"
            told[words] = peak - idle <= MOST_MIB
        return told

    def _fastest(self, measure: str) -> float | None:
        return max((found for name in PYTHON_PEERS if (found := self._median(name, measure))), default=None)

    @staticmethod
    def _at_least(words: str, ours: float | None, theirs: float | None, ratio: float) -> tuple[str, bool | None]:
        if ours is None or theirs is None:
            return f"{words}: not measured", None
        return f"{words}: {ours / theirs:.2f} x", ours >= ratio * theirs

    def missed_drain(self) -> bool:
        """Whether a profile is wanted."""
        return any(met is False and "drain" in words for words, met in self.goals().items())

    def text(self, about: str, profile: str = "") -> str:
        """The whole, as it is printed and kept. Markdown."""
        marks = {True: "met", False: "**missed**", None: "open"}
        goals = "\n".join(f"* {marks[met]}: {words}" for words, met in self.goals().items())
        parts = [about, self.table(), goals]
        if self.faults:
            parts.append("Trials that do not count:\n\n" + "\n".join(f"* {fault}" for fault in self.faults))
        if profile:
            about_it = "Where the time of a drain goes (with cProfile, which makes Python dearer):"
            parts.append(f"{about_it}\n\n```\n{profile.strip()}\n```")
        return "\n\n".join(parts) + "\n"
