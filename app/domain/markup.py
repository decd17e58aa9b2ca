"""XML as sources write it, repaired so that a strict parser reads it.

One pass from front to back with `str.find`, and nothing is looked for twice: a document made to be slow is not.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from html.entities import html5

from app.domain.text import REFERENCE, REPLACEMENT, code_points, tag_end, tag_name

FORBIDDEN = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""What XML 1.0 allows nowhere in a document (section 2.2)."""

OWN_NAMES = frozenset({"amp", "lt", "gt", "quot", "apos"})

AMPERSAND = re.compile(REFERENCE.pattern + "|&")

ENTITY_VALUE_LIMIT = 200
ENTITY_BUDGET = 100_000
"""Characters that a document's own entities may add: more is an attack ("a billion laughs"), and stays unexpanded."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Repaired:
    """A document with a declaration, without DOCTYPE, comments and processing instructions."""

    xml: str

    root: str
    """Name of the outermost element in lower case, with its prefix; empty when there is none."""

    whole: bool
    """Whether the root was closed: False means that the end is missing."""

    attributes: int = 0
    """Of the tag that has most, at most: counted by `=`."""


@dataclass(slots=True)
class _Pass:
    """What has been read of a document so far."""

    document: str
    out: list[str] = field(default_factory=list)
    root: str = ""

    depth: int = 0
    """How many elements named like the root are open."""

    attributes: int = 0

    closed: bool = False
    entities: dict[str, str] = field(default_factory=dict)
    budget: int = ENTITY_BUDGET


def repair(document: str) -> Repaired:
    """The document as a strict parser takes it, as far as that can be had without guessing."""
    state = _Pass(FORBIDDEN.sub("", document))
    at = 0
    while 0 <= at < len(state.document) and not state.closed:  # servers add their advertisements after the end
        start = state.document.find("<", at)
        _text(state, at, start if start >= 0 else len(state.document))
        at = _markup(state, start) if start >= 0 else -1
    xml = "<?xml version='1.0' encoding='utf-8'?>\n" + "".join(state.out)
    return Repaired(xml=xml, root=state.root, whole=state.closed, attributes=state.attributes)


def _markup(state: _Pass, start: int) -> int:
    """Reads what begins with the `<` at `start`. Where it ends; -1 when the document ends first."""
    document = state.document
    if document.startswith("<![CDATA[", start):
        return _cdata(state, start)
    if document.startswith("<!--", start):
        return _past(document, "-->", start + 4)
    if document.startswith("<?", start):
        return _past(document, "?>", start + 2)
    if document.startswith("<!", start):
        return _declaration(state, start)
    stop = document.find("<", start + 1)
    stop = stop if stop >= 0 else len(document)
    name = tag_name(document[start : start + 66])
    end = tag_end(document, start, stop) if name else -1
    if end < 0:  # "a < b", or a tag cut off
        state.out.append("&lt;")
        _text(state, start + 1, stop)
        return stop
    _tag(state, name, document[start:end])
    return end


def _tag(state: _Pass, name: str, tag: str) -> None:
    state.attributes = max(state.attributes, tag.count("="))
    if not state.root:
        state.root = name
        state.out.clear()  # blanks, warnings of a server's software: no XML may stand before the root
    if name == state.root:
        alone = tag.endswith("/>") and not tag.startswith("</")
        state.depth += 0 if alone else -1 if tag.startswith("</") else 1
        state.closed = state.depth <= 0
    state.out.append(_references(state, tag))


def _cdata(state: _Pass, start: int) -> int:
    end = _past(state.document, "]]>", start + 9)
    if end >= 0 and state.root:
        # References are no references here, but the reader of the HTML within will take them for some.
        state.out.append(_without_bad_numbers(state.document[start:end]))
    return end


def _declaration(state: _Pass, start: int) -> int:
    """Leaves a DOCTYPE out, but for the plain texts it names."""
    document = state.document
    end = document.find(">", start)
    subset = document.find("[", start, end) if end >= 0 else -1
    if subset >= 0:
        close = document.find("]", subset)
        end = document.find(">", close) if close >= 0 else -1
        for declared in document[subset:end].split("<!ENTITY")[1:]:
            _entity(state, declared)
    return end + 1 if end >= 0 else -1


def _entity(state: _Pass, declared: str) -> None:
    """Keeps an entity whose value is plain text; one made of other entities or of markup stays unknown."""
    name, _, value = declared.strip().partition(" ")
    value = value.strip()
    quote = value[:1]
    if quote not in {'"', "'"} or not name.isidentifier():
        return
    value = value[1:].partition(quote)[0]
    if len(value) <= ENTITY_VALUE_LIMIT and not set(value) & set("&<%"):
        state.entities.setdefault(name, value.replace(">", "&gt;"))


def _text(state: _Pass, start: int, end: int) -> None:
    if end > start and state.root:
        piece = _references(state, state.document[start:end])
        state.out.append(piece.replace("]]>", "]]&gt;"))


def _references(state: _Pass, piece: str) -> str:
    """Names become numbers, numbers that are no characters U+FFFD, and an `&` that begins nothing is escaped."""
    if "&" not in piece:
        return piece

    def written(found: re.Match[str]) -> str:
        if found["numeric"]:
            return "".join(f"&#{point};" for point in code_points(found["numeric"]))
        name = found["name"]
        if not name:
            return "&amp;"
        if name in OWN_NAMES:
            return found[0]
        own = state.entities.get(name)
        if own is not None and len(own) <= state.budget:
            state.budget -= len(own)
            return own
        known = html5.get(name + ";")
        return "".join(f"&#{ord(character)};" for character in known) if known else f"&amp;{name};"

    return AMPERSAND.sub(written, piece)


def _without_bad_numbers(cdata: str) -> str:
    """Joins halves of pairs and replaces what is no character; every other reference stays as it is."""
    if "&#" not in cdata:
        return cdata

    def written(found: re.Match[str]) -> str:
        run = found["numeric"]
        if not run:
            return found[0]
        points = list(code_points(run))
        if len(points) == run.count("&") and ord(REPLACEMENT) not in points:
            return run
        return "".join(f"&#{point};" for point in points)

    return REFERENCE.sub(written, cdata)


def _past(document: str, end: str, start: int) -> int:
    found = document.find(end, start)
    return found + len(end) if found >= 0 else -1
