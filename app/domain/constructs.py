"""Titles and descriptions in a document, which may be plain text, HTML or XHTML, and often are not what they say."""

from __future__ import annotations

import binascii
import re
from base64 import b64decode
from dataclasses import dataclass, field
from html.entities import html5
from typing import TYPE_CHECKING, Self

from app.domain import text

if TYPE_CHECKING:
    from collections.abc import Mapping

MARKED_UP = frozenset({"text/html", "application/xhtml+xml"})

TYPES = {"text": "text/plain", "plain": "text/plain", "html": "text/html", "xhtml": "application/xhtml+xml"}

MAX_MARKS = 300_000
"""Tags and references in all descriptions of a document together, which are read in about a second. The most in the
feeds looked at were 10,000 in 190 kB."""

INLINE_LIMIT = 500
"""Of a longer tag only the name is kept."""

CLOSING = re.compile(r"</([A-Za-z][A-Za-z0-9]{0,20})>")
TAG = re.compile(r"</?([A-Za-z][A-Za-z0-9]{0,20})")
ENTITY = re.compile(r"&(#?)(\w{1,32});")


@dataclass(slots=True)
class Construct:
    """One of them while it is read."""

    type: str
    """Of its content: a MIME type in lower case."""

    encoded: bool
    """It is in base64."""

    guess: bool
    """Whether plain text that looks like HTML is taken for HTML: in RSS it often is, in Atom it says so."""

    pieces: list[str] = field(default_factory=list)

    inlined: bool = False
    """It holds tags of the document's own, so what was written with references in it means text, not markup."""

    @classmethod
    def of(cls, attributes: Mapping[str, str], usual: str, *, atom: bool) -> Self:
        """One that begins with these attributes; `usual` is its type when it does not say."""
        if not attributes:
            return cls(usual, encoded=False, guess=not atom, inlined=usual == "application/xhtml+xml")
        said = attributes.get("type", "").partition(";")[0].strip().lower()
        type_ = TYPES.get(said, said) or usual
        binary = "/" in type_ and not type_.startswith("text/") and not type_.endswith(("+xml", "/xml"))
        encoded = attributes.get("mode", "").lower() == "base64" or binary
        return cls(type_, encoded, guess=not atom or encoded, inlined=type_ == "application/xhtml+xml")

    @property
    def breakable(self) -> bool:
        """Whether an entry that begins within is the next one. Not in XML, which may hold entries of another feed."""
        return not self.type.endswith(("+xml", "/xml"))

    def add(self, written: str) -> None:
        """Text, its references resolved."""
        self.pieces.append(_escaped(written) if self.inlined else written)

    def inline(self, name: str, tag: str) -> None:
        """A tag of the document's own, in the middle."""
        self.inlined = True
        self.pieces.append(tag if ":" not in name and len(tag) <= INLINE_LIMIT else f"<{name.rpartition(':')[2]}>")

    def closed(self, name: str) -> None:
        """One that closes, as written: what is never closed may be no tag to a reader of HTML."""
        self.pieces.append(f"</{name.rpartition(':')[2]}>")

    def value(self) -> tuple[str, bool]:
        """What was read, and whether it is HTML."""
        value = "".join(self.pieces).strip()
        if self.encoded:
            value = _decoded(value)
        html = self.inlined or self.type in MARKED_UP
        if not html and self.guess and self.type in {"text/plain", "application/octet-stream"}:
            html = looks_like_html(value)
        return value, html


@dataclass(slots=True)
class Texts:
    """Makes plain text of them. One for each document: it counts their markup, and stops where there is too much."""

    marks: int = 0
    left_out: int = 0
    """How many descriptions were not read for that."""

    def title(self, construct: Construct) -> str:
        """The title on one line."""
        value, html = construct.value()
        return text.title_of_html(value) if html else text.title(value)

    def description(self, construct: Construct) -> str:
        """The description on one line; empty when it is neither text nor markup."""
        value, html = construct.value()
        if html:
            return self.of_html(value)
        return text.text(value) if construct.type.startswith("text/") else ""

    def of_html(self, markup: str) -> str:
        """What a reader of this HTML sees; empty where the document has too much of it."""
        self.marks += markup.count("<") + markup.count("&")
        if self.marks > MAX_MARKS:
            self.left_out += 1
            return ""
        return text.text_of_html(markup)


def looks_like_html(written: str) -> bool:
    """Whether plain text must be HTML: it closes a tag or has a reference, and all of its tags and names are HTML's."""
    written = written[: text.TEXT_LIMIT]
    if not (CLOSING.search(written) or ENTITY.search(written)):
        return False
    if any(tag.lower() not in text.INLINE | text.BLOCK for tag in TAG.findall(written)):
        return False
    return all(number or f"{name};" in html5 for number, name in ENTITY.findall(written))


def _escaped(written: str) -> str:
    return written.replace("&", "&amp;").replace("<", "&lt;")


def _decoded(value: str) -> str:
    """Base64 as text; as it stands when it is none."""
    try:
        return b64decode(value).decode()
    except (binascii.Error, ValueError):
        return value
