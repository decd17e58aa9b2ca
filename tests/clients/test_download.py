from __future__ import annotations

import asyncio
import gzip
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import timedelta

import httpx
import pytest

from app.clients.download import MAX_REDIRECTS, Downloaded, download
from app.domain.errors import Failure, PermanentFailure, RateLimited, TemporaryFailure

URL = "https://e.test/feed.xml?token=hush"
SENT = {"User-Agent": "Wakebell", "Authorization": "Bearer hush", "X-Key": "hush", "If-None-Match": '"v1"'}

Answer = Callable[[httpx.Request], httpx.Response]


async def get(answer: Answer, url: str = URL, **more: object) -> Downloaded | None:
    async with httpx.AsyncClient(transport=httpx.MockTransport(answer)) as http:
        return await download(http, url, **({"headers": SENT} | more))  # type: ignore[arg-type]


async def failure(answer: Answer, url: str = URL, **more: object) -> Failure:
    with pytest.raises(Failure) as caught:
        await get(answer, url, **more)
    assert "hush" not in str(caught.value)
    return caught.value


def moved(to: str, status: int = 302) -> httpx.Response:
    return httpx.Response(status, headers={"Location": to})


async def test_the_whole_answer_is_returned_with_its_validators():
    headers = {
        "Content-Type": "application/xml",
        "ETag": 'W/"caf\xe9"',
        "Last-Modified": "Mon, 02 Nov 2026 10:00:00 GMT",
    }
    raw = [(name.encode(), value.encode("latin-1")) for name, value in headers.items()]

    got = await get(lambda _: httpx.Response(200, headers=raw, content=b"<rss/>"))

    assert got == Downloaded(
        body=b"<rss/>",
        content_type="application/xml",
        url=URL,
        etag='W/"caf\xe9"',
        last_modified="Mon, 02 Nov 2026 10:00:00 GMT",
    )


async def test_validators_go_out_byte_for_byte():
    seen: list[httpx.Request] = []

    def answer(request: httpx.Request) -> httpx.Response:
        seen.append(request)
        return httpx.Response(304)

    assert await get(answer, headers={"If-None-Match": 'W/"caf\xe9"'}) is None
    assert (b"if-none-match", b'W/"caf\xe9"') in [(name.lower(), value) for name, value in seen[0].headers.raw]
    assert seen[0].headers["accept-encoding"] == "gzip"


async def test_304_to_no_question_is_a_failure():
    told = await failure(lambda _: httpx.Response(304), headers={"User-Agent": "x"})

    assert isinstance(told, TemporaryFailure)
    assert str(told) == "e.test answered 304 (unchanged), though nothing was asked about a change"


@pytest.mark.parametrize(
    ("date", "kept"),
    [
        ("Mon, 02 Nov 2026 10:00:00 GMT", False),
        ("Fri, 16 Nov 2041 10:00:00 GMT", True),
    ],
)
async def test_a_validator_from_the_future_is_not_kept(date: str, kept: bool):  # noqa: FBT001
    changed = "Sat, 16 Nov 2041 10:00:00 GMT"

    got = await get(lambda _: httpx.Response(200, headers={"Last-Modified": changed, "Date": date}, content=b"x"))

    assert got is not None
    assert got.last_modified == (changed if kept else None)


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_a_redirect_to_another_host_takes_no_secrets_along(status: int):
    seen: list[httpx.Request] = []

    def answer(request: httpx.Request) -> httpx.Response:
        seen.append(request)
        return moved("https://other.test/new", status) if request.url.host == "e.test" else httpx.Response(200)

    got = await get(answer, "https://user:hush@e.test/feed.xml")

    assert got is not None
    assert got.url == "https://other.test/new"
    assert seen[0].headers["authorization"] == "Bearer hush"
    assert {"authorization", "x-key", "cookie"}.isdisjoint(seen[1].headers)
    assert seen[1].headers["if-none-match"] == '"v1"'


async def test_a_redirect_on_the_same_host_keeps_the_headers():
    seen: list[httpx.Request] = []

    def answer(request: httpx.Request) -> httpx.Response:
        seen.append(request)
        return moved("new.xml#x") if request.url.path == "/a/feed.xml" else httpx.Response(200)

    got = await get(answer, "https://user:p%40ss@e.test/a/feed.xml", headers={})

    assert got is not None
    assert got.url == "https://e.test/a/new.xml"
    assert [request.headers["authorization"] for request in seen] == ["Basic dXNlcjpwQHNz"] * 2


async def test_cookies_of_one_answer_are_not_sent_with_the_next():
    seen: list[httpx.Request] = []

    def answer(request: httpx.Request) -> httpx.Response:
        seen.append(request)
        return httpx.Response(200, headers={"Set-Cookie": "session=1"}, content=b"x")

    async with httpx.AsyncClient(transport=httpx.MockTransport(answer)) as http:
        await download(http, URL, headers={})
        await download(http, URL, headers={})

    assert "cookie" not in seen[1].headers


@pytest.mark.parametrize(
    ("location", "told"),
    [
        (None, "e.test answered 302 without saying where to go"),
        ("ftp://e.test/x", "e.test redirects to what is not an http or https address"),
        ("file:///etc/passwd", "e.test redirects to what is not an http or https address"),
        ("http://[::1", "e.test redirects to an address that cannot be read"),
        (URL, "e.test redirects in a circle"),
    ],
)
async def test_a_redirect_that_leads_nowhere_is_told(location: str | None, told: str):
    headers = {"Location": location} if location else {}

    assert str(await failure(lambda _: httpx.Response(302, headers=headers))) == told


async def test_redirects_end_somewhere():
    told = await failure(lambda request: moved(f"/x{request.url.path}"))

    assert str(told) == f"e.test: more than {MAX_REDIRECTS} redirects in a row"


@pytest.mark.parametrize(
    ("status", "kind", "told"),
    [
        (404, PermanentFailure, "e.test answered 404: Not Found"),
        (403, PermanentFailure, "e.test answered 403: Forbidden"),
        (429, RateLimited, "e.test answered 429: Too Many Requests"),
        (503, TemporaryFailure, "e.test answered 503: Service Unavailable"),
        (520, TemporaryFailure, "e.test answered 520"),
        (300, PermanentFailure, "e.test answered 300: Multiple Choices"),
        (206, TemporaryFailure, "e.test answered 206: a part only, though the whole was asked for"),
    ],
)
async def test_a_status_is_told_in_words_without_the_page(status: int, kind: type[Failure], told: str):
    caught = await failure(lambda _: httpx.Response(status, html="<p>Cannot GET /feed.xml?token=hush"))

    assert (type(caught), str(caught)) == (kind, told)


async def test_a_rate_limit_says_how_long():
    caught = await failure(lambda _: httpx.Response(429, headers={"Retry-After": "120"}))

    assert isinstance(caught, TemporaryFailure)
    assert caught.retry_after == timedelta(seconds=120)


async def test_a_challenge_is_told_by_its_header():
    caught = await failure(lambda _: httpx.Response(403, headers={"cf-mitigated": "challenge"}))

    assert str(caught) == "e.test answered 403: blocked by a challenge page"


@pytest.mark.parametrize(
    ("url", "headers", "told"),
    [
        ("ftp://e.test/", {}, "the address is not an http or https address"),
        ("nonsense", {}, "the address is not an http or https address"),
        ("http://[::1", {}, "the address is not an http or https address"),
        (URL, {"X-Key": "hush ไทย"}, "a configured header holds characters that HTTP cannot carry"),
    ],
)
async def test_what_cannot_be_asked_is_told(url: str, headers: dict[str, str], told: str):
    assert str(await failure(lambda _: httpx.Response(200), url, headers=headers)) == told


async def test_no_answer_names_the_host_alone():
    def answer(request: httpx.Request) -> httpx.Response:
        raise httpx.ConnectError(f"no route to {request.url}")

    assert str(await failure(answer)) == "e.test could not be reached (ConnectError)"


@pytest.mark.parametrize(
    "packed",
    [gzip.compress(b"<rss/>", mtime=0), gzip.compress(b"<rs", mtime=0) + gzip.compress(b"s/>", mtime=0) + b"\0\0"],
)
async def test_gzip_is_unpacked(packed: bytes):
    got = await get(lambda _: httpx.Response(200, headers={"Content-Encoding": "gzip"}, content=packed))

    assert got is not None
    assert got.body == b"<rss/>"


@pytest.mark.parametrize(
    ("encoding", "body", "told"),
    [
        ("br", b"x", "e.test compressed its answer in a way that was not asked for ('br')"),
        ("gzip", b"<rss/>", "e.test sent a damaged gzip body"),
        ("gzip", gzip.compress(b"<rss/>" * 99, mtime=0)[:-9], "e.test broke off in the middle of its answer"),
    ],
)
async def test_a_body_that_cannot_be_unpacked_is_told(encoding: str, body: bytes, told: str):
    caught = await failure(lambda _: httpx.Response(200, headers={"Content-Encoding": encoding}, stream=Chunks(body)))

    assert str(caught) == told


class Chunks(httpx.AsyncByteStream):
    """A body that comes in pieces and counts those that were taken."""

    def __init__(self, *chunks: bytes, times: int = 1) -> None:
        self.chunks = chunks * times
        self.taken = 0

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for chunk in self.chunks:
            self.taken += 1
            yield chunk


@pytest.mark.parametrize("headers", [{}, {"Content-Encoding": "gzip"}])
async def test_a_body_beyond_the_limit_is_left_early(headers: dict[str, str]):
    bomb = gzip.compress(b"\0" * 50_000_000, mtime=0)
    stream = Chunks(bomb, times=100) if headers else Chunks(b"x" * 65_536, times=1000)

    told = await failure(lambda _: httpx.Response(200, headers=headers, stream=stream), max_bytes=1_048_576)

    assert isinstance(told, PermanentFailure)
    assert str(told) == "e.test answered with more than 1 MiB, the limit for one source"
    assert stream.taken <= 17


async def test_an_announced_body_beyond_the_limit_is_not_begun():
    stream = Chunks(b"x")

    await failure(lambda _: httpx.Response(200, headers={"Content-Length": "6000000"}, stream=stream))

    assert stream.taken == 0


async def test_a_body_shorter_than_announced_is_a_failure():
    told = await failure(lambda _: httpx.Response(200, headers={"Content-Length": "10"}, stream=Chunks(b"<rss>")))

    assert str(told) == "e.test broke off in the middle of its answer (5 of 10 bytes)"


Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@asynccontextmanager
async def serving(serve: Serve) -> AsyncIterator[str]:
    """The address of a real server."""

    async def one(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        try:
            await serve(reader, writer)
        except ConnectionError:
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(one, "127.0.0.1", 0)
    async with server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/feed.xml"


async def test_a_server_that_sends_without_end_is_left():
    async def serve(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
        while not writer.is_closing():
            writer.write(b"x" * 65_536)
            await writer.drain()

    async with serving(serve) as url, httpx.AsyncClient() as http:
        with pytest.raises(PermanentFailure, match="more than 5 MiB"):
            await download(http, url, headers={})


async def test_a_server_that_trickles_is_left():
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nx")
        await writer.drain()
        await reader.read()  # until the other side hangs up

    async with serving(serve) as url, httpx.AsyncClient() as http:
        with pytest.raises(TemporaryFailure, match=r"127\.0\.0\.1 did not finish its answer within 0\.2 seconds"):
            await download(http, url, headers={}, total_seconds=0.2)


@pytest.mark.parametrize("head", [b"Content-Length: 9\r\n\r\nx", b"Transfer-Encoding: chunked\r\n\r\n5\r\nab"])
async def test_a_connection_that_breaks_is_told(head: bytes):
    async def serve(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\n" + head)
        await writer.drain()

    async with serving(serve) as url, httpx.AsyncClient() as http:
        with pytest.raises(TemporaryFailure, match=r"127\.0\.0\.1 broke off in the middle of its answer"):
            await download(http, url, headers={})
