"""One GET or POST of something a source publishes, bounded in size, in time and in redirects."""

from __future__ import annotations

import asyncio
import base64
import zlib
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from typing import TYPE_CHECKING
from urllib.parse import unquote

import httpx

from app.clients import http as outside
from app.domain.errors import Failure, PermanentFailure, TemporaryFailure

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping

MAX_BYTES = 5 * 1024 * 1024
"""Decoded. The largest of the ordinary feeds looked at has under 1 MB; the smallest hosts have 256 MB of memory, and
a parsed feed takes some ten times its bytes."""

TOTAL_SECONDS = 20
"""From the first connection to the last byte, redirects included; a fetch may take no longer."""

MAX_REDIRECTS = 5

REDIRECTS = frozenset({301, 302, 303, 307, 308})

NOT_SECRET = frozenset({"accept", "accept-language", "user-agent", "if-none-match", "if-modified-since"})
"""What another host may be told. All else a source is configured with may be a credential."""

CLOCK_SKEW = timedelta(days=1)

GZIP = 16 + zlib.MAX_WBITS


@dataclass(frozen=True, slots=True, kw_only=True)
class Downloaded:
    """A whole answer."""

    body: bytes
    """Decompressed."""

    content_type: str
    """As sent; empty when it was not."""

    url: str
    """Where it came from in the end, without user name and password: the base of relative links."""

    etag: str | None = None
    """Latin-1, so that it goes back byte for byte."""

    last_modified: str | None = None
    """None, too, when it lies in the future: a server that echoes it would say "unchanged" for ever."""

    @property
    def host(self) -> str:
        """The host that answered, for people."""
        return outside.host_of(self.url)


@dataclass(slots=True)
class _Hop:
    """Where the next request goes, and with what."""

    url: httpx.URL
    headers: dict[str, str]
    body: bytes | None
    """None: a GET."""

    seen: set[str] = field(default_factory=set)


async def download(
    http: httpx.AsyncClient,
    url: str,
    *,
    headers: Mapping[str, str],
    body: bytes | None = None,
    max_bytes: int = MAX_BYTES,
    total_seconds: float = TOTAL_SECONDS,
) -> Downloaded | None:
    """The answer, whole; None when the server says 304 to a validator in `headers`. With a `body`, to a POST of it.

    Redirects are followed, and another host is not told of the body or of any header that may be a credential. The
    client's own cookies and headers are not used.

    Raises:
        TemporaryFailure: no whole answer came, or the server asks to come again later.
        PermanentFailure: the address, the answer's size or its status make another try useless.
    """
    try:
        async with asyncio.timeout(total_seconds):
            return await _follow(http, _first(url, headers, body), max_bytes)
    except TimeoutError as error:
        told = f"{outside.host_of(url)} did not finish its answer within {total_seconds:g} seconds"
        raise TemporaryFailure(told) from error


async def _follow(http: httpx.AsyncClient, hop: _Hop, max_bytes: int) -> Downloaded | None:
    for _ in range(MAX_REDIRECTS + 1):
        hop.seen.add(str(hop.url))
        response = await _open(http, hop)
        try:
            if response.status_code not in REDIRECTS:
                return await _receive(response, hop, max_bytes)
            _redirect(hop, response)
        finally:
            await response.aclose()
    raise PermanentFailure(f"{hop.url.host}: more than {MAX_REDIRECTS} redirects in a row")


def _first(url: str, headers: Mapping[str, str], body: bytes | None) -> _Hop:
    """The first hop; a user name and password in the address become a header, which no other host gets."""
    try:
        target = httpx.URL(url)
    except httpx.InvalidURL as error:
        raise PermanentFailure("the address is not an http or https address") from error
    _check(target, "the address")
    sent = {name.lower(): value for name, value in headers.items()}
    sent["accept-encoding"] = "gzip"  # which _Unpacker can bound while it unpacks
    if target.userinfo:
        login = unquote(target.userinfo.decode("ascii", "replace"))
        sent.setdefault("authorization", "Basic " + base64.b64encode(login.encode()).decode("ascii"))
    return _Hop(target.copy_with(username=None, password=None, fragment=None), sent, body)


def _check(url: httpx.URL, what: str) -> None:
    if url.scheme not in {"http", "https"} or not url.host:
        raise PermanentFailure(f"{what} is not an http or https address")


async def _open(http: httpx.AsyncClient, hop: _Hop) -> httpx.Response:
    # Not http.build_request: it would add cookies that other sources have been given.
    timeouts = {"timeout": outside.TIMEOUT.as_dict()}
    try:
        headers = [(name.encode("ascii"), value.encode("latin-1")) for name, value in hop.headers.items()]
        method = "GET" if hop.body is None else "POST"
        request = httpx.Request(method, hop.url, headers=headers, content=hop.body, extensions=timeouts)
        return await http.send(request, stream=True, auth=None, follow_redirects=False)
    except UnicodeEncodeError as error:
        raise PermanentFailure("a configured header holds characters that HTTP cannot carry") from error
    except httpx.LocalProtocolError as error:
        raise PermanentFailure("a configured header holds characters that HTTP does not allow") from error
    except httpx.HTTPError as error:
        if isinstance(error, httpx.RemoteProtocolError) and "location header" in str(error):  # httpx reads it, too
            raise PermanentFailure(f"{hop.url.host} redirects to an address that cannot be read") from error
        raise outside.unreachable(str(hop.url), error) from error


def _redirect(hop: _Hop, response: httpx.Response) -> None:
    """Point the hop to where the answer sends it."""
    host = hop.url.host
    location = response.headers.get("location", "").strip()
    if not location:
        raise PermanentFailure(f"{host} answered {response.status_code} without saying where to go")
    try:
        target = hop.url.join(location)
    except (httpx.InvalidURL, ValueError) as error:
        raise PermanentFailure(f"{host} redirects to an address that cannot be read") from error
    _check(target, f"{host} redirects to what")
    target = target.copy_with(username=None, password=None, fragment=None)
    if response.status_code == HTTPStatus.SEE_OTHER:
        hop.body = None
    if not same_owner(hop.url, target):
        if hop.body is not None:
            raise PermanentFailure(f"{host} redirects to another host, which is not told of the body")
        hop.headers = {name: hop.headers[name] for name in hop.headers if name in NOT_SECRET | {"accept-encoding"}}
    if str(target) in hop.seen:
        raise TemporaryFailure(f"{host} redirects in a circle")
    hop.url = target


def same_owner(old: httpx.URL, new: httpx.URL) -> bool:
    """Whether the new address may be told what the old one was: the same origin, or its move to https."""
    if (old.scheme, old.host, _port(old)) == (new.scheme, new.host, _port(new)):
        return True
    return old.host == new.host and (old.scheme, _port(old), new.scheme, _port(new)) == ("http", 80, "https", 443)


def _port(url: httpx.URL) -> int:
    return url.port or (443 if url.scheme == "https" else 80)


async def _receive(response: httpx.Response, hop: _Hop, max_bytes: int) -> Downloaded | None:
    if response.status_code == HTTPStatus.NOT_MODIFIED:
        if {"if-none-match", "if-modified-since"} & hop.headers.keys():
            return None
        raise TemporaryFailure(f"{hop.url.host} answered 304 (unchanged), though nothing was asked about a change")
    if not response.is_success:
        raise _refused(response)
    if response.status_code == HTTPStatus.PARTIAL_CONTENT:
        raise TemporaryFailure(f"{hop.url.host} answered 206: a part only, though the whole was asked for")
    return Downloaded(
        body=await _body(response, hop.url.host, max_bytes),
        content_type=response.headers.get("content-type", ""),
        url=str(hop.url),
        etag=_raw(response, b"etag"),
        last_modified=_not_in_the_future(_raw(response, b"last-modified"), _raw(response, b"date")),
    )


def _refused(response: httpx.Response) -> Failure:
    """The status in words. Not the body: error pages like to repeat the address, which may hold a secret."""
    try:
        words = HTTPStatus(response.status_code).phrase
    except ValueError:
        words = ""
    if response.headers.get("cf-mitigated") == "challenge":  # developers.cloudflare.com, "Detect a Challenge Page"
        words = "blocked by a challenge page"
    shown = httpx.Response(response.status_code, headers=response.headers, request=response.request)
    shown.headers.pop("content-encoding", None)
    shown._content = words.encode()  # noqa: SLF001 - failure_of tells the body
    return outside.failure_of(shown)


async def _body(response: httpx.Response, host: str, max_bytes: int) -> bytes:
    """The decompressed body; never more than `max_bytes` and one chunk of the network are held."""
    encoding = response.headers.get("content-encoding", "").strip().lower()
    if encoding not in {"", "identity", "gzip", "x-gzip"}:
        raise TemporaryFailure(f"{host} compressed its answer in a way that was not asked for ({encoding[:20]!r})")
    expected = response.headers.get("content-length", "")
    length = int(expected) if expected.isascii() and expected.isdigit() and len(expected) < 16 else None  # noqa: PLR2004
    packed = "gzip" in encoding
    if not packed and length is not None and length > max_bytes:
        raise _too_large(host, max_bytes)
    unpacker = _Unpacker(host, max_bytes) if packed else _Plain(host, max_bytes)
    received = 0
    try:
        async for chunk in _chunks(response):
            received += len(chunk)
            unpacker.take(chunk)
    except httpx.TimeoutException as error:
        raise outside.unreachable(str(response.request.url), error) from error
    except httpx.HTTPError as error:
        raise TemporaryFailure(f"{host} broke off in the middle of its answer") from error
    if length is not None and received < length:
        raise TemporaryFailure(f"{host} broke off in the middle of its answer ({received} of {length} bytes)")
    return unpacker.done()


class _Plain:
    """Keeps what comes, up to a limit."""

    def __init__(self, host: str, limit: int) -> None:
        self._host = host
        self._limit = limit
        self._body = bytearray()

    def take(self, chunk: bytes) -> None:
        """Raises PermanentFailure when it is too much."""
        self._body += chunk
        if len(self._body) > self._limit:
            raise _too_large(self._host, self._limit)

    def done(self) -> bytes:
        """All of it."""
        return bytes(self._body)


class _Unpacker(_Plain):
    """Unpacks gzip as it comes. A small chunk that unpacks to a huge one is never unpacked beyond the limit."""

    def __init__(self, host: str, limit: int) -> None:
        super().__init__(host, limit)
        self._stream = zlib.decompressobj(GZIP)
        self._begun = False

    def take(self, chunk: bytes) -> None:
        """Raises PermanentFailure when it is too much, TemporaryFailure when it is not gzip."""
        while chunk:
            if self._stream.eof:
                if not chunk.startswith(b"\x1f\x8b"):
                    return  # padding after the end, which gzip allows
                self._stream = zlib.decompressobj(GZIP)
            self._begun = True
            try:
                unpacked = self._stream.decompress(chunk, self._limit - len(self._body) + 1)
            except zlib.error as error:
                raise TemporaryFailure(f"{self._host} sent a damaged gzip body") from error
            super().take(unpacked)
            chunk = self._stream.unused_data or self._stream.unconsumed_tail

    def done(self) -> bytes:
        """All of it; raises TemporaryFailure when the end is missing."""
        if self._begun and not self._stream.eof:
            raise TemporaryFailure(f"{self._host} broke off in the middle of its answer")
        return super().done()


async def _chunks(response: httpx.Response) -> AsyncIterator[bytes]:
    """The bytes of the network. Not `aiter_bytes`: httpx unpacks a whole chunk at once, however much comes out."""
    stream = response.stream
    if not isinstance(stream, httpx.AsyncByteStream):
        raise TypeError("an asynchronous client gave a synchronous answer")
    async for chunk in stream:
        yield chunk


def _too_large(host: str, limit: int) -> PermanentFailure:
    return PermanentFailure(f"{host} answered with more than {limit / 1048576:g} MiB, the limit for one source")


def _raw(response: httpx.Response, name: bytes) -> str | None:
    return next((value.decode("latin-1") for found, value in response.headers.raw if found.lower() == name), None)


def _not_in_the_future(last_modified: str | None, date: str | None) -> str | None:
    """The validator, unless the server's own clock (ours, where it does not tell) has not reached it."""
    changed = _moment(last_modified)
    if changed is None:
        return last_modified
    now = _moment(date) or datetime.now(UTC)
    return None if changed > now + CLOCK_SKEW else last_modified


def _moment(value: str | None) -> datetime | None:
    try:
        moment = parsedate_to_datetime(value or "")
    except (ValueError, OverflowError):
        return None
    return moment.replace(tzinfo=moment.tzinfo or UTC)
