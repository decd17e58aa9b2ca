"""Asks an address of our own, as somebody from outside would: what answers, how soon, and by which certificate."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

import httpx

from app.clients.http import host_of, json_of, unreachable
from app.clients.reaching import seen
from app.domain.errors import PermanentFailure, TemporaryFailure

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from app.clients.reaching import Secured

SECONDS = 30.0
"""A host that sleeps starts within these, most of the time."""

ANSWER_BYTES = 16 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Met:
    """What answered."""

    status: int
    headers: httpx.Headers

    told: Mapping[str, Any]
    """The JSON object; an empty one where it was none."""

    seconds: float

    tls: Secured | None
    """None: it was asked without TLS."""

    @property
    def redirects(self) -> bool:
        """Whether it sends people elsewhere."""
        return "Location" in self.headers


async def meet(
    http: httpx.AsyncClient, method: str, url: str, *, headers: Mapping[str, str] | None = None, content: bytes = b""
) -> Met:
    """The answer, whatever its status. Redirects are not followed: providers do not follow them either.

    Raises:
        TemporaryFailure: nobody was reached, or no answer came in time; its cause says why.
        PermanentFailure: the address cannot be used.
    """
    begun = time.perf_counter()
    try:
        async with asyncio.timeout(SECONDS):
            request = http.build_request(method, url, headers=dict(headers or {}), content=content, timeout=SECONDS)
            return await _met(http, request, begun)
    except TimeoutError as error:
        raise TemporaryFailure(f"{host_of(url)} did not answer within {SECONDS:g} s") from error
    except (httpx.InvalidURL, httpx.UnsupportedProtocol) as error:
        raise PermanentFailure("the address is not an http or https address") from error
    except httpx.HTTPError as error:
        raise unreachable(url, error) from error


async def _met(http: httpx.AsyncClient, request: httpx.Request, begun: float) -> Met:
    answer = await http.send(request, stream=True, follow_redirects=False)
    try:
        wire = answer.extensions.get("network_stream")
        tls = None if wire is None else wire.get_extra_info("ssl_object")
        took = time.perf_counter() - begun
        body = b""
        async for chunk in answer.aiter_bytes():
            body += chunk
            if len(body) >= ANSWER_BYTES:
                break
    finally:
        await answer.aclose()
    return Met(
        status=answer.status_code,
        headers=answer.headers,
        told=json_of(httpx.Response(answer.status_code, content=body)),
        seconds=took,
        tls=None if tls is None else seen(tls),
    )
