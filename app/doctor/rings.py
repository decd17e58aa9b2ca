"""Who notices when nobody rings: the dead-man's switch. It is found and not told anything, since that would count."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from app.clients import reaching
from app.clients.reasons import why
from app.doctor.looks import Look
from app.domain.findings import Finding, fail, ok, warn

if TYPE_CHECKING:
    from app.settings import Settings

NAME = "heartbeat"
NOBODY = "nobody notices when the rings stop"
ADVICE = "set HEARTBEAT_URL to a dead-man's switch (docs/guides/monitoring.md)"


def looks(settings: Settings) -> list[Look]:
    """At the switch, or at its absence."""
    return [Look(name=NAME, work=partial(_switch, settings.environment.heartbeat_url))]


async def _switch(url: str | None) -> list[Finding]:
    if url is None:
        return [warn(NOBODY, ADVICE)]
    parts = urlsplit(url)
    host = parts.hostname or ""
    try:
        if parts.scheme == "https":
            met = await reaching.secured(url)
            return [ok(f"{host} is reached by {met.version}; only a tick tells it anything")]
        await reaching.listens(host, parts.port or reaching.PORT_BY_SCHEME[parts.scheme])
    except (OSError, EOFError, ValueError) as error:
        reason, change = why(error)
        return [fail(f"{host}: {reason}, so that {NOBODY}", f"{change}, and HEARTBEAT_URL")]
    return [ok(f"{host} is reached, without TLS; only a tick tells it anything")]
