"""A server of feeds: lists that a test adds to, with validators, and every way to be broken."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from tests.fakes.http_server import HttpServer, Request, for_ever, head, send

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Mapping
    from datetime import datetime

Format = Literal["rss", "atom", "json"]
Broken = Literal["hang", "html", "empty", "huge", "cut", "error"]

HUGE = 50 * 1024 * 1024


@dataclass(slots=True, kw_only=True)
class Feed:
    """One list. Titles are what items are told apart by, and their ids."""

    url: str
    format: Format = "rss"

    validators: bool = True
    """Sends an ETag, and answers 304 to it."""

    titles: list[str] = field(default_factory=list)

    published: dict[str, datetime] = field(default_factory=dict)
    """By title; told by the format "json"."""

    broken: Broken | None = None

    fetches: int = 0
    unchanged: int = 0
    """How many of the fetches were answered 304."""

    def add(self, *titles: str) -> None:
        """New items, at the top."""
        self.titles[:0] = titles

    @property
    def document(self) -> bytes:
        if self.format == "json":
            return _json(self.titles, self.published).encode()
        return {"rss": _rss, "atom": _atom}[self.format](self.titles).encode()

    @property
    def etag(self) -> str:
        return f'"{hashlib.sha256(self.document).hexdigest()[:16]}"'


class Feeds(HttpServer):
    """Every feed is at a path of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.feeds: dict[str, Feed] = {}
        """By name, which becomes the source's."""

    def add(
        self,
        name: str,
        *titles: str,
        format: Format = "rss",  # noqa: A002 - what it is called
        validators: bool = True,
        broken: Broken | None = None,
    ) -> Feed:
        feed = Feed(url=f"{self.url}/{name}", format=format, validators=validators, titles=list(titles), broken=broken)
        self.feeds[name] = feed
        return feed

    async def answer(self, request: Request, wire: asyncio.StreamWriter) -> None:
        feed = self.feeds.get(request.path.removeprefix("/"))
        if feed is None:
            await send(wire, 404)
            return
        feed.fetches += 1
        if feed.broken is not None:
            await _answer_badly(feed, wire)
        elif feed.validators and request.headers.get("if-none-match") == feed.etag:
            feed.unchanged += 1
            await send(wire, 304, headers={"ETag": feed.etag})
        else:
            kind = "application/feed+json" if feed.format == "json" else "application/xml"
            validators = {"ETag": feed.etag} if feed.validators else {}
            await send(wire, 200, feed.document, headers={"Content-Type": kind, **validators})


async def _answer_badly(feed: Feed, wire: asyncio.StreamWriter) -> None:
    validators = {"ETag": '"of-a-broken-answer"'} if feed.validators else {}
    match feed.broken:
        case "hang":
            await for_ever()
        case "html":
            page = b"<!DOCTYPE html><html><head><title>Maintenance</title></head><body><p>Back soon</p></body></html>"
            await send(wire, 200, page, headers={"Content-Type": "text/html", **validators})
        case "empty":
            await send(wire, 200, headers={"Content-Type": "application/xml", **validators})
        case "error":
            await send(wire, 500, b"out of order", headers=validators)
        case "cut":
            whole = feed.document
            wire.write(head(200, {"Content-Length": str(len(whole)), "Connection": "close", **validators}))
            wire.write(whole[: len(whole) // 2])
            await wire.drain()
        case "huge":
            wire.write(head(200, {"Transfer-Encoding": "chunked", "Connection": "close", **validators}))
            chunk = b"<!-- " + b"x" * 65526 + b"-->\n"
            for _ in range(HUGE // len(chunk)):
                wire.write(b"%x\r\n%b\r\n" % (len(chunk), chunk))
                await wire.drain()
            wire.write(b"0\r\n\r\n")
            await wire.drain()


def _rss(titles: list[str]) -> str:
    items = "".join(
        f'<item><guid isPermaLink="false">{title}</guid><title>{title}</title><link>{_link(title)}</link></item>'
        for title in titles
    )
    return f'<?xml version="1.0"?><rss version="2.0"><channel><title>Jobs</title>{items}</channel></rss>'


def _atom(titles: list[str]) -> str:
    entries = "".join(
        f'<entry><id>urn:{title.replace(" ", "-")}</id><title>{title}</title><link href="{_link(title)}"/></entry>'
        for title in titles
    )
    return (
        '<?xml version="1.0"?><feed xmlns="http://www.w3.org/2005/Atom"><title>Jobs</title><id>urn:jobs</id>'
        f"{entries}</feed>"
    )


def _json(titles: list[str], published: Mapping[str, datetime]) -> str:
    items = [{"id": title, "title": title, "url": _link(title)} for title in titles]
    for item in items:
        if item["title"] in published:
            item["date_published"] = published[item["title"]].isoformat()
    return json.dumps({"version": "https://jsonfeed.org/version/1.1", "title": "Jobs", "items": items})


def _link(title: str) -> str:
    return f"https://jobs.example/{title.replace(' ', '-')}"
