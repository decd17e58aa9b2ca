"""The ping to a dead-man's switch: the only thing that notices that nobody rings."""

from __future__ import annotations

import asyncio
import logging

import httpx

from app.clients.http import host_of
from app.domain.heartbeats import address
from app.domain.limits import PINGING

log = logging.getLogger(__name__)


async def ping(http: httpx.AsyncClient, url: str, *, failed: bool) -> None:
    """Say that a tick went well, or failed. Takes two seconds at most, and never raises: a ping is not the work."""
    reason = "it did not answer in time"
    try:
        async with asyncio.timeout(PINGING.total_seconds()):
            async with http.stream("GET", address(url, failed=failed), follow_redirects=False) as response:
                if response.is_success:
                    return
                reason = f"it answered {response.status_code}"
    except TimeoutError:
        pass
    except (httpx.HTTPError, httpx.InvalidURL, OSError, ValueError) as error:  # the last: a name no resolver takes
        reason = type(error).__name__
    log.warning("heartbeat not taken", extra={"host": host_of(url), "reason": reason})
