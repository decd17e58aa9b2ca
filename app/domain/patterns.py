"""Regular expressions of users: checked when they are read, and bounded whenever they search.

They are those of the `regex` package, whose search can be given an end; that of `re` cannot. Upper case makes no
difference, unless a pattern says so: `(?-i:Go)`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from app.domain.folding import spelt

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    import regex

MOST_CHARACTERS = 1000

MOST_REPEATED = 10_000
"""Signs of a pattern with its repetitions written out, as the package does: `(a{1000}){1000}` took 1.3 s to read, and
a hundred times that took all memory."""

SEARCH_SECONDS = 0.1
"""Of computing, for one search in one text. An ordinary pattern takes 50 nanoseconds for each character."""

ROUND_SECONDS = 1.0
"""For all searches of one pattern in one round of a source."""

LEAST_SECONDS = 0.01
"""Of a search that is made at all: less could be taken for none."""

PART = re.compile(
    r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]?|(?P<open>\()|(?P<close>\))|\{(?P<least>\d+)(?:,\d*)?\}|.", re.DOTALL
)


def fault(pattern: str) -> str | None:
    """Why it cannot be searched for, in words that follow its name; None: it can."""
    if len(pattern) > MOST_CHARACTERS:
        return f"has more than {MOST_CHARACTERS:,} characters; write a shorter one"
    if _repeated(pattern) > MOST_REPEATED:
        return f"is longer than {MOST_REPEATED:,} signs with its repetitions written out; repeat less in {{}}"
    import regex  # noqa: PLC0415 - a start without such a filter does without

    try:
        _compiled(pattern)
    except regex.error as error:
        return f"is no regular expression ({error}); mend it"
    except RecursionError:
        return "is nested too deeply; write a simpler one"
    return None


@dataclass(frozen=True, slots=True)
class Found:
    """What one search came to."""

    text: str | None
    """What the pattern found; None: nothing."""

    slow: bool = False
    """It took too long: nothing counts as found, whatever there is."""


class Searches:
    """The searches of one round. A pattern that takes too long finds nothing, and after a while is not tried again."""

    def __init__(self, clock: Callable[[], float]) -> None:
        """`clock` tells seconds: best those that this thread has computed."""
        self._clock = clock
        self._spent: dict[str, float] = {}

    def find(self, pattern: str, texts: Iterable[str]) -> Found:
        """What the pattern finds in the first of these texts, as `folding.written` gives them, in which it does."""
        slow = False
        for text in texts:
            left = ROUND_SECONDS - self._spent.get(pattern, 0.0)
            if left <= 0:
                return Found(None, slow=True)
            began = self._clock()
            try:
                found = _compiled(pattern).search(text, timeout=max(min(SEARCH_SECONDS, left), LEAST_SECONDS))
            except (TimeoutError, MemoryError, RecursionError):
                slow, found = True, None
            self._spent[pattern] = self._spent.get(pattern, 0.0) + self._clock() - began
            if found is not None:
                return Found(found[0])
        return Found(None, slow=slow)


@lru_cache(maxsize=1024)
def _compiled(pattern: str) -> regex.Pattern[str]:
    import regex  # noqa: PLC0415 - as above

    return regex.compile(spelt(pattern), flags=regex.IGNORECASE | regex.FULLCASE)


def _repeated(pattern: str) -> int:
    """How many signs it has with its least repetitions written out."""
    sizes, last = [0], 0
    for part in PART.finditer(pattern):
        added = 1
        if part["open"]:
            sizes.append(0)
            continue
        if part["close"] and len(sizes) > 1:
            added = sizes.pop()
        elif part["least"]:
            added, last = last * (int(part["least"]) - 1), last * int(part["least"])
            sizes[-1] += max(added, 0)
            continue
        sizes[-1] += added
        last = added
    return sum(sizes)
