"""One entry of a feed while its elements are read, and what they come to in the end."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from app.domain import dates, links, text
from app.domain.feednames import Part
from app.domain.feeds import Entry, named_fields

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from datetime import datetime

    from app.domain.constructs import Construct, Texts

MAX_LINKS = 50
MAX_CATEGORIES = 100
MAX_DESCRIPTIONS = 8
MAX_DATES = 3
"""Of one entry, and of dates of each meaning; what is beyond is not looked at."""

BASES_WITHIN = 20
WORD_LIMIT = 300
HTML = frozenset({"text/html", "application/xhtml+xml", "html", "xhtml"})

DATED = (Part.PUBLISHED, Part.UPDATED, Part.CREATED)
"""The first that an entry has and that can be read is its date."""


@dataclass(slots=True, eq=False)
class Base:
    """What links are relative to; worked out when one asks."""

    url: str | None = None
    href: str = ""
    around: Base | None = None
    depth: int = 0

    def within(self, href: str) -> Base:
        """The base of an element that says so."""
        if self.depth >= BASES_WITHIN:
            return self
        return Base(href=href, around=self, depth=self.depth + 1)

    def whole(self) -> str:
        """Absolute. A base that is no web address is none."""
        if self.url is None:
            around = self.around.whole() if self.around else ""
            self.url = links.absolute(self.href, around) or around
        return self.url


@dataclass(frozen=True, slots=True)
class Link:
    """A link as written."""

    href: str
    base: Base

    @property
    def absolute(self) -> str | None:
        """None when it is no web address."""
        return links.absolute(self.href, self.base.whole()) if self.href else None


@dataclass(slots=True)
class Draft:
    """What has been read of an entry."""

    about: str = ""
    """What RDF calls it, which is its id where it has no other."""

    elements: int = 0
    id: str = ""
    id_link: Link | None = None
    """The id, where it may be an address."""

    permalink: Link | None = None
    others: list[Link] = field(default_factory=list)
    titles: dict[int, str] = field(default_factory=dict)
    """The first of each rank; the lowest counts."""

    longest: str = ""
    """Of the descriptions, which may be a summary and one or more bodies."""

    descriptions: int = 0
    dates: dict[Part, list[str]] = field(default_factory=dict)
    categories: list[str] = field(default_factory=list)
    author: str = ""
    name: str = ""
    email: str = ""
    zone_unknown: bool = False
    """Whether its date names a zone that we do not know; said by `entry`."""

    _opaque_id: bool = False

    def attributes(self, part: Part, found: Mapping[str, str], base: Base) -> None:
        """An element begins, and says what it has to say in its attributes."""
        match part:
            case Part.LINK:
                self._link(found, base)
            case Part.ENTRY:
                self.about = found.get("rdf:about", "")
                self._link({"href": found.get("href", "")}, base)  # of the Channel Definition Format, with `lastmod`
                self.plain(Part.UPDATED, found.get("lastmod", ""), base)
            case Part.ENCLOSURE:
                self._other(Link(found.get("url") or found.get("href") or "", base))
            case Part.ID:
                self._opaque_id = found.get("ispermalink", "true").strip().lower() != "true"
            case Part.CATEGORY:
                self._category(found.get("term") or found.get("text") or "")
            case _:
                pass

    def construct(self, part: Part, read: Construct, texts: Texts, *, depth: int) -> None:
        """A title or a description ends. `depth` is how far inside it is: the outermost title is the entry's own."""
        if part in {Part.TITLE, Part.OTHER_TITLE}:
            rank = 2 * depth + (part is Part.OTHER_TITLE)
            if rank not in self.titles and len(self.titles) < MAX_DESCRIPTIONS and (title := texts.title(read)):
                self.titles[rank] = title
        elif self.descriptions < MAX_DESCRIPTIONS:
            self.descriptions += 1
            self.longest = max(self.longest, texts.description(read), key=len)

    def plain(self, part: Part, value: str, base: Base) -> None:
        """An element of plain text ends."""
        if not value:
            return
        match part:
            case Part.LINK:
                self.permalink = Link(value, base)
                self._other(self.permalink)
            case Part.ID:
                self.id = value
                addressed = not self._opaque_id and value[:8].lower().startswith(("http://", "https://", "/"))
                self.id_link = Link(value, base) if addressed else None
            case Part.PUBLISHED | Part.UPDATED | Part.CREATED:
                earlier = self.dates.get(part, [])[: MAX_DATES - 1]
                self.dates[part] = [value[: dates.DATE_LIMIT], *earlier]  # the last one counts
            case Part.CATEGORY:
                self._category(value)
            case Part.KEYWORDS:
                for word in value[: MAX_CATEGORIES * WORD_LIMIT].split(",", MAX_CATEGORIES):
                    self._category(word)
            case _:
                self._person(part, value[:WORD_LIMIT])

    def end_author(self) -> None:
        """All that the author's own elements say has been read."""
        if self.name or self.email:
            self.author = f"{self.name} ({self.email})" if self.name and self.email else self.name or self.email
        self.name = self.email = ""

    def entry(self) -> Entry:
        """What it comes to."""
        return Entry(
            id=text.clean(self.id or self.about),
            title=self.titles[min(self.titles)] if self.titles else "",
            link=next(filter(None, (link.absolute for link in self._links())), None),
            published_at=self._published_at(),
            text=self.longest,
            fields=named_fields(categories=self.categories, author=self.author),
        )

    def _published_at(self) -> datetime | None:
        for written in (value for part in DATED for value in self.dates.get(part, [])):
            if found := dates.moment(written):
                self.zone_unknown = dates.unknown_zone(written)
                return found
        return None

    def _links(self) -> Iterator[Link]:
        yield from filter(None, (self.permalink, self.id_link))
        yield from self.others

    def _link(self, found: Mapping[str, str], base: Base) -> None:
        href = found.get("url") or found.get("uri") or found.get("href") or ""
        rel = found.get("rel", "alternate").strip().lower()
        if not href or rel == "self":
            return
        link = Link(href.strip(), base)
        self._other(link)
        if rel == "alternate" and found.get("type", "text/html").strip().lower() in HTML:
            self.permalink = link

    def _person(self, part: Part, value: str) -> None:
        match part:
            case Part.AUTHOR:
                self.author = value
            case Part.NAME:
                self.name = value
            case Part.EMAIL:
                self.email = value
            case _:
                pass

    def _other(self, link: Link) -> None:
        if len(self.others) < MAX_LINKS:
            self.others.append(link)

    def _category(self, term: str) -> None:
        term = term.strip()[:WORD_LIMIT]
        if term and len(self.categories) < MAX_CATEGORIES:
            self.categories.append(term)
