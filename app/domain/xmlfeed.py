"""The entries of an RSS, Atom or RDF document, read tag by tag as the scan tells them.

An element is inside an entry and means something (`feednames.PARTS`), or it is only around others, or it belongs to
something else (a picture, the feed that an entry was taken from) and nothing within it counts.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from app.domain.constructs import Construct, Texts
from app.domain.drafts import Base, Draft
from app.domain.feednames import PAGES, PARTS, ROOTS, USUAL, Part, prefix_of
from app.domain.feeds import MAX_ENTRIES
from app.domain.markup import attributes_of

if TYPE_CHECKING:
    from app.domain.references import References

MAX_ELEMENTS = 500
"""Of one entry that are looked at."""

MAX_DECLARING = 50_000
"""Tags that are looked at for namespaces and bases. Some software declares all of them at each element; once known, a
prefix stays known."""

MISMATCHED = "tags that do not match"

WARNINGS = frozenset({"b", "br"})
"""With these begins what a PHP server's software says before the feed."""

PREFIX_LIMIT = 1_000

CONSTRUCTS = {
    Part.TITLE: "text/plain",
    Part.OTHER_TITLE: "text/plain",
    Part.SUMMARY: "text/plain",
    Part.HTML: "text/html",
    Part.XHTML: "application/xhtml+xml",
}
"""What may hold markup, and of which type it is where it does not say."""

PLAIN = frozenset(
    {Part.LINK, Part.ID, Part.PUBLISHED, Part.UPDATED, Part.CREATED, Part.AUTHOR, Part.NAME, Part.EMAIL}
    | {Part.CATEGORY, Part.KEYWORDS}
)

VOID = frozenset({"area", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "wbr"})
"""Tags of HTML that nothing closes."""


@dataclass(slots=True, eq=False)
class _Open:
    """An element that is open."""

    name: str
    part: Part | None
    """None for markup in the middle of a text."""

    default: str
    """What a name without a prefix means here."""

    base: Base


@dataclass(slots=True)
class XmlFeed:
    """What has been read of a document so far."""

    url: str
    """Where it came from: the base of its links."""

    texts: Texts
    references: References
    drafts: list[Draft] = field(default_factory=list)
    """Whole entries, in the document's order."""

    root: str = ""
    """Name of the outermost element in lower case, with its prefix."""

    kind: str = ""
    """Which of ROOTS it is; empty when it is none."""

    whole: bool = False
    """Whether the root was closed."""

    too_many: bool = False
    """There are more than MAX_ENTRIES; the rest was not read."""

    _channel: bool = False
    """There is a channel, or a namespace of RSS: RDF alone may be about anything."""

    _prefixes: dict[str, str] = field(default_factory=dict)
    _declaring: int = 0
    _known: dict[tuple[str, str], tuple[str, Part]] = field(default_factory=dict)
    _open: list[_Open] = field(default_factory=list)
    _counts: dict[str, int] = field(default_factory=dict)
    """Open elements by name: a closing tag looks for its own only if there is one."""

    _apart: int = 0
    _entry: Draft | None = None
    _entry_name: str = ""
    _plain: list[str] | None = None
    _construct: Construct | None = None
    _within: _Open | None = None
    """Whose text is being collected."""

    @property
    def is_feed(self) -> bool:
        """Whether it can be taken for a feed: by its root, or since entries were found."""
        return bool(self.drafts) or self.kind in {"rss", "feed"} or (bool(self.kind) and self._channel)

    def open(self, name: str, tag: str, *, alone: bool) -> bool:
        """A tag opens. False at the root of a web page, and when there are too many entries."""
        if not self.root:
            self.root = name
            if name in PAGES or name in WARNINGS:
                return False
        if self._construct is not None and not (name == self._entry_name and self._construct.breakable):
            self._construct.inline(name, tag)
            if not alone and name not in VOID:
                self._push(_Open(name, None, "", self._open[-1].base))
            return True
        element, attributes = self._element(name, tag)
        if element.part is Part.ENTRY:
            if len(self.drafts) >= MAX_ENTRIES:
                self.too_many = True
                return False
            self._break_out()
        self._end_text()
        self._push(element)
        self._begin(element, attributes, tag)
        return self.close(name, fault=False) if alone else True

    def close(self, name: str, *, fault: bool = True) -> bool:
        """A tag closes, and with it whatever is open within. False when it is the root's."""
        if not self._counts.get(name):
            if self._construct is not None:
                self._construct.closed(name)
            self.references.faults.add(MISMATCHED)
            return True
        while self._open[-1].name != name:
            self._pop()
            if fault:
                self.references.faults.add(MISMATCHED)
        if self._open[-1].part is None and self._construct is not None:
            self._construct.closed(name)
        self._pop()
        self.whole = not self._open
        return bool(self._open)

    def leaf(self, name: str, tag: str, text: str) -> bool:
        """An element of text alone. Says what opening, telling and closing it would; only sooner."""
        simple = self._open and self._within is None and "xmlns" not in tag and "base" not in tag
        full, part = self._part(name, self._open[-1].default) if simple else ("", Part.ENTRY)
        if part in {Part.ENTRY, Part.APART} or full == "channel":
            if not self.open(name, tag, alone=False):
                return False
            self.text(text, literal=False)
            return self.close(name)
        entry = self._entry
        if not self._counts_now() or part is Part.AROUND or entry is None:
            return True
        attributes = attributes_of(tag, self.references)
        base = self._open[-1].base
        if attributes or part is Part.ID:
            entry.attributes(part, attributes, base)
        if part in CONSTRUCTS:
            construct = Construct.of(attributes, CONSTRUCTS[part], atom=self.kind == "feed")
            construct.add(self.references.resolve(text))
            entry.construct(part, construct, self.texts, depth=len(self._open))
        elif part in PLAIN:
            entry.plain(part, self.references.resolve(text).strip(), base)
            if part is Part.AUTHOR:
                entry.end_author()
        return True

    def text(self, piece: str, *, literal: bool) -> None:
        """Text, which is dropped where it means nothing."""
        if self._construct is not None:
            self._construct.add(piece if literal else self.references.resolve(piece))
        elif self._plain is not None:
            self._plain.append(piece if literal else self.references.resolve(piece))

    def _element(self, name: str, tag: str) -> tuple[_Open, dict[str, str]]:
        """What the tag opens, with its attributes where they count."""
        around = self._open[-1] if self._open else None
        default = around.default if around else ""
        base = around.base if around else Base(url=self.url)
        attributes: dict[str, str] = {}
        if ("xmlns" in tag or "base" in tag) and self._declaring < MAX_DECLARING:
            self._declaring += 1
            attributes = attributes_of(tag, self.references)
            default = self._declare(attributes, default)
            if href := attributes.get("xml:base", attributes.get("base")):
                base = base.within(href)
        full, part = self._part(name, default)
        if not self._open and full in ROOTS:
            self.kind = full
            self._channel = any(prefix_of(value) == "" for name, value in attributes.items() if "xmlns" in name)
        self._channel = self._channel or full == "channel"
        if part is not Part.ENTRY and part is not Part.APART and not self._counts_now():
            part = Part.AROUND
        return _Open(name, part, default, base), attributes

    def _counts_now(self) -> bool:
        """Whether an element can mean something here: inside an entry, and not one of far too many."""
        entry = self._entry
        if entry is None or self._apart:
            return False
        entry.elements += 1
        return entry.elements <= MAX_ELEMENTS

    def _declare(self, attributes: dict[str, str], default: str) -> str:
        """Notes the namespaces that a tag declares, and answers with what is meant without a prefix."""
        for name, namespace in attributes.items():
            known = prefix_of(namespace)
            if name == "xmlns":
                default = known or ""
            elif name.startswith("xmlns:") and known is not None and len(self._prefixes) < PREFIX_LIMIT:
                prefix = name[6:]
                if self._prefixes.get(prefix) != known:
                    self._prefixes[prefix] = known
                    self._known.clear()
        return default

    def _part(self, name: str, default: str) -> tuple[str, Part]:
        """The name with the usual prefix, and what it means."""
        known = self._known.get((name, default))
        if known is None:
            prefix, colon, local = name.rpartition(":")
            prefix = self._prefixes.get(prefix, USUAL.get(prefix, prefix)) if colon else default
            full = f"{prefix}:{local}" if prefix else local
            known = full, PARTS.get(full, Part.AROUND)
            if len(self._known) < PREFIX_LIMIT:
                self._known[name, default] = known
        return known

    def _push(self, element: _Open) -> None:
        self._open.append(element)
        self._counts[element.name] = self._counts.get(element.name, 0) + 1

    def _pop(self) -> None:
        element = self._open.pop()
        self._counts[element.name] -= 1
        if element is self._within:
            self._end_text()
        if element.part is Part.ENTRY and self._entry is not None:
            self.drafts.append(self._entry)
            self._entry = None
            self._entry_name = ""
        elif element.part is Part.AUTHOR and self._entry is not None:
            self._entry.end_author()
        elif element.part is Part.APART:
            self._apart -= 1

    def _break_out(self) -> None:
        """An entry begins: whatever was left open of the one before, or of a picture before them all, ends here."""
        while self._apart or self._entry is not None:
            self.references.faults.add(MISMATCHED)
            self._pop()

    def _begin(self, element: _Open, attributes: dict[str, str], tag: str) -> None:
        """Starts collecting what the element means."""
        part = element.part
        if part is Part.AROUND:
            return
        if part is Part.APART:
            self._apart += 1
            return
        attributes = attributes or attributes_of(tag, self.references)
        if part is Part.ENTRY:
            self._entry = Draft()
            self._entry_name = element.name
        if self._entry is None or part is None:
            return
        if attributes or part is Part.ID:
            self._entry.attributes(part, attributes, element.base)
        if part in CONSTRUCTS:
            self._construct = Construct.of(attributes, CONSTRUCTS[part], atom=self.kind == "feed")
            self._within = element
        elif part in PLAIN:
            self._plain = []
            self._within = element

    def _end_text(self) -> None:
        """What was collected goes to the entry."""
        element, entry = self._within, self._entry
        if element is None or entry is None or element.part is None:
            return
        if self._construct is not None:
            entry.construct(element.part, self._construct, self.texts, depth=len(self._open))
        elif self._plain is not None:
            entry.plain(element.part, "".join(self._plain).strip(), element.base)
        self._construct = self._plain = self._within = None
