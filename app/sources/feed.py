"""RSS, Atom and RDF through feedparser; JSON Feed by ourselves.

    bytes --charsets--> text --markup--> strict XML --feedparser--> entries --domain.feeds--> items

feedparser alone takes a web page, an empty body and half a document for a good feed, and does not know Thai's
windows-874; it is given nothing but whole documents in UTF-8.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any
from urllib.parse import urlsplit

import httpx
from pydantic import AfterValidator, BaseModel, ConfigDict, SecretStr

from app.clients.download import Downloaded, download
from app.domain import charsets, feeds, links, markup, text
from app.domain.errors import TemporaryFailure
from app.domain.items import Fetched, Unchanged
from app.threads import in_thread

if TYPE_CHECKING:
    from collections.abc import Mapping

    from app.sources import Reading

ACCEPT = (
    "application/rss+xml, application/atom+xml, application/feed+json, application/rdf+xml;q=0.9,"
    " application/xml;q=0.8, text/xml;q=0.8, application/json;q=0.7, */*;q=0.5"
)

MAX_ATTRIBUTES = 200
"""Of one tag: feedparser's time grows with their square (16,000 took 9 s), and a thread cannot be stopped."""

MAX_TAGS = 250_000
"""A malformed document of so many is read in some ten seconds, and a thread cannot be stopped. Real feeds of several
megabytes have a tenth."""

DOWNLOAD_SECONDS = 15
"""Of the 20 that a fetch may take: the rest is for reading what came."""

PAGES = frozenset({"html", "head", "body", "title", "meta", "script", "style", "div", "p", "h1", "center", "link"})
"""Names of outermost elements that only web pages have."""

FIRST_ELEMENT = re.compile(r"<[A-Za-z]")

FEED = re.compile(r"<(?:rss|feed|rdf:RDF)[\s>]")

HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
"""RFC 9110, section 5.6.2."""

HEADER_VALUE = re.compile(r"[\t\x20-\x7e\x80-\xff]*")

MARKED_UP = frozenset({"text/html", "application/xhtml+xml"})


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
    """Everything the feed lists now. Raises TemporaryFailure or PermanentFailure; never returns part of a round."""
    got = await download(ctx.http, options.url, headers=_headers(options, ctx), total_seconds=DOWNLOAD_SECONDS)
    if got is None:
        return Unchanged()
    fetched: Fetched | Unchanged = await in_thread(read, got)
    return fetched


def read(got: Downloaded) -> Fetched:
    """The items of a downloaded document; takes as long as the document is large.

    Raises:
        TemporaryFailure: it is no feed, or not a whole one.
    """
    odd: list[str] = []
    decoded = charsets.decode(got.body, got.content_type)
    document = decoded.text.lstrip("\ufeff \t\r\n\0")
    if not document:
        raise TemporaryFailure(f"{got.host} answered with nothing at all, not with a feed")
    if document[0] in "{[":
        entries = feeds.json_feed(document, host=got.host, base=got.url)
    else:
        entries, odd = _xml_feed(document, got)
    items, told = feeds.items_of(entries)
    warned = [decoded.warning] if decoded.warning else []
    return Fetched(items=items, etag=got.etag, last_modified=got.last_modified, warnings=(*warned, *odd, *told))


def _headers(options: Options, ctx: Reading) -> dict[str, str]:
    """What is sent: the operator's headers win over ours, except over the validators."""
    sent = {"user-agent": ctx.user_agent, "accept": ACCEPT}
    sent |= {name.lower(): value.get_secret_value() for name, value in options.headers.items()}
    if ctx.etag:
        sent["if-none-match"] = ctx.etag
    if ctx.last_modified:
        sent["if-modified-since"] = ctx.last_modified
    return sent


def _xml_feed(document: str, got: Downloaded) -> tuple[list[feeds.Entry], list[str]]:
    if not FIRST_ELEMENT.search(document):
        raise TemporaryFailure(f"{got.host} answered with plain text, not with a feed")
    repaired = markup.repair(document)
    if repaired.root in {"b", "br"} and (feed := FEED.search(document)):  # a PHP server's warnings stand before it
        repaired = markup.repair(document[feed.start() :])
    if repaired.root in PAGES:
        raise TemporaryFailure(feeds.web_page(document, got.host))
    if not repaired.whole:
        raise TemporaryFailure(f"the feed of {got.host} ends in the middle")
    if repaired.attributes > MAX_ATTRIBUTES:
        raise TemporaryFailure(f"the feed of {got.host} has a tag with more than {MAX_ATTRIBUTES} attributes")
    if repaired.xml.count("<") > MAX_TAGS:
        raise TemporaryFailure(f"the feed of {got.host} has more than {MAX_TAGS:,} tags, the limit for one source")
    parsed = _parsed(repaired.xml, got.host)
    found = parsed.get("entries", [])
    if not found and not parsed.get("version"):
        raise TemporaryFailure(f"{got.host} answered with XML that is no RSS, Atom or RDF feed")
    odd = []
    if parsed.get("bozo") and found:
        odd.append(f"the feed is not well-formed ({type(parsed.get('bozo_exception')).__name__}), but could be read")
    try:
        return [_entry(entry, got.url) for entry in found], odd
    except Exception as error:
        raise _unreadable(got.host, error) from error


def _parsed(xml: str, host: str) -> Any:
    """What feedparser makes of a strict document."""
    import feedparser  # noqa: PLC0415 - 0.1 s of a cold start, which only a due feed pays

    try:
        return feedparser.parse(
            xml.encode(),
            response_headers={"content-type": "application/xml; charset=utf-8"},
            resolve_relative_uris=False,
            sanitize_html=False,
        )
    except Exception as error:
        raise _unreadable(host, error) from error


def _unreadable(host: str, error: Exception) -> TemporaryFailure:
    return TemporaryFailure(f"the answer of {host} could not be read as a feed ({type(error).__name__})")


def _entry(entry: Any, base: str) -> feeds.Entry:
    """An entry of feedparser as ours. Its dictionary answers for missing names with others: `dict.get` does not."""
    permalink = str(dict.get(entry, "link") or "")
    if dict.get(entry, "guidislink") and not permalink.startswith(("http://", "https://", "/")):
        permalink = ""  # a guid that is no address, though it did not say so
    others = [str(link.get("href") or "") for link in dict.get(entry, "links", []) if link.get("rel") != "self"]
    found = (links.absolute(link, base) for link in [permalink, *others])
    tags = dict.get(entry, "tags") or []
    return feeds.Entry(
        id=text.clean(str(dict.get(entry, "id") or "")),
        title=_title(dict.get(entry, "title"), dict.get(entry, "title_detail") or {}),
        link=next((link for link in found if link), None),
        published_at=next((day for name in DATES if (day := _date(dict.get(entry, name)))), None),
        text=_text(entry),
        fields=feeds.named_fields(categories=[tag.get("term") for tag in tags], author=dict.get(entry, "author")),
    )


DATES = ("published_parsed", "updated_parsed", "created_parsed")


def _date(parsed: Any) -> datetime | None:
    """The nine numbers of feedparser in UTC; None where they are no date."""
    try:
        year, month, day, hour, minute, second, *_ = parsed
        return datetime(year, month, day, hour, minute, min(second, 59), tzinfo=UTC)
    except (TypeError, ValueError, OverflowError):
        return None


def _title(value: Any, detail: Mapping[str, Any]) -> str:
    marked_up = detail.get("type") in MARKED_UP
    return text.title_of_html(str(value or "")) if marked_up else text.title(str(value or ""))


def _text(entry: Any) -> str:
    """The longest of the descriptions, which may be a summary and one or more bodies."""
    summary = {"value": dict.get(entry, "summary") or "", **(dict.get(entry, "summary_detail") or {})}
    plain = ""
    for described in [summary, *(dict.get(entry, "content") or [])]:
        kind = str(described.get("type") or "text/html")
        value = str(described.get("value") or "")
        if kind in MARKED_UP:
            plain = max(plain, text.text_of_html(value), key=len)
        elif kind.startswith("text/"):
            plain = max(plain, text.text(value), key=len)
    return plain
