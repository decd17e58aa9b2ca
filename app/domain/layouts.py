"""A digest laid out for services that read marks in a text, or take little of it at once.

What a service would read as its own marks is escaped, and what is counted is the text with all escapes in it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from app.domain import digests, textcut

if TYPE_CHECKING:
    from collections.abc import Callable

    from app.domain.digests import Portion
    from app.domain.messages import Digest

LINK = re.compile(r"""https?://[^\s<>]*[^\s<>.,;:!?'"]""", re.IGNORECASE)
"""As far as the next white space; the end of a sentence is not part of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Markup:
    """How a service writes plain text and links."""

    escape: Callable[[str], str]
    """Character by character: that of two texts joined is theirs joined."""

    link: Callable[[str], str]

    def write(self, text: str) -> str:
        """The text with its links as links, and everything else as it stands."""
        written, at = [], 0
        for found in LINK.finditer(text):
            written += [self.escape(text[at : found.start()]), self.link(found[0])]
            at = found.end()
        return "".join([*written, self.escape(text[at:])])

    def length(self, text: str) -> int:
        """Of what is written, in UTF-16 code units: whatever a service calls a character, it is not more of them."""
        return textcut.utf16_units(self.write(text))


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """One part of a digest."""

    text: str
    """As people read it."""

    marked: str
    """As it is sent."""

    length: int
    """Of what is sent."""

    items: tuple[int, ...]
    """As those of `digests.Portion`."""


def lay_out(digest: Digest, markup: Markup, *, limit: int) -> list[Written]:
    """As few parts as it takes, each at most `limit` long as it is sent."""
    return [_written(portion, markup, limit) for portion in portions(digest, limit=limit, length=markup.length)]


def portions(digest: Digest, *, limit: int, length: Callable[[str], int]) -> list[Portion]:
    """Those of `digests.portions`, for limits that a title alone might fill."""
    return digests.portions(_narrow(digest, limit=limit, length=length), limit=limit, length=length)


def _narrow(digest: Digest, *, limit: int, length: Callable[[str], int]) -> Digest:
    """The digest with no title longer than half of `limit`: a title is then never told in two parts."""
    most = limit // 2
    titles = [digests.plain_title(item.title) for item in digest.items]
    if all(length(title) <= most for title in titles):
        return digest
    return replace(
        digest,
        items=tuple(
            item if length(title) <= most else replace(item, title=textcut.fit(title, limit=most, length=length))
            for item, title in zip(digest.items, titles, strict=True)
        ),
    )


def _written(portion: Portion, markup: Markup, limit: int) -> Written:
    text = portion.text
    marked = markup.write(text)
    if textcut.utf16_units(marked) > limit:  # a link inside of a word that was cut: it was counted letter by letter
        marked = markup.escape(text)
    return Written(text=text, marked=marked, length=textcut.utf16_units(marked), items=portion.items)
