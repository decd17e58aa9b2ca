"""Whether an item is one that a subscription asks for, and why.

Words are compared without regard to case, width and the ways of writing one character. A hyphen between letters is a
space: `full-stack` and `full stack` are the same words.

A word is looked for whole: `go` is in "Go, Rust" and "golang/go", not in "Django". What counts is the character at
each end of it:

    letter or digit      its neighbour in the text is none, nor `++` or `#` behind it: `c` is not in "C++" or "C#"
    a symbol             its neighbour is anything but the same symbol: `c++` is in "C++20", `.net` in "ASP.NET"
    of a script without  its neighbour is anything: `บอท` is in "เขียนบอทไลน์", and `python` in "เขียนpython"
    spaces
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from app.domain import numbers

if TYPE_CHECKING:
    from collections.abc import Iterable

    from app.domain.items import Item
    from app.domain.numbers import Span
    from app.domain.subscriptions import Subscription

SPACELESS = re.compile(
    "[\u0e00-\u0eff\u0f00-\u0fff\u1000-\u109f\ua9e0-\ua9ff\uaa60-\uaa7f\u1780-\u17ff\u19e0-\u19ff"  # Thai to Khmer
    "\u1950-\u19df\u1a20-\u1aaf\u3005-\u3007\u3040-\u30ff\u3100-\u312f\u31a0-\u31ff"  # Tai scripts, kana, bopomofo
    "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U0001aff0-\U0001b16f\U00020000-\U0003ffff]"  # Chinese characters
)

INVISIBLE = re.compile("[\u00ad\u034f\u061c\u180e\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufe00-\ufe0f\ufeff]")
SPACE_OF_NO_WIDTH = re.compile("(?<=[^\\W\u0e00-\u17ff])\u200b(?=[^\\W\u0e00-\u17ff])")
"""Between words of scripts without spaces it only tells where a line may end; elsewhere it parts words."""

MARK_BEFORE_TONE = re.compile("\u0e4d([\u0e48-\u0e4b]+)|\u0ecd([\u0ec8-\u0ecb]+)")
"""Thai and Lao "am" taken apart: its ring belongs after a tone mark, and is often typed before."""

HYPHEN = re.compile(r"(?<=[^\W_])[-\u2010-\u2015](?=[^\W_])")

ALIKE = str.maketrans(
    {
        "\u0131": "i",  # the Turkish i without a dot: its capital is the I of everybody else
        "♯": "#",
        "\u2019": "'",
        "\u2212": "-",
    }
)

PART_END = "\n"
"""Between an item's texts: no phrase reaches over it, as folded words hold no line end."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether an item matched."""

    matched: bool

    why: str
    """One short sentence for people."""


@dataclass(frozen=True, slots=True)
class Folded:
    """An item's words made ready once, for as many subscriptions as there are."""

    item: Item
    words: str


def fold_item(item: Item) -> Folded:
    """The title, the text and the textual fields of an item, not its link."""
    texts = [item.title, item.text, *_texts(item.fields.values())]
    return Folded(item, PART_END.join(fold(text) for text in texts))


def judge(item: Item | Folded, source: str, subscription: Subscription) -> Verdict:
    """Whether this item of this source is asked for. `why` names the condition that decided."""
    folded = item if isinstance(item, Folded) else fold_item(item)
    if subscription.sources is not None and source not in subscription.sources:
        return Verdict(matched=False, why=f"{source} is not one of its sources")
    found = [word for word in subscription.any if contains(folded.words, word)]
    reasons = [
        _against_excluded(folded, subscription.none),
        _against_any(subscription.any, found),
        _against_all(folded, subscription.all),
        *(_against_minimum(folded.item, name, least) for name, least in subscription.min.items()),
    ]
    against = next((reason for reason in reasons if reason), None)
    if against:
        return Verdict(matched=False, why=against)
    return Verdict(matched=True, why=_in_favour(folded.item, subscription, found))


def contains(folded: str, word: str) -> bool:
    """Whether a word or phrase is in a text that `fold` has made ready. A blank word is in none."""
    needle = fold(word)
    if not needle:
        return False
    at = folded.find(needle)
    while at >= 0:
        end = at + len(needle)
        if _begins_word(folded, at) and _ends_word(folded, end):
            return True
        at = folded.find(needle, at + 1)
    return False


@lru_cache(maxsize=4096)
def _fold_word(word: str) -> str:
    return _folded(word)


def fold(text: str) -> str:
    """The text as it is compared: one form for each character, small letters, single spaces."""
    return _fold_word(text) if len(text) <= 100 else _folded(text)  # noqa: PLR2004 - words are short, and come again


def _folded(text: str) -> str:
    text = INVISIBLE.sub("", SPACE_OF_NO_WIDTH.sub(" ", text))
    text = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())
    text = MARK_BEFORE_TONE.sub(lambda found: f"{found[1]}\u0e4d" if found[1] else f"{found[2]}\u0ecd", text)
    text = text.translate(ALIKE).replace("i\u0307", "i")
    return " ".join(HYPHEN.sub(" ", text).split())


def _begins_word(text: str, at: int) -> bool:
    first, before = text[at], text[at - 1 : at]
    if not before or SPACELESS.match(first):
        return True
    if not _is_letter(first):
        return before != first
    return not _is_letter(before) or bool(SPACELESS.match(before))


def _ends_word(text: str, end: int) -> bool:
    last, after = text[end - 1], text[end : end + 1]
    if not after or SPACELESS.match(last):
        return True
    if not _is_letter(last):
        return after != last
    if after == "#" or text.startswith("++", end):
        return False
    return not _is_letter(after) or bool(SPACELESS.match(after))


def _is_letter(character: str) -> bool:
    """A letter, a digit, or a mark upon one. The underscore parts words, as in #python_dev."""
    return character.isalnum() or unicodedata.category(character).startswith("M")


def _texts(values: Iterable[Any]) -> Iterable[str]:
    return (value for value in values if isinstance(value, str))


def _against_excluded(folded: Folded, words: tuple[str, ...]) -> str | None:
    found = next((word for word in words if contains(folded.words, word)), None)
    return f"{_quoted([found])} is in it and is excluded" if found is not None else None


def _against_any(words: tuple[str, ...], found: list[str]) -> str | None:
    if not words or found:
        return None
    return f"none of {_quoted(words)} is in it" if len(words) > 1 else f"{_quoted(words)} is not in it"


def _against_all(folded: Folded, words: tuple[str, ...]) -> str | None:
    missing = [word for word in words if not contains(folded.words, word)]
    return f"{_quoted(missing)} {'is' if len(missing) == 1 else 'are'} not in it" if missing else None


def _against_minimum(item: Item, name: str, least: float) -> str | None:
    """Of a range the high end counts: `300-600` may well be 500."""
    span = numbers.span_of(item.fields.get(name))
    if span is None:
        return f'has no number "{name}"'
    return f"{name} {_shown(span)} is below {_plain(least)}" if span.high < least else None


def _in_favour(item: Item, subscription: Subscription, found: list[str]) -> str:
    words = list(dict.fromkeys([*found, *subscription.all]))
    told = [f"{_quoted(words)} {'is' if len(words) == 1 else 'are'} in it"] if words else []
    told += [
        f"{name} {_shown(span)} is at least {_plain(least)}"
        for name, least in subscription.min.items()
        if (span := numbers.span_of(item.fields.get(name)))
    ]
    return " and ".join(told) or "it takes every item of the source"


def _quoted(words: Iterable[str]) -> str:
    return ", ".join(f'"{word}"' for word in words)


def _shown(span: Span) -> str:
    return _plain(span.high) if span.low == span.high else f"{_plain(span.low)} to {_plain(span.high)}"


def _plain(number: float) -> str:
    return str(int(number)) if number == int(number) else str(number)
