"""One call of somebody's address, bounded in where it leads, in time and in what is read of its answer."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import httpx

from app.clients import http as outside
from app.domain import charsets
from app.domain.calls import canonical
from app.domain.errors import PermanentFailure, Unanswered

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from contextlib import AbstractAsyncContextManager

    from app.domain.calls import Calls, Place

    Reaching = Callable[[Place], AbstractAsyncContextManager[httpx.AsyncClient]]
    """A client that may go to such a place, and to no other."""

MOST_REDIRECTS = 5

FOLLOWED = frozenset({307, 308})
"""Redirects that keep method and body."""

TURNED = frozenset({301, 302, 303})
"""Redirects that turn a POST into a GET: a 200 would come back, and nothing be done. Followed from a GET alone."""

READING = frozenset({"GET", "HEAD"})

ANSWER_BYTES = 64 * 1024
"""What is read of an answer."""

ANSWER_SECONDS = 5.0
"""What the body of an answer gets to come: its status has been told by then, and the rest are words for people."""

LOCATION = "wakebell.location"
"""Among an answer's extensions: the header of that name."""

KEPT_ELSEWHERE = frozenset({"content-type", "accept", "user-agent"})
"""Of a job's own headers, what another host is told after a redirect."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """What is to be called."""

    method: str
    url: httpx.URL

    headers: Mapping[str, str]
    """The job's own, by names in lower case."""

    signed: Mapping[str, str]
    """Id, time and signature; every host on the way gets them."""

    body: bytes

    ends_with: Callable[[int], bool]
    """Whether that status is what was hoped for: then it is the answer, wherever it redirects to."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What came back."""

    url: httpx.URL
    """What was asked last."""

    status: int
    headers: httpx.Headers

    location: str
    """Where it says to go on, which `headers` do not hold; empty: nowhere."""

    words: str
    """The beginning of its body, as far as it has come, as text on one line; empty where it is none."""

    @property
    def host(self) -> str:
        """Whose it is."""
        return self.url.host


async def call(call: Call, calls: Calls, reaching: Reaching, *, seconds: float) -> Answer:
    """The answer, whatever its status.

    A redirect is followed to places on the list alone, at most five times, never from a public host to a private one.
    What counts is the status: a body without end is cut, one that trickles is not waited for.

    Raises:
        PermanentFailure: the address, or one that it redirects to, is not to be called.
        TemporaryFailure: nobody was reached, or no answer came within the time.
    """
    ends = asyncio.get_running_loop().time() + seconds
    try:
        return await _follow(call, calls, reaching, ends)
    except TimeoutError:
        raise Unanswered(f"{call.url.host} did not answer within {seconds:.3g} s") from None


def place_of(url: httpx.URL, calls: Calls) -> Place | None:
    """The entry of the list by which an address may be called; None: it may not."""
    if url.scheme not in {"http", "https"}:
        return None
    return calls.place(_host(url), url.port, tls=url.scheme == "https")


def _host(url: httpx.URL) -> str:
    return canonical(url.raw_host.decode("ascii").lower())


async def _follow(call: Call, calls: Calls, reaching: Reaching, ends: float) -> Answer:
    place = place_of(call.url, calls)
    if place is None:
        raise PermanentFailure(f"{_shown(call.url)} is none of the hosts in [call_url] hosts")
    for _ in range(MOST_REDIRECTS + 1):
        async with reaching(place) as http:
            http.event_hooks = {"response": [_set_aside]}
            answer = await _asked(http, call, calls, ends)
        target = _target(call, answer)
        if target is None:
            return answer
        where = place_of(target, calls)
        if where is None or (where.private and not place.private):
            raise PermanentFailure(
                f"{call.url.host} redirects to {_shown(target)}, which is none of the hosts in [call_url] hosts"
            )
        call, place = _sent_on(call, target), where
    raise PermanentFailure(f"{call.url.host}: more than {MOST_REDIRECTS} redirects in a row")


async def _asked(http: httpx.AsyncClient, call: Call, calls: Calls, ends: float) -> Answer:
    """`ends` is when an answer must have begun, by the loop's clock."""
    url = call.url
    besides = calls.headers_of(_host(url), url.port, tls=url.scheme == "https")
    try:
        request = httpx.Request(
            call.method,
            url,
            headers={**_named(http), **call.headers, **besides, **call.signed, "accept-encoding": "identity"},
            content=call.body,
            extensions={"timeout": httpx.Timeout(None, connect=10).as_dict()},  # the whole has one
        )
        async with asyncio.timeout_at(ends):
            response = await http.send(request, stream=True, auth=None, follow_redirects=False)
    except (httpx.InvalidURL, httpx.UnsupportedProtocol, httpx.LocalProtocolError, UnicodeError) as error:
        raise PermanentFailure(f"{url.host}: what is to be sent there is no HTTP") from error
    except httpx.HTTPError as error:
        raise outside.unreachable(str(url), error) from error
    try:
        body = await _beginning(response, ends)
    finally:
        await response.aclose()
    return Answer(
        url=url,
        status=response.status_code,
        headers=response.headers,
        location=response.extensions.get(LOCATION, ""),
        words=_words(response, body),
    )


async def _set_aside(response: httpx.Response) -> None:
    """Hide it from httpx, which reads it even if it is not to go there, and breaks over what it cannot read."""
    response.extensions[LOCATION] = response.headers.pop("location", "").strip()


def _named(http: httpx.AsyncClient) -> dict[str, str]:
    """How the client names itself."""
    return {"user-agent": http.headers["user-agent"]} if "user-agent" in http.headers else {}


async def _beginning(response: httpx.Response, ends: float) -> bytes:
    """What comes soon of the body, unpacked by nobody: what was asked for is not packed."""
    read = bytearray()
    with suppress(TimeoutError, httpx.HTTPError):  # the status has been told
        async with asyncio.timeout_at(min(ends, asyncio.get_running_loop().time() + ANSWER_SECONDS)):
            async for chunk in response.aiter_raw():
                read += chunk
                if len(read) >= ANSWER_BYTES:
                    break
    return bytes(read[:ANSWER_BYTES])


def _words(response: httpx.Response, body: bytes) -> str:
    """Text alone: of a picture, or of what is packed though nobody asked for that, nothing is kept."""
    if b"\x00" in body or response.headers.get("content-encoding", "identity").strip().lower() not in {"", "identity"}:
        return ""
    return outside.printable(charsets.decode(body, response.headers.get("content-type", "")).text)


def _target(call: Call, answer: Answer) -> httpx.URL | None:
    """Where an answer sends the call on to; None: nowhere."""
    followed = answer.status in FOLLOWED or (answer.status in TURNED and call.method in READING)
    if not (followed and answer.location) or call.ends_with(answer.status):
        return None
    try:
        target = call.url.join(answer.location)
        _ = target.host  # a name of another script is read here
    except (httpx.InvalidURL, ValueError):
        raise PermanentFailure(f"{call.url.host} redirects to an address that cannot be read") from None
    return target.copy_with(username=None, password=None, fragment=None)


def _sent_on(call: Call, target: httpx.URL) -> Call:
    """The same to another address; another host is not told of what may be a credential."""
    if (target.scheme, target.host, target.port) == (call.url.scheme, call.url.host, call.url.port):
        return replace(call, url=target)
    kept = {name: value for name, value in call.headers.items() if name in KEPT_ELSEWHERE}
    return replace(call, url=target, headers=kept)


def _shown(url: httpx.URL) -> str:
    """The host, and the port where one is written: never the rest, which may hold a secret."""
    where = url.host if url.port is None else f"{url.host}:{url.port}"
    return f"{where} (without https)" if url.scheme == "http" else where or "an address without a host"
