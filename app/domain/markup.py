"""XML as sources write it, read in one pass from front to back.

Nothing is looked for twice, and what is read is counted: a document made to be slow is not. Nothing is refused for its
grammar: what is no tag is text, and a tag need not be closed.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from itertools import islice
from typing import Protocol

from app.domain.references import STRAY_SIGNS, References
from app.domain.text import tag_end, tag_name

FORBIDDEN = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""What XML 1.0 allows nowhere in a document (section 2.2)."""

FORBIDDEN_CHARACTERS = "forbidden characters"

MAX_TAGS = 150_000
"""Of one document: so many are read in about a second, and a thread cannot be stopped. Of the feeds looked at, the
densest has one for each 29 bytes, and reaches this with 4.3 MB; the next one with 5.6."""

_REST = r"""[^<>"']*+(?:"[^"<]*+"[^<>"']*+|'[^'<]*+'[^<>"']*+)*+"""
NAME = r"""([A-Za-z][^ \t\r\n/><"']{0,63}+)"""
TAG = re.compile(f"</?{NAME}{_REST}>")
"""One whose quotes are closed, as nearly all are; what it does not match is looked at more patiently."""

LEAF = re.compile(rf"(<{NAME}{_REST}(?<!/)>)([^<]*+)</\2>")
"""An element with nothing but text in it: most of a feed, and so read at once."""

ATTRIBUTE = re.compile(r"""([^\s=<>"'/]+)(?:\s{0,9}=\s{0,9}(?:"([^"]*)"|'([^']*)'|([^\s"'>]+)))?""")
MAX_ATTRIBUTES = 50
TAG_LIMIT = 20_000
"""Characters of one tag in which its attributes are looked for; a link has at most 4,000."""


class Reader(Protocol):
    """Who is told of what is read."""

    def open(self, name: str, tag: str, *, alone: bool) -> bool:
        """A tag opens; `name` in lower case with its prefix, `tag` as written. False: read no further."""
        ...

    def close(self, name: str) -> bool:
        """A tag closes, which may be none that is open. False: read no further."""
        ...

    def leaf(self, name: str, tag: str, text: str) -> bool:
        """A tag opens, a text that is not literal comes, and the tag closes. False: read no further."""
        ...

    def text(self, piece: str, *, literal: bool) -> None:
        """Text in between, in pieces; a literal one (CDATA) has no references."""
        ...


@dataclass(slots=True)
class Scan:
    """One reading of a document."""

    document: str
    reader: Reader
    references: References = field(default_factory=References)

    tags: int = 0
    """How many there were, comments and the like included; when there are more than MAX_TAGS, the rest was not read."""

    def run(self) -> None:
        """Tell the reader of everything."""
        if FORBIDDEN.search(self.document):
            self.document = FORBIDDEN.sub("", self.document)
            self.references.faults.add(FORBIDDEN_CHARACTERS)
        document, reader = self.document, self.reader
        at = 0
        while 0 <= at < len(document) and self.tags <= MAX_TAGS:
            start = document.find("<", at)
            if start < 0:
                reader.text(document[at:], literal=False)
                return
            if start > at:
                reader.text(document[at:start], literal=False)
            if found := LEAF.match(document, start):
                self.tags += 2
                at = found.end() if reader.leaf(found[2].lower(), found[1], found[3]) else -1
            else:
                found = TAG.match(document, start)
                at = self._tag(found[1].lower(), start, found.end()) if found else self._odd(start)

    def _tag(self, name: str, start: int, end: int) -> int:
        self.tags += 1
        if self.document[start + 1] == "/":
            more = self.reader.close(name)
        else:
            tag = self.document[start:end]
            more = self.reader.open(name, tag, alone=tag.endswith("/>"))
        return end if more else -1

    def _odd(self, start: int) -> int:
        """Reads what begins with the `<` at `start` and is no tag as it should be. Where it ends; -1 at the end."""
        document = self.document
        if document.startswith(("<!", "<?"), start):
            return self._special(start)
        stop = document.find("<", start + 1)
        stop = stop if stop >= 0 else len(document)
        name = tag_name(document[start : start + 66])
        end = tag_end(document, start, stop) if name else -1
        if end >= 0:
            return self._tag(name, start, end)
        self.tags += 1
        self.references.faults.add(STRAY_SIGNS)  # "a < b", or a tag cut off
        self.reader.text("&lt;" + document[start + 1 : stop], literal=False)
        return stop

    def _special(self, start: int) -> int:
        document = self.document
        if document.startswith("<![CDATA[", start):
            self.tags += 1
            end = document.find("]]>", start + 9)
            if end >= 0:
                self.reader.text(document[start + 9 : end], literal=True)
            return end + 3 if end >= 0 else -1
        self.tags += 1
        if document.startswith("<!--", start):
            return _past(document, "-->", start + 4)
        if document.startswith("<?", start):
            return _past(document, "?>", start + 2)
        return self._declaration(start)

    def _declaration(self, start: int) -> int:
        """Leaves a DOCTYPE out, but for the plain texts it names."""
        document = self.document
        end = document.find(">", start)
        subset = document.find("[", start, end) if end >= 0 else -1
        if subset >= 0:
            close = document.find("]", subset)
            end = document.find(">", close) if close >= 0 else -1
            self.references.declare(document[subset:end])
        return end + 1 if end >= 0 else -1


def attributes_of(tag: str, references: References) -> dict[str, str]:
    """The attributes of a tag by their names in lower case. The first of two that are named alike counts."""
    found: dict[str, str] = {}
    if "=" not in tag:
        return found
    for attribute in islice(ATTRIBUTE.finditer(tag[:TAG_LIMIT]), 1, MAX_ATTRIBUTES + 1):
        name, double, single, bare = attribute.groups()
        value = next((value for value in (double, single, bare) if value is not None), None)
        if value is not None:
            found.setdefault(name.lower(), references.resolve(value))
    return found


def _past(document: str, end: str, start: int) -> int:
    found = document.find(end, start)
    return found + len(end) if found >= 0 else -1
