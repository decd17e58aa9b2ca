"""One place where httpx's errors and other people's answers become our failures."""

from __future__ import annotations

import asyncio
import json
import math
from datetime import UTC, datetime, timedelta
from http import HTTPStatus
from typing import Any

import httpx

from app.domain import manners
from app.domain.errors import Failure, PermanentFailure, RateLimited, TemporaryFailure, Unanswered

TIMEOUT = httpx.Timeout(20, connect=10)
"""Seconds. Every send and every fetch is over by then (each also has a limit on its whole)."""

TOTAL_SECONDS = 20
"""A request as a whole, however slowly its answer drips."""

ANSWER_BYTES = 65_536
"""What is read of an answer."""

CODING_HEADERS = frozenset({"content-encoding", "content-length", "transfer-encoding"})
"""They describe the body as it came, not as it was decoded."""

TOLD_LENGTH = 200
"""Characters of a provider's answer that are worth showing."""

RETRY_STATUSES = frozenset({408, 425})


async def post(http: httpx.AsyncClient, url: str, *, content: bytes, headers: dict[str, str]) -> httpx.Response:
    """The answer, whatever its status; redirects are not followed.

    Raises:
        TemporaryFailure: the other side was not reached.
        Unanswered: the request left and no answer came; whether the other side has acted is not known.
        PermanentFailure: the address cannot be used.
    """
    return await _asked(http, "POST", url, content=content, headers=headers)


async def get(http: httpx.AsyncClient, url: str, *, headers: dict[str, str]) -> httpx.Response:
    """The same of a question, which changes nothing: no answer is TemporaryFailure's kin as well."""
    return await _asked(http, "GET", url, content=None, headers=headers)


async def _asked(
    http: httpx.AsyncClient, method: str, url: str, *, content: bytes | None, headers: dict[str, str]
) -> httpx.Response:
    try:
        async with asyncio.timeout(TOTAL_SECONDS):
            request = http.build_request(method, url, content=content, headers=headers, timeout=TIMEOUT)
            return await _answer(http, request)
    except TimeoutError as error:
        raise Unanswered(f"{host_of(url)} did not answer in full within {TOTAL_SECONDS} s") from error
    except (httpx.InvalidURL, httpx.UnsupportedProtocol) as error:
        raise PermanentFailure("the address is not an http or https address") from error
    except httpx.HTTPError as error:
        raise unreachable(url, error) from error


async def _answer(http: httpx.AsyncClient, request: httpx.Request) -> httpx.Response:
    """The answer with at most the beginning of its body: what is read of it are words for people."""
    streamed = await http.send(request, stream=True, follow_redirects=False)
    try:
        body = b""
        async for chunk in streamed.aiter_bytes():
            body += chunk
            if len(body) >= ANSWER_BYTES:
                break
    finally:
        await streamed.aclose()
    headers = [(name, value) for name, value in streamed.headers.multi_items() if name not in CODING_HEADERS]
    return httpx.Response(streamed.status_code, headers=headers, content=body[:ANSWER_BYTES], request=request)


def unreachable(url: str, error: Exception) -> TemporaryFailure:
    """Names the host and never the URL: a URL may hold a secret."""
    if isinstance(error, httpx.ConnectError | httpx.ConnectTimeout | httpx.PoolTimeout):
        return TemporaryFailure(f"{host_of(url)} could not be reached ({type(error).__name__})")
    return Unanswered(f"{host_of(url)} did not answer ({type(error).__name__})")


def failure_of(response: httpx.Response) -> Failure:
    """What an answer that is no success means: 408, 425, 429 (`RateLimited`), 5xx are temporary, the rest permanent."""
    told = f"{response.url.host} answered {response.status_code}"
    words = printable(response.text)[:TOLD_LENGTH]
    if words:
        told = f"{told}: {words}"
    if response.status_code == HTTPStatus.TOO_MANY_REQUESTS:
        return RateLimited(told, retry_after=retry_after(response))
    if response.status_code in RETRY_STATUSES or response.is_server_error:
        return TemporaryFailure(told, retry_after=retry_after(response))
    return PermanentFailure(told)


def retry_after(response: httpx.Response, *, now: datetime | None = None) -> timedelta | None:
    """How long the other side asks to be left alone, by seconds or by date; None when it does not say so readably.

    A date is taken by the other side's own clock where it tells the time: ours may be wrong.
    """
    told = manners.told_at(response.headers, now=now or datetime.now(UTC))
    return manners.retry_after(response.headers.get("Retry-After"), now=told)


def json_of(response: httpx.Response) -> dict[str, Any]:
    """The JSON object that was answered; an empty one where there is none."""
    try:
        told = json.loads(response.content)
    except (ValueError, RecursionError):
        return {}
    return told if isinstance(told, dict) else {}


def wait_of(seconds: object) -> timedelta | None:
    """A wait that an answer's JSON asks for, fractions rounded up, at most a day; None where it is no such number."""
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not 0 < seconds < math.inf:
        return None
    return timedelta(seconds=math.ceil(min(seconds, manners.MOST_WAIT.total_seconds())))


def host_of(url: str) -> str:
    """The host alone; `the address` when there is none to be read."""
    try:
        return httpx.URL(url).host or "the address"
    except httpx.InvalidURL:
        return "the address"


def printable(text: str) -> str:
    """One line without control characters."""
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())
