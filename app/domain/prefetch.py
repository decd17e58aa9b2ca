"""How many jobs to have at hand, beside those that run.

Claiming and finishing cost a round trip, however many jobs they are about; a job that is claimed and waits is kept
from others. So: as many as are worth half a second of work, by how long the last ones took.
"""

from __future__ import annotations

WORTH_SECONDS = 0.5
"""Of work that may wait here under its lease: far below the lease's margin of ten seconds."""

MOST = 1000
"""Jobs in one claim: beyond it nothing was gained (1,000 at once cost 27 ms, 100 cost 4)."""

MOST_SIZE = 16 * 2**20
"""Characters of the payloads that are at hand together: a small machine has 256 MiB for all, and a job's own may have
256 KiB."""

QUICK_SECONDS = 0.005
"""A thousand such jobs in ten slots take half a second; what ended meanwhile is finished with them."""

SHARE = 0.2
"""What the newest job counts in the mean."""


class Pace:
    """How long jobs take and how large they are, and what follows from it."""

    def __init__(self, slots: int) -> None:
        self._slots = slots
        self._mean: float | None = None
        self._most = MOST

        self.at_hand = slots
        """Jobs to hold, running ones included: the slots' own number until something is known."""

        self.quick = False
        """Whether jobs are so short that a batch of them ends before anybody would miss its first one's end."""

    def took(self, seconds: float) -> None:
        """One more job ended."""
        mean = seconds if self._mean is None else self._mean + SHARE * (seconds - self._mean)
        self._mean = mean
        self.quick = mean < QUICK_SECONDS
        self._decide()

    def weighed(self, jobs: int, size: int) -> None:
        """So many jobs came, and all of them were of that size."""
        self._most = max(min(MOST, MOST_SIZE * jobs // max(size, 1)), 1) if jobs else self._most
        self._decide()

    def room(self, held: int) -> int:
        """How many to claim now; 0 while there is enough at hand, since a few at a time cost as much as many."""
        free = self.at_hand - held
        return free if free * 2 >= self.at_hand or held < self._slots else 0

    def _decide(self) -> None:
        worth = self._slots if self._mean is None else int(self._slots * WORTH_SECONDS / max(self._mean, 1e-6))
        self.at_hand = max(self._slots, min(worth, self._most))
