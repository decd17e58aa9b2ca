"""Whether an item is one that a subscription asks for, and why.

    items --judge_all--> verdicts, one of each subscription --recipients--> who hears of it, once, by which names

Each condition says what speaks for the item, or what speaks against it; one that speaks against it is enough. Words are
looked for as `folding` says, patterns as `patterns` does, numbers read as `numbers` does.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import timedelta
from functools import cached_property
from typing import TYPE_CHECKING, Any

from app.domain import folding, numbers
from app.domain.folding import contains, fold
from app.domain.patterns import Searches

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from datetime import datetime

    from app.domain.items import Item
    from app.domain.numbers import Span
    from app.domain.subscriptions import Subscription

PART_END = "\n"
"""Between an item's texts: no phrase reaches over it, as folded words hold no line end."""

SHOWN_LENGTH = 60
"""Characters of an item's own text that a reason repeats."""

DAY = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether an item matched."""

    matched: bool

    why: str
    """One sentence for people: what speaks against it, all of it, or else what speaks for it."""

    slow: bool = False
    """A pattern took too long on it, and counts as not found."""


@dataclass(frozen=True, slots=True)
class Judged:
    """One item, and the verdict of each subscription in their order."""

    item: Item
    verdicts: tuple[tuple[Subscription, Verdict], ...]

    def recipients(self) -> dict[str, tuple[str, ...]]:
        """Who is to hear of it, each once, with the names of all their subscriptions that matched, sorted."""
        names: dict[str, list[str]] = {}
        for subscription, verdict in self.verdicts:
            for recipient in subscription.to if verdict.matched else ():
                names.setdefault(recipient, []).append(subscription.name)
        return {recipient: tuple(sorted(by)) for recipient, by in names.items()}


class Folded:
    """An item's texts made ready once, for as many subscriptions as there are."""

    def __init__(self, item: Item) -> None:
        self.item = item
        self.texts = [item.title, item.text, *(value for value in item.fields.values() if isinstance(value, str))]
        """The title, the text and the textual fields, not the link."""

    @cached_property
    def words(self) -> str:
        """For words."""
        return PART_END.join(fold(text) for text in self.texts)

    @cached_property
    def written(self) -> tuple[str, ...]:
        """For patterns."""
        return tuple(form for text in self.texts for form in folding.written(text))


def judge_all(
    items: Iterable[Item],
    source: str,
    subscriptions: Iterable[Subscription],
    *,
    now: datetime,
    clock: Callable[[], float],
) -> Iterator[Judged]:
    """Each item of one round of this source, judged. `clock` tells seconds; by it patterns are bounded."""
    asking = tuple(subscriptions)
    searches = Searches(clock)
    for item in items:
        folded = Folded(item)
        yield Judged(item, tuple((asked, judge(folded, source, asked, now=now, searches=searches)) for asked in asking))


def judge(folded: Folded, source: str, subscription: Subscription, *, now: datetime, searches: Searches) -> Verdict:
    """Whether this item of this source is asked for."""
    if not subscription.hears(source):
        return Verdict(matched=False, why=f"{source} is not one of its sources")
    patterns = _Patterns(folded, subscription.regex, searches)
    reasons = [
        *_words(folded.words, subscription),
        *patterns.reasons(),
        *_fields(folded.item, subscription),
        *_bounds(folded.item, subscription),
        *_age(folded.item, subscription.max_age, now),
    ]
    against = [reason.told for reason in reasons if not reason.favours]
    if against:
        return Verdict(matched=False, why="; ".join(dict.fromkeys(against)), slow=patterns.slow)
    why = "; ".join(reason.told for reason in reasons) or "it takes every item of the source"
    return Verdict(matched=True, why=why, slow=patterns.slow)


@dataclass(frozen=True, slots=True)
class _Reason:
    """What one condition says."""

    favours: bool
    told: str


def _words(text: str, asked: Subscription) -> Iterator[_Reason]:
    """What is excluded comes first among what speaks against an item, and last among what speaks for it."""
    excluded = [word for word in asked.none if contains(text, word)]
    if excluded:
        yield _Reason(favours=False, told=f"{_are(excluded)} in it and excluded")
    found = [word for word in asked.any if contains(text, word)]
    if asked.any and not found:
        yield _Reason(favours=False, told=_none_of(asked.any))
    missing = [word for word in asked.all if not contains(text, word)]
    if missing:
        yield _Reason(favours=False, told=f"{_are(missing, no='not ')} in it")
    there = list(dict.fromkeys([*found, *(word for word in asked.all if word not in missing)]))
    if there:
        yield _Reason(favours=True, told=f"{_are(there)} in it")
    if asked.none and not excluded:
        yield _Reason(favours=True, told=_none_of(asked.none))


class _Patterns:
    """At least one pattern has to find something."""

    def __init__(self, folded: Folded, patterns: tuple[str, ...], searches: Searches) -> None:
        self._patterns = patterns
        self._found = {pattern: searches.find(pattern, folded.written) for pattern in patterns}
        self.slow = any(found.slow for found in self._found.values())

    def reasons(self) -> Iterator[_Reason]:
        there = [f"the pattern {p} finds {_short(f.text)}" for p, f in self._found.items() if f.text is not None]
        if there:
            yield _Reason(favours=True, told="; ".join(there))
        elif self._patterns:
            slow = [pattern for pattern, found in self._found.items() if found.slow]
            late = f" ({', '.join(slow)} took too long on it)" if slow else ""
            one = f"the pattern {self._patterns[0]} finds nothing in it"
            many = f"none of the patterns {', '.join(self._patterns)} finds anything in it"
            yield _Reason(favours=False, told=(one if len(self._patterns) == 1 else many) + late)


def _fields(item: Item, asked: Subscription) -> Iterator[_Reason]:
    for name, words in asked.fields.items():
        if item.fields.get(name) is None:
            yield _Reason(favours=False, told=f'has no field "{name}"')
            continue
        value = _as_text(item.fields[name])
        found = [word for word in words if contains(fold(value), word)]
        if found:
            yield _Reason(favours=True, told=f"{_are(found)} in its {name}")
        else:
            yield _Reason(favours=False, told=f"its {name}, {_short(value)}, is none of {_quoted(words)}")


def _bounds(item: Item, asked: Subscription) -> Iterator[_Reason]:
    """Of a range the end counts that may fit: `300-600` may well be 500, at least and at most."""
    for name, least in asked.min.items():
        yield _bound(item, name, least, over=True)
    for name, most in asked.max.items():
        yield _bound(item, name, most, over=False)


def _bound(item: Item, name: str, bound: float, *, over: bool) -> _Reason:
    value = item.fields.get(name)
    if value is None:
        return _Reason(favours=False, told=f'has no field "{name}"')
    span = numbers.span_of(value)
    if span is None:
        return _Reason(favours=False, told=f"its {name}, {_short(_as_text(value))}, has no number")
    fits = span.high >= bound if over else span.low <= bound
    words = {(True, True): "at least", (True, False): "below", (False, True): "at most", (False, False): "above"}
    return _Reason(favours=fits, told=f"{name} {_shown(span)} is {words[over, fits]} {plain(bound)}")


def _age(item: Item, most: timedelta | None, now: datetime) -> Iterator[_Reason]:
    """One without a date matches: what is new was not there before, whenever it was written."""
    if most is None:
        return
    if item.published_at is None:
        yield _Reason(favours=True, told="it has no date")
        return
    age = max(now - item.published_at, timedelta(0))
    fits = age <= most
    told = f"it is {_days(age)} old, and may be {_days(most)}"
    yield _Reason(favours=fits, told=told)


def _none_of(words: tuple[str, ...]) -> str:
    return f"none of {_quoted(words)} is in it" if len(words) > 1 else f"{_quoted(words)} is not in it"


def _are(words: list[str], *, no: str = "") -> str:
    return f"{_quoted(words)} {'is' if len(words) == 1 else 'are'} {no}".rstrip()


def _quoted(words: Iterable[str]) -> str:
    return ", ".join(f'"{word}"' for word in words)


def _short(text: str) -> str:
    """A text of an item in one line, or its beginning."""
    line = " ".join(text.split())
    return f'"{line if len(line) <= SHOWN_LENGTH else line[: SHOWN_LENGTH - 1] + "…"}"'


def _as_text(value: Any) -> str:
    """A field's value as one would write it in the configuration."""
    if isinstance(value, bool):
        return str(value).lower()
    return plain(value) if isinstance(value, float) else str(value)


def _shown(span: Span) -> str:
    return plain(span.high) if span.low == span.high else f"{plain(span.low)} to {plain(span.high)}"


def _days(age: timedelta) -> str:
    days = plain(round(age / DAY, 1))
    return f"{days} day{'' if days == '1' else 's'}"


def plain(number: float) -> str:
    """A number without a fraction that is none."""
    return str(int(number)) if math.isfinite(number) and number == int(number) else str(number)
