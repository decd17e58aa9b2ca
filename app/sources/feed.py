"""RSS, Atom, RDF and JSON Feed.

    bytes --charsets--> text --markup--> tags and texts --xmlfeed--> drafts --> entries --feeds--> items
                             `--json (a JSON Feed)------------------------------^

All in one pass of our own. A library was measured first: feedparser takes 45 microseconds for each element, minutes for
some documents of 100 kB (an author of letters alone, many categories), and a thread cannot be stopped.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Annotated
from urllib.parse import urlsplit

import httpx
from pydantic import AfterValidator, BaseModel, ConfigDict, SecretStr

from app.clients.download import Downloaded, download
from app.domain import charsets, feeds, manners
from app.domain.constructs import Texts
from app.domain.errors import TemporaryFailure
from app.domain.feednames import PAGES
from app.domain.items import Fetched, Unchanged
from app.domain.markup import MAX_TAGS, Scan
from app.domain.references import References
from app.domain.xmlfeed import WARNINGS, XmlFeed
from app.threads import in_thread

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from datetime import timedelta

    from app.sources import Reading

ACCEPT = (
    "application/rss+xml, application/atom+xml, application/feed+json, application/rdf+xml;q=0.9,"
    " application/xml;q=0.8, text/xml;q=0.8, application/json;q=0.7, */*;q=0.5"
)

DOWNLOAD_SECONDS = 15
"""Of the 20 that a fetch may take: the rest is for reading what came."""

FIRST_ELEMENT = re.compile(r"<[A-Za-z]")

FEED = re.compile(r"<(?:rss|feed|rdf:RDF)[\s>]")

FIELDS = feeds.FIELDS

HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
"""RFC 9110, section 5.6.2."""

HEADER_VALUE = re.compile(r"[\t\x20-\x7e\x80-\xff]*")


def _web_address(url: str) -> str:
    told = "must be a whole http:// or https:// address, as a browser shows it"
    try:
        parts = urlsplit(url.strip())
        usable = parts.scheme in {"http", "https"} and parts.hostname and httpx.URL(url.strip()).host
    except (ValueError, httpx.InvalidURL):
        usable = None
    if not usable:
        raise ValueError(told)
    return url.strip()


def _sendable(headers: Mapping[str, SecretStr]) -> Mapping[str, SecretStr]:
    for name, value in headers.items():
        if not HEADER_NAME.fullmatch(name):
            raise ValueError("names of headers are letters, digits and hyphens")
        if not HEADER_VALUE.fullmatch(value.get_secret_value()):
            raise ValueError(f"the value of {name} holds characters that a header cannot carry")
    return headers


class Options(BaseModel):
    """`[sources.x] kind = "feed"`."""

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)

    url: Annotated[str, AfterValidator(_web_address)]

    headers: Annotated[dict[str, SecretStr], AfterValidator(_sendable)] = {}
    """Sent with each request; no other host is told of them when the feed has moved."""


async def fetch(options: Options, ctx: Reading) -> Fetched | Unchanged:
    """Everything the feed lists now, or what is whole of a document that ends in the middle, once the feed is known.

    Raises TemporaryFailure or PermanentFailure. The first round is never a part of one: the rest would be told as new.
    """
    got = await download(ctx.http, options.url, headers=_headers(options, ctx), total_seconds=DOWNLOAD_SECONDS)
    if got is None:
        return Unchanged()
    fetched: Fetched | Unchanged = await in_thread(partial(read, got, partly=ctx.primed))
    return fetched


@dataclass(frozen=True, slots=True, kw_only=True)
class Parsed:
    """What a document says."""

    entries: list[feeds.Entry]

    whole: bool = True
    """False when its end is missing."""

    ttl: timedelta | None = None
    """How long it asks to be left alone."""

    warnings: list[str]


def read(got: Downloaded, *, partly: bool = False) -> Fetched:
    """The items of a downloaded document; takes as long as the document is large.

    Args:
        got: the document.
        partly: take a document whose end is missing for what is whole of it, and without its validators.

    Raises:
        TemporaryFailure: it is no feed, not a whole one, or has too much of something.
    """
    parsed = parse(got, partly=partly)
    items, warnings = feeds.items_of(parsed.entries)
    return Fetched(
        items=items,
        whole=parsed.whole,
        etag=got.etag if parsed.whole else None,
        last_modified=got.last_modified if parsed.whole else None,
        ttl=parsed.ttl,
        warnings=(*parsed.warnings, *warnings),
    )


def parse(got: Downloaded, *, partly: bool = False) -> Parsed:
    """The entries as the document has them. Raises as `read` does."""
    decoded = charsets.decode(got.body, got.content_type)
    document = decoded.text.lstrip("\ufeff \t\r\n\0")
    if not document:
        raise TemporaryFailure(f"{got.host} answered with nothing at all, not with a feed")
    told = [decoded.warning] if decoded.warning else []
    if document[0] in "{[":
        return Parsed(entries=feeds.json_feed(document, host=got.host, base=got.url), warnings=told)
    found = _xml_feed(document, got, partly=partly)
    entries = [draft.entry() for draft in found.drafts]
    ttl = manners.feed_ttl(document)
    return Parsed(entries=entries, whole=found.whole, ttl=ttl, warnings=[*told, *_odd(found)])


def _headers(options: Options, ctx: Reading) -> dict[str, str]:
    """What is sent: the operator's headers win over ours, except over the validators."""
    sent = {"user-agent": ctx.user_agent, "accept": ACCEPT}
    sent |= {name.lower(): value.get_secret_value() for name, value in options.headers.items()}
    if ctx.etag:
        sent["if-none-match"] = ctx.etag
    if ctx.last_modified:
        sent["if-modified-since"] = ctx.last_modified
    return sent


def _xml_feed(document: str, got: Downloaded, *, partly: bool) -> XmlFeed:
    """What was found in a document that is a feed, and a whole one, where it need be."""
    if not FIRST_ELEMENT.search(document):
        raise TemporaryFailure(f"{got.host} answered with plain text, not with a feed")
    found, scan = _scanned(document, got.url)
    if found.root in WARNINGS and (feed := FEED.search(document)):  # a PHP server's warnings stand before it
        found, scan = _scanned(document[feed.start() :], got.url)
    if found.root in PAGES | WARNINGS:
        raise TemporaryFailure(feeds.web_page(document, got.host))
    if found.too_many:
        raise TemporaryFailure(
            f"the feed of {got.host} has more than {feeds.MAX_ENTRIES:,} entries, the limit for one source"
        )
    if scan.tags > MAX_TAGS:
        raise TemporaryFailure(f"the feed of {got.host} has more than {MAX_TAGS:,} tags, the limit for one source")
    if not found.whole and not (partly and found.drafts):
        raise TemporaryFailure(f"the feed of {got.host} ends in the middle")
    if not found.is_feed:
        raise TemporaryFailure(f"{got.host} answered with XML that is no RSS, Atom or RDF feed")
    return found


def _scanned(document: str, url: str) -> tuple[XmlFeed, Scan]:
    references = References()
    found = XmlFeed(url, Texts(), references)
    scan = Scan(document, found, references)
    scan.run()
    return found, scan


def _odd(found: XmlFeed) -> Iterator[str]:
    if found.references.faults:
        told = ", ".join(sorted(found.references.faults))
        yield f"the feed is not well-formed ({told}), but could be read"
    if not found.whole:
        yield "the feed ends in the middle: what is whole of it was read"
    if unknown := sum(draft.zone_unknown for draft in found.drafts):
        yield f"dates in time zones of unknown names, taken for UTC: {unknown}"
    if found.texts.left_out:
        yield f"descriptions left out, for there is too much markup in them: {found.texts.left_out}"
