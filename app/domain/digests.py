"""A digest laid out as plain text, whole or in parts.

    3 new items                     one item alone:   Title

    Title                                             https://...
    https://...                                       source · subscription, subscription

    Title
    https://...

    source · subscription           where that is not the same for all, it is the last line of each

    and 37 more                     where not all of them are shown

A part of a long digest ends between two items where it can.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING
from urllib.parse import quote

import regex

from app.domain import textcut, words

if TYPE_CHECKING:
    from collections.abc import Callable

    from app.domain.messages import Digest, DigestItem, OwedItem

TITLE_CLUSTERS = 300
"""A longer title is a text that has lost its way; what the reader needs stands in its beginning."""

TITLE_CHARACTERS = 2000
"""Code points: a heap of combining marks is one cluster, however high."""

BIDI_OVERRIDES = "\u202a-\u202e\u2066-\u2069"
"""Embeddings, overrides and isolates: one left open turns round all that follows it."""

TURNING = regex.compile(rf"[{BIDI_OVERRIDES}\u200e\u200f\u061c\p{{bc=R}}\p{{bc=AL}}\p{{bc=AN}}]")
"""What may turn round what stands beside it: besides those, marks of a direction, and letters from right to left."""

SPACE = regex.compile(r"[\s\x1c-\x1f]")
UNSEEN = regex.compile(rf"[\p{{Cc}}\ufeff{BIDI_OVERRIDES}]")
FIRST_STRONG_ISOLATE, POP_ISOLATE = ISOLATES = "\u2068\u2069"
EITHER_ISOLATE = regex.compile(f"([{ISOLATES}])")


@dataclass(frozen=True, slots=True)
class Portion:
    """One part of a digest that is cut into several."""

    text: str

    items: tuple[int, ...]
    """Which of the digest's items begin in it, by their places: each item in one portion."""


def as_text(digest: Digest) -> str:
    """The whole digest; empty where it holds nothing."""
    return "\n\n".join(_Blocks(digest, link_fits=lambda _: True).texts)


def lay_out(digest: Digest, *, limit: int, length: Callable[[str], int]) -> list[str]:
    """The texts of `portions`."""
    return [portion.text for portion in portions(digest, limit=limit, length=length)]


def portions(digest: Digest, *, limit: int, length: Callable[[str], int]) -> list[Portion]:
    """As few parts as it takes, each at most `limit` by `length` (see `textcut.cut`); none for an empty digest.

    Every title is there and in order. A link stands whole in one part; one that no part could hold is left out.
    """
    blocks = _Blocks(digest, link_fits=lambda link: length(link) <= limit)
    texts = textcut.cut("\n\n".join(blocks.texts), limit=limit, length=length)
    # Nothing is lost in cutting but white space: so many other characters before it tell in which part an item begins.
    ends = list(accumulate(map(_ink, texts)))
    begins = [0, *accumulate(map(_ink, blocks.texts))]
    places: list[list[int]] = [[] for _ in texts]
    for place in range(len(digest.items) if digest.note is None else 0):
        places[bisect_right(ends, begins[blocks.first + place])].append(place)
    return [Portion(text, tuple(held)) for text, held in zip(texts, places, strict=True)]


def shown_title(item: DigestItem | OwedItem, language: str) -> str:
    """The title in one line, safe beside other text, never empty."""
    title = plain_title(item.title)
    return _apart(title, item.title) if title else words.untitled(language)


def shown_words(text: str) -> str:
    """Words that are not ours, in one line and safe beside other text."""
    return _apart(_in_line(text), text)


def plain_title(title: str) -> str:
    """The title in one line, shortened, without control characters and bidi overrides; empty where nothing is left."""
    return textcut.shorten(_in_line(title), limit=TITLE_CLUSTERS, characters=TITLE_CHARACTERS)


def shown_link(link: str) -> str:
    """The link as published, but for spaces and what cannot be seen: those are percent-encoded."""
    return "".join(
        character if character.isprintable() and not character.isspace() else quote(character)
        for character in textcut.well_formed(link).strip()
    )


def note_text(note: str) -> str:
    """Words of the service itself, line by line as safe as a title."""
    lines = (_visible(line).rstrip() for line in textcut.well_formed(note).splitlines())
    return "\n".join(lines).strip()


def shown_lines(text: str, *, characters: int) -> tuple[str, ...]:
    """What a template made: its lines that hold something, as many as that, each as safe as a title.

    Isolates stay, where they are closed; they are those around values.
    """
    kept: list[str] = []
    room = characters
    for line in textcut.well_formed(text).splitlines():
        parts = EITHER_ISOLATE.split(line)
        words = "".join(part if part in {*ISOLATES} else _visible(part) for part in parts).rstrip()
        if not words.strip(f"{ISOLATES} "):
            continue
        kept.append(_balanced(words if len(words) <= room else _beginning(words, room)).rstrip())
        room -= len(words)
        if room <= 0:
            break
    return tuple(filter(None, kept))


def _beginning(line: str, characters: int) -> str:
    """Without the link that it would be cut in."""
    short = textcut.shorten(line, limit=characters, characters=characters)
    return textcut.LINK.sub(lambda link: "" if link.end() == len(short) else link[0], short).rstrip()


def _balanced(line: str) -> str:
    """Each isolate is closed in its line, and nothing is closed that was not begun."""
    kept, depth = [], 0
    for part in EITHER_ISOLATE.split(line):
        if part == POP_ISOLATE and not depth:
            continue
        depth += {FIRST_STRONG_ISOLATE: 1, POP_ISOLATE: -1}.get(part, 0)
        kept.append(part)
    return "".join(kept) + POP_ISOLATE * depth


def _in_line(text: str) -> str:
    return " ".join(_visible(textcut.well_formed(text)).split())


def _apart(shown: str, text: str) -> str:
    """Isolated, where it could turn round what stands beside it."""
    return f"{FIRST_STRONG_ISOLATE}{shown}{POP_ISOLATE}" if TURNING.search(textcut.well_formed(text)) else shown


def _visible(text: str) -> str:
    """Without what is not seen, and every kind of white space as a space."""
    return UNSEEN.sub("", SPACE.sub(" ", text))


class _Blocks:
    """What empty lines part. None of them has an empty line inside, so that a cut at one is a cut between items."""

    def __init__(self, digest: Digest, *, link_fits: Callable[[str], bool]) -> None:
        self.first = 0
        """Where the items begin among the texts."""

        if digest.note is not None:
            self.texts = [block for block in note_text(digest.note).split("\n\n") if block]
            return
        reasons = {_reason(item) for item in digest.items if not item.lines}
        alike = len(digest.items) > 1 and len(reasons) == 1 and not any(item.lines for item in digest.items)
        heading = [words.new_items(digest.language, digest.count)] if digest.count > 1 or not digest.items else []
        items = ["\n".join(_lines(item, digest.language, link_fits, why=not alike)) for item in digest.items]
        more = [words.and_more(digest.language, digest.more)] if digest.more and digest.items else []
        self.first = len(heading)
        self.texts = [*heading, *items, *(filter(None, reasons) if alike else ()), *more] if digest.count else []


def _lines(item: DigestItem, language: str, link_fits: Callable[[str], bool], *, why: bool) -> list[str]:
    if item.lines:
        return list(filter(None, (_fitting(line, link_fits) for line in item.lines))) or [shown_title(item, language)]
    lines = [shown_title(item, language)]
    link = shown_link(item.link or "")
    if link and link_fits(link):
        lines.append(link)
    if why and (reason := _reason(item)):
        lines.append(reason)
    return lines


def _fitting(line: str, link_fits: Callable[[str], bool]) -> str:
    """A line of a template's without the links that no part could hold."""
    return textcut.LINK.sub(lambda link: link[0] if link_fits(link[0]) else "", line).strip()


def _ink(text: str) -> int:
    """Characters that are no white space."""
    return sum(map(len, text.split()))


def _reason(item: DigestItem) -> str:
    """Where it comes from and why it is told."""
    return " · ".join(filter(None, (item.source, ", ".join(item.subscriptions))))
