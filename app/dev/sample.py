"""A small feed of invented gigs on this machine, so that there is something to watch before anyone has an account."""

from __future__ import annotations

import asyncio
import hashlib
import logging
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import format_datetime
from html import escape
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType
    from typing import Self

log = logging.getLogger(__name__)

PORT = 8099
"""The same at each run: a source whose address changes counts as a new one, and its first round is silent."""

SHOWN = 20
"""Gigs in the feed, the newest first."""

READ_SECONDS = 5

# The lengths have no common factor, so that a combination comes back after hours only.
WHAT = (
    "Telegram bot",
    "LINE bot for bookings",
    "Landing page",
    "เขียนบอท LINE รับออเดอร์",
    "FastAPI backend",
    "Shopify theme fixes",
    "Python scraper",
    "แปลเว็บไซต์ไทยเป็นอังกฤษ",
    "Senior WordPress developer",
    "Inventory spreadsheet",
    "Chatbot in Thai and English",
)
WHO = (
    "a bakery in Chiang Mai",
    "a dive school on Koh Tao",
    "a clinic in Yangon",
    "ร้านกาแฟในเชียงใหม่",
    "a hostel in Hanoi",
    "a coffee roaster in Da Lat",
    "a tour guide in Luang Prabang",
)
PRICES = (300, 120, 850, 60, 1500, 400, 240, 2000, 95, 640, 180, 1100, 75)


@dataclass(frozen=True, slots=True, kw_only=True)
class Gig:
    """One entry of the feed."""

    id: str
    number: int
    published: datetime

    @property
    def title(self) -> str:
        """What it is, for whom, for how much; the same number gives the same title."""
        what, who = WHAT[self.number % len(WHAT)], WHO[self.number % len(WHO)]
        return f"{what} for {who}, ${PRICES[self.number % len(PRICES)]}"


class SampleSource:
    """Serves `/gigs.xml` on 127.0.0.1 for as long as the `async with` lasts.

    The gigs of the clock (one in each `every_seconds`) are worked out from the time alone, so no id ever comes
    twice, and a restart finds those of the meantime. `every_seconds=None` leaves only what `publish` adds.
    """

    def __init__(
        self, *, port: int = PORT, every_seconds: float | None = 20, clock: Callable[[], float] = time.time
    ) -> None:
        self.port = port
        """Once running: the one that is served, which is another when the wanted one is taken."""
        self._every = every_seconds
        self._clock = clock
        self._published: list[Gig] = []
        self._server: asyncio.Server | None = None
        self._answers: set[asyncio.Task[None]] = set()

    @property
    def url(self) -> str:
        """The address of the feed."""
        return f"http://127.0.0.1:{self.port}/gigs.xml"

    async def __aenter__(self) -> Self:
        try:
            self._server = await asyncio.start_server(self._accept, "127.0.0.1", self.port)
        except OSError:
            wanted = self.port
            self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
            self.port = self._server.sockets[0].getsockname()[1]
            log.warning("port %d is taken: the sample source is at %s", wanted, self.url)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._server is not None:
            self._server.close()
            for answer in self._answers:
                answer.cancel()
            await asyncio.gather(*self._answers, return_exceptions=True)
            await self._server.wait_closed()

    def publish(self) -> Gig:
        """Add one gig now."""
        last = self._published[-1].number if self._published else 0
        number = max(last + 1, int(self._clock() * 1_000_000))
        self._published.append(Gig(id=f"gig-now-{number}", number=number, published=self._now()))
        return self._published[-1]

    def gigs(self) -> list[Gig]:
        """What the feed shows now, the newest first."""
        gigs = self._published[-SHOWN:]
        if self._every is not None:
            newest = int(self._clock() // self._every)
            # The length of the step is part of the id: with another one the same number is another instant.
            gigs += [
                Gig(
                    id=f"gig-{self._every:g}-{number}",
                    number=number,
                    published=datetime.fromtimestamp(int(number * self._every), UTC),
                )
                for number in range(newest, newest - SHOWN, -1)
            ]
        return sorted(gigs, key=lambda gig: (gig.published, gig.number), reverse=True)[:SHOWN]

    def feed(self) -> bytes:
        """The feed as RSS 2.0."""
        items = "".join(
            f'<item><guid isPermaLink="false">{gig.id}</guid><title>{escape(gig.title)}</title>'
            f"<link>http://127.0.0.1:{self.port}/gigs/{gig.id}</link>"
            f"<pubDate>{format_datetime(gig.published, usegmt=True)}</pubDate>"
            f"<description>{escape(gig.title)}. Invented by the sample source.</description></item>\n"
            for gig in self.gigs()
        )
        return (
            '<?xml version="1.0" encoding="UTF-8"?>\n<rss version="2.0"><channel>'
            f"<title>Sample gigs</title><link>{self.url}</link><description>Invented gigs to try Wakebell with."
            f"</description>\n{items}</channel></rss>\n"
        ).encode()

    def _now(self) -> datetime:
        return datetime.fromtimestamp(int(self._clock()), UTC)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        if task is not None:
            self._answers.add(task)
            task.add_done_callback(self._answers.discard)
        try:
            async with asyncio.timeout(READ_SECONDS):
                head = await reader.readuntil(b"\r\n\r\n")
                writer.write(self._answer(head.decode("latin-1")))
                await writer.drain()
        except (TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, ConnectionError):
            log.debug("the sample source was asked for nothing that it could read")
        finally:
            writer.close()

    def _answer(self, head: str) -> bytes:
        request, *lines = head.split("\r\n")
        method, _, rest = request.partition(" ")
        headers = {name.strip().lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
        if method not in {"GET", "HEAD"}:
            return _response("405 Method Not Allowed", {"Allow": "GET, HEAD"})
        path = rest.split(" ")[0].partition("?")[0]
        if path.startswith("/gigs/"):  # where the links of the feed lead
            told = {"Content-Type": "text/plain; charset=utf-8"}
            return _response(
                "200 OK", told, b"This gig was invented by the sample source.\n", send_body=method == "GET"
            )
        if path != "/gigs.xml":
            return _response("404 Not Found", {})
        body = self.feed()
        etag = f'"{hashlib.sha256(body).hexdigest()[:32]}"'
        if etag in headers.get("if-none-match", ""):
            return _response("304 Not Modified", {"ETag": etag})
        told = {"Content-Type": "application/rss+xml; charset=utf-8", "ETag": etag}
        return _response("200 OK", told, body, send_body=method == "GET")


def _response(status: str, headers: dict[str, str], body: bytes = b"", *, send_body: bool = True) -> bytes:
    told = {**headers, "Content-Length": str(len(body)), "Connection": "close"}
    head = "".join(f"{name}: {value}\r\n" for name, value in told.items())
    return f"HTTP/1.1 {status}\r\n{head}\r\n".encode("latin-1") + (body if send_body else b"")
