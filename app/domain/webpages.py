"""What a web page says of itself before it is parsed: its encoding, its base, whether it can be parsed at all."""

from __future__ import annotations

import re
from collections import Counter
from urllib.parse import urljoin

from app.domain import feeds

META_BYTES = 4096
"""Browsers look for the encoding in the first 1,024 (HTML standard, "prescan"); some pages have it later."""

META = re.compile(rb"""<meta\b[^>]{0,300}?charset\s{0,9}=\s{0,9}["']?([\w.:-]{1,40})""", re.IGNORECASE)
TITLE = re.compile(r"<title\b[^>]{0,300}>([^<]{0,500})", re.IGNORECASE)

MAX_STEPS = 100_000_000
"""Elements, each times those that it is in, about. A parser looks through the latter for each of the former, and a
thread cannot be stopped: so many steps take a second or two. A page of 300,000 elements, 50 deep, has 15 million."""

MAX_TAGS = 400_000
"""Pages of several megabytes have a tenth."""

MAX_SIBLINGS = 5_000
"""Where a selector counts them: its time grows with their square, and 40,000 took twelve seconds."""

MAX_ATTRIBUTES = 1_000
LONG_TAG = 20_000

SKIPPED = re.compile(r"<!--|<(script|style|textarea|title)\b", re.IGNORECASE)
TAG = re.compile(r"<(/?)([A-Za-z][A-Za-z0-9]*)")
WIDE_TAG = re.compile(rf"<[A-Za-z][^<>]{{{LONG_TAG},}}")
QUOTED = re.compile(r"\"[^\"]*\"|'[^']*'")

VOID = (
    "area base br circle col embed frame hr image img input line link meta param path polygon polyline rect source stop"
    " track use wbr"
)
CLOSED_BY_OTHERS = "body colgroup dd dt html li optgroup option p rp rt tbody td tfoot th thead tr"
BOUNDS = frozenset({"applet", "caption", "html", "marquee", "object", "table", "td", "template", "th"})
"""What no end tag of something outside closes (HTML standard, "has an element in scope")."""

OTHER_BLOCKS = (
    "address article aside blockquote button center details dialog dir div dl fieldset figcaption figure footer form h1"
    " h2 h3 h4 h5 h6 header hgroup main menu nav ol pre search section summary ul"
)
BLOCKS = BOUNDS.union(OTHER_BLOCKS.split())
"""What an end tag of something that is none of them does not close (the standard's "special" elements)."""

UNCOUNTED = frozenset([*VOID.split(), *CLOSED_BY_OTHERS.split()])
"""Elements that nothing can be in, and those that need not be closed: lists of thousands of them are no nesting."""


def content_type_of(body: bytes, content_type: str) -> str:
    """The Content-Type, with the charset that the page itself declares where HTTP says none."""
    found = META.search(body[:META_BYTES]) if "charset" not in content_type.lower() else None
    if found is None or found[1].lower().startswith(b"utf-16"):  # it could not be read as ASCII, were it true
        return content_type
    return f"{content_type or 'text/html'}; charset={found[1].decode('ascii', 'replace')}"


def base_of(href: str | None, url: str) -> str:
    """What links are relative to: `<base href>`, which may be relative itself, else the page's address."""
    try:
        return urljoin(url, href.strip()) if href else url
    except ValueError:
        return url


def title_of(document: str) -> str:
    """The page's title, in lower case."""
    found = TITLE.search(document[: feeds.PAGE_HEAD])
    return " ".join(found[1].lower().split()) if found else ""


def is_challenge(document: str) -> bool:
    """Whether its title is that of a page that wants to see a person: words in its text may be those of a job."""
    title = title_of(document)
    return any(said in title for said in feeds.CHALLENGES)


def instead_of(document: str, host: str, wanted: str) -> str:
    """The reason to tell when a page came in place of what was `wanted`."""
    told = feeds.web_page(document, host)
    return told.removesuffix("a feed") + wanted


def unparsable(document: str, *, siblings_matter: bool = False) -> str | None:
    """Why the page should not be given to a parser; None when it can be.

    `siblings_matter`: a selector looks through what stands beside each element.
    """
    for tag in WIDE_TAG.finditer(document):
        if len(QUOTED.sub("", tag[0]).split()) > MAX_ATTRIBUTES:
            return f"has a tag with more than {MAX_ATTRIBUTES:,} attributes"
    nested = _Nested()
    for begin, end in _markup(document):
        for tag in TAG.finditer(document, begin, end):
            name = tag[2].lower()
            siblings = nested.count()
            if siblings_matter and siblings > MAX_SIBLINGS:
                return f"has more than {MAX_SIBLINGS:,} elements side by side, too many for :nth-… and ~ in selectors"
            if name not in UNCOUNTED:
                (nested.close if tag[1] else nested.open)(name)
            if nested.steps > MAX_STEPS:
                return "has too many elements within each other to be read"
            if nested.tags > MAX_TAGS:
                return f"has more than {MAX_TAGS:,} tags, the limit for one page"
    return None


class _Nested:
    """The elements that are open, about as a parser keeps them: never fewer than it does."""

    def __init__(self) -> None:
        self._names: list[str] = []
        self._within = [0]
        """Tags in each open element, itself of the page at first, about."""

        self._open: Counter[str] = Counter()
        self.steps = self.tags = 0

    def open(self, name: str) -> None:
        self._names.append(name)
        self._within.append(0)
        self._open[name] += 1

    def close(self, name: str) -> None:
        """What is not open closes nothing; what is, closes all within it, unless that is something of its own."""
        if not self._open[name]:
            return
        place = len(self._names) - 1
        while self._names[place] != name:
            self.steps += 1
            if self._names[place] in (BOUNDS if name in BLOCKS else BLOCKS):
                return
            place -= 1
        for closed in self._names[place:]:
            self._open[closed] -= 1
        del self._names[place:]
        del self._within[place + 1 :]

    def count(self) -> int:
        """One more tag. How many there are in the element that it is in."""
        self.tags += 1
        self.steps += len(self._names)
        self._within[-1] += 1
        return self._within[-1]


def _markup(document: str) -> list[tuple[int, int]]:
    """The stretches of a document that are neither comments nor scripts and the like."""
    stretches, at = [], 0
    lowered = document.lower()
    if len(lowered) != len(document):  # a letter that becomes two
        lowered = document
    while found := SKIPPED.search(document, at):
        stretches.append((at, found.start()))
        closing = f"</{found[1].lower()}" if found[1] else "-->"
        end = lowered.find(closing, found.end())
        if end < 0:
            return stretches
        at = end + len(closing)
    return [*stretches, (at, len(document))]
