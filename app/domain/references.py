"""References of XML as sources write it: `&amp;`, `&#8217;`, `&eacute;`, and entities of the document's own."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from html.entities import html5
from io import StringIO

from app.domain.text import code_points

OWN_NAMES = (("&lt;", "<"), ("&gt;", ">"), ("&quot;", '"'), ("&apos;", "'"), ("&amp;", "&"))
"""XML's five; `&amp;` last, so that `&amp;lt;` becomes `&lt;`."""

OTHERS = re.compile(
    r"(?P<numeric>(?:&\#(?:[0-9]{1,20}|[xX][0-9A-Fa-f]{1,16});)++)"
    r"|&(?!(?:amp|lt|gt|quot|apos);)(?P<name>[A-Za-z][A-Za-z0-9]{0,31});"
)
STRAY = re.compile(r"&(?!#[0-9]{1,20};|#[xX][0-9A-Fa-f]{1,16};|[A-Za-z][A-Za-z0-9]{0,31};)")

ENTITY_VALUE_LIMIT = 200
ENTITY_LIMIT = 1_000
ENTITY_BUDGET = 100_000
"""Characters that a document's own entities may add: more is an attack ("a billion laughs"), and stays unexpanded."""

MAX_REFERENCES = 300_000
"""Of one document, but for XML's own five; numbers in a row are one. They take half a second; what is beyond stays as
it is written."""

UNDECLARED = "entities that are not declared"
STRAY_SIGNS = "stray & or <"
TOO_MANY = "too many references"


@dataclass(slots=True)
class References:
    """What a document's references mean. One for each document: it counts what they add."""

    entities: dict[str, str] = field(default_factory=dict)
    budget: int = ENTITY_BUDGET
    left: int = MAX_REFERENCES

    faults: set[str] = field(default_factory=set)
    """What XML forbids and was read all the same, in words for people."""

    def resolve(self, piece: str) -> str:
        """The text, its references become characters.

        Halves of a pair are one character, numbers of no character U+FFFD, and what is no reference stays.
        """
        if "&" not in piece:
            return piece
        if STRAY_SIGNS not in self.faults and STRAY.search(piece):
            self.faults.add(STRAY_SIGNS)
        if self.left:
            piece, count = OTHERS.subn(self._written, piece, self.left)
            self.left -= count
        else:
            self.faults.add(TOO_MANY)
        for name, character in OWN_NAMES:
            piece = piece.replace(name, character)
        return piece

    def declare(self, subset: str) -> None:
        """Keeps the entities of a DOCTYPE that are plain texts; one made of other entities or of markup is unknown."""
        for declared in subset.split("<!ENTITY", ENTITY_LIMIT)[1:]:
            name, _, value = declared.strip().partition(" ")
            value = value.strip()
            quote = value[:1]
            if quote not in {'"', "'"} or not name.isidentifier():
                continue
            value = value[1:].partition(quote)[0]
            if len(value) <= ENTITY_VALUE_LIMIT and not set(value) & set("&<%"):
                self.entities.setdefault(name, value)

    def _written(self, found: re.Match[str]) -> str:
        if found["numeric"]:
            written = StringIO()  # joining would hold each character by itself first
            written.writelines(map(chr, code_points(found["numeric"])))
            return written.getvalue().replace("&", "&amp;")  # an "&" so written begins no reference
        name = found["name"]
        own = self.entities.get(name)
        if own is not None and len(own) <= self.budget:
            self.budget -= len(own)
            return own
        self.faults.add(UNDECLARED)
        return html5.get(f"{name};", found[0]).replace("&", "&amp;")
