"""What a subscription asks for in words, and which of it can never be."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from app.domain.folding import contains, fold
from app.domain.matching import plain

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from app.domain.subscriptions import Subscription

    FieldsBySource = Mapping[str, frozenset[str] | None]
    """Names of the fields that a source's items may have; None: any."""

NEVER = "can never match"


def told(asked: Subscription) -> list[str]:
    """Each condition, and none where it takes everything."""
    conditions = {
        "of": ", ".join(sorted(asked.sources)) if asked.sources is not None else "",
        "with any of": _quoted(asked.any),
        "with all of": _quoted(asked.all),
        "with none of": _quoted(asked.none),
        "where a pattern finds something:": ", ".join(asked.regex),
        **{f"{name} is any of": _quoted(words) for name, words in asked.fields.items()},
        **{f"{name} at least": plain(least) for name, least in asked.min.items()},
        **{f"{name} at most": plain(most) for name, most in asked.max.items()},
        "not older in days than": plain(asked.max_age / timedelta(days=1)) if asked.max_age is not None else "",
    }
    return [f"{words} {value}" for words, value in conditions.items() if value]


def doubts(asked: Subscription, fields: FieldsBySource) -> list[str]:
    """What in it cannot be meant, for certain: a sentence each. `fields` has every source that there is."""
    return [*_words(asked), *_bounds(asked), *_fields(asked, fields)]


def _words(asked: Subscription) -> Iterator[str]:
    blank = [word for word in (*asked.any, *asked.all) if not fold(word)]
    if blank:
        yield "has a word without a letter or a sign, which is found in nothing; remove it"
    for required in asked.all:
        if excluded := _excluded(required, asked.none):
            yield f'{NEVER}: it wants "{required}" and excludes "{excluded}"'
    if asked.any and all(_excluded(word, asked.none) for word in asked.any):
        yield f"{NEVER}: it excludes every word of any"


def _excluded(word: str, excluded: Iterable[str]) -> str | None:
    return next((other for other in excluded if contains(fold(word), other)), None)


def _bounds(asked: Subscription) -> Iterator[str]:
    """A range may reach over both ends: `300-900` is at least 800 and at most 400."""
    for name, least in asked.min.items():
        if name in asked.max and asked.max[name] < least:
            limits = f"at least {plain(least)} and at most {plain(asked.max[name])}"
            yield f"wants {name} {limits}: no number is, only a range that reaches over both"


def _fields(asked: Subscription, fields: FieldsBySource) -> Iterator[str]:
    own = [source for source in fields if asked.hears(source)]
    for name in dict.fromkeys([*asked.fields, *asked.min, *asked.max]):
        lacking = [source for source in own if (known := fields[source]) is not None and name not in known]
        if lacking and len(lacking) == len(own):
            yield f'{NEVER}: no source of it has a field "{name}"'
        elif lacking:
            yield f'takes nothing of {", ".join(lacking)}, which has no field "{name}"'


def _quoted(words: Iterable[str]) -> str:
    return ", ".join(f'"{word}"' for word in words)
