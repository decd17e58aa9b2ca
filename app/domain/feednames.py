"""What the elements of RSS, Atom and RDF are called, and what each means for an item."""

from __future__ import annotations

from enum import IntEnum, auto

NAMESPACES = {
    "http://purl.org/dc/elements/1.1/": "dc",
    "http://purl.org/dc/elements/1.0/": "dc",
    "http://purl.org/dc/terms/": "dcterms",
    "http://purl.org/rss/1.0/modules/content/": "content",
    "http://www.itunes.com/dtds/podcast-1.0.dtd": "itunes",
    "http://search.yahoo.com/mrss": "media",
    "http://www.w3.org/1999/xhtml": "xhtml",
    "http://www.w3.org/1999/02/22-rdf-syntax-ns#": "rdf",
    "http://www.w3.org/2005/atom": "",
    "http://purl.org/atom/ns#": "",
    "http://purl.org/rss/1.0/": "",
    "http://purl.org/net/rss1.1#": "",
    "http://my.netscape.com/rdf/simple/0.9/": "",
    "http://channel.netscape.com/rdf/simple/0.9/": "",
    "http://blogs.law.harvard.edu/tech/rss": "",
    "http://purl.org/rss/1.0/modules/rss091#": "",
}
"""The prefix that means each, in lower case; empty for those of the formats themselves."""

USERLAND = "backend.userland.com/rss"
"""In the namespaces of RSS 2.0, of which there were several."""

USUAL = {"atom": "", "atom10": "", "a10": "", "rss": "", "rss10": "", "rss1": ""}
"""What these prefixes mean where nothing declares them."""


class Part(IntEnum):
    """What an element is."""

    ENTRY = auto()
    TITLE = auto()
    OTHER_TITLE = auto()
    """Of media: counts where there is no title."""

    LINK = auto()
    ID = auto()
    ENCLOSURE = auto()
    PUBLISHED = auto()
    UPDATED = auto()
    CREATED = auto()
    SUMMARY = auto()
    """Plain text, where it does not say otherwise."""

    HTML = auto()
    """HTML, where it does not say otherwise."""

    XHTML = auto()
    AUTHOR = auto()
    NAME = auto()
    EMAIL = auto()
    CATEGORY = auto()
    KEYWORDS = auto()
    """Several, by commas."""

    APART = auto()
    """Whatever is within belongs to something else."""

    AROUND = auto()
    """Unknown: only what is within it may count."""


def _named(**names: str) -> dict[str, Part]:
    return {name: Part[part] for part, listed in names.items() for name in listed.split()}


PARTS = _named(
    ENTRY="item entry",
    TITLE="title dc:title",
    OTHER_TITLE="media:title itunes:title",
    LINK="link",
    ID="id guid",
    ENCLOSURE="enclosure",
    PUBLISHED="published issued pubdate dcterms:issued",
    UPDATED="updated modified lastbuilddate dc:date dcterms:modified",
    CREATED="created dcterms:created",
    SUMMARY="summary abstract content itunes:summary",
    HTML="description dc:description media:description content:encoded encoded fullitem",
    XHTML="body xhtml:body xhtml:div",
    AUTHOR="author managingeditor dc:creator dc:author itunes:author",
    NAME="name",
    EMAIL="email",
    CATEGORY="category dc:subject itunes:category media:category",
    KEYWORDS="keywords itunes:keywords media:keywords tags",
    APART="source image textinput contributor dc:contributor itunes:owner items cloud generator",
)

ROOTS = frozenset({"rss", "feed", "rdf:rdf"})

PAGES = frozenset({"html", "head", "body", "title", "meta", "script", "style", "div", "p", "h1", "center", "link"})
"""Names of outermost elements that only web pages have."""


def prefix_of(namespace: str) -> str | None:
    """The prefix that means a namespace; None when it is not known."""
    lower = namespace.strip().lower()
    if USERLAND in lower:
        return ""
    known = NAMESPACES.get(lower)
    return known if known is not None else NAMESPACES.get(lower.rstrip("/"))
