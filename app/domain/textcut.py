"""Cutting text where a reader would: between lines, words and clusters, never inside a link or a character.

Clusters come from the `regex` package. Python has no segmentation of its own, and an own one out of Unicode's
categories would be wrong in its corners (emoji sequences, Hangul, stacked Burmese consonants) and age with each
Unicode version; `regex` is well kept, has no dependencies, and costs some 15 ms of a cold start.
"""

from __future__ import annotations

from itertools import groupby, islice
from typing import TYPE_CHECKING

import regex

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

CLUSTER = regex.compile(
    r"""
    \r\n | [\r\n]
    | (?: [\u0E40-\u0E44\u0EC0-\u0EC4] (?=\p{L}) )?         # a Thai or Lao vowel written before its consonant
      \X
      (?: [\p{M}\p{GCB=Extend}\u200D]                        # Burmese vowels that stand free by Unicode's count
        | [\u0E2F\u0E30\u0E32\u0E33\u0E45\u0E46\u0EB0\u0EB2\u0EB3\u0EC6]  # Thai, Lao: vowels and signs after it
        | [\u1000-\u1021] \u1037? \u103A                     # a Burmese consonant that ends the syllable
        | (?<=\u1039) [\u1000-\u1021\u1025\u1027\u103F]     # one that is stacked under what is before it
      )*
    """,
    flags=regex.VERBOSE | regex.VERSION1,
)
"""An extended grapheme cluster (Unicode Annex 29), or more of a Thai, Lao or Burmese syllable where half of one
would be misread."""

LINK = regex.compile(r"(?:https?|ftp)://\S+", flags=regex.IGNORECASE)
"""An address inside of a text: it may stand in the middle of a word, in scripts without spaces."""

ELLIPSIS = "…"


def utf16_units(text: str) -> int:
    """How LINE and Telegram count: a character outside the basic plane is two."""
    return len(text) + sum(character > "\uffff" for character in text)


def utf8_bytes(text: str) -> int:
    """How much of a body a text takes."""
    return len(text.encode())


def clusters(text: str) -> list[str]:
    """The text in pieces that must not be cut. Joined, they are the text."""
    return CLUSTER.findall(text)


def well_formed(text: str) -> str:
    """The text with surrogate pairs joined, and lone surrogates replaced: it can be encoded."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def shorten(text: str, *, limit: int, characters: int) -> str:
    """The text as it is, or its beginning with an ellipsis: at most `limit` clusters and `characters` code points."""
    if len(text) <= min(limit, characters):
        return text
    pieces = [piece[0] for piece in islice(CLUSTER.finditer(text), limit + 1)]
    if len(pieces) <= limit and len(text) <= characters:
        return text
    kept: list[str] = []
    room = characters - len(ELLIPSIS)
    for piece in pieces[: limit - 1]:
        room -= len(piece)
        if room < 0:
            break
        kept.append(piece)
    return "".join(kept).rstrip() + ELLIPSIS


def fit(text: str, *, limit: int, length: Callable[[str], int]) -> str:
    """The text as it is, or its beginning with an ellipsis: at most `limit` long by `length` (see `cut`)."""
    if length(text) <= limit:
        return text
    kept: list[str] = []
    room = limit - length(ELLIPSIS)
    for piece in clusters(text):
        room -= length(piece)
        if room < 0:
            break
        kept.append(piece)
    return "".join(kept).rstrip() + ELLIPSIS


def cut(text: str, *, limit: int, length: Callable[[str], int]) -> list[str]:
    """As few parts as it takes in order, each at most `limit` long; cut at empty lines first, then lines, then spaces.

    A word that is too long by itself is cut beside a link in it, then between clusters, and only a cluster that is too
    long (a heap of combining marks) between code points; so a link is cut only where no part could hold it. The white
    space at a cut is left out, and so are blank parts.

    Args:
        text: well formed.
        limit: what one part may have by `length`; at least 4.
        length: counts a text as the receiver does; that of two texts joined must be the sum of theirs.
    """
    if length(text) <= limit:
        return [text] if text.strip() else []
    return [part for part in _packed(text, LEVELS, limit, length) if part.strip()]


def _packed(text: str, levels: tuple[Level, ...], limit: int, length: Callable[[str], int]) -> Iterator[str]:
    """Fills part after part with pieces of the first level; a piece that fills more than one is cut by the next."""
    (separator, pieces_of), *finer = levels
    gap = length(separator)
    held: list[str] = []
    room = limit
    for piece in pieces_of(text):
        needed = length(piece) + (gap if held else 0)
        if needed <= room:
            held.append(piece)
            room -= needed
            continue
        if held:
            yield separator.join(held)
        *full, last = [*_packed(piece, tuple(finer), limit, length)] if length(piece) > limit else [piece]
        yield from full
        held, room = [last], limit - length(last)
    if held:
        yield separator.join(held)


def _words(text: str) -> list[str]:
    """Split at spaces that stand alone: one that carries a combining mark belongs to its word."""
    parts = groupby(clusters(text), key=lambda cluster: cluster == " ")
    return ["".join(part) for is_space, part in parts if not is_space] or [""]


def _around_links(text: str) -> list[str]:
    """Links, and what stands between them."""
    pieces: list[str] = []
    at = 0
    for link in LINK.finditer(text):
        pieces += [text[at : link.start()], link[0]]
        at = link.end()
    return [piece for piece in [*pieces, text[at:]] if piece]


Level = tuple[str, "Callable[[str], list[str]]"]

LEVELS: tuple[Level, ...] = (
    ("\n\n", lambda text: text.split("\n\n")),
    ("\n", lambda text: text.split("\n")),
    (" ", _words),
    ("", _around_links),
    ("", clusters),
    ("", list),
)
"""What joins the pieces of a text, and how they are got, from the best place for a cut to the worst."""
