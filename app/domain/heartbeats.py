"""How a dead-man's switch is told that a tick went well, or did not: one address, and its dialect by its shape.

Sources: healthchecks.io/docs/http_api, Uptime Kuma's push monitor, docs.sentry.io/product/crons (HTTP),
betterstack.com/docs/uptime/cron-and-heartbeat-monitor.
"""

from __future__ import annotations

import re
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

SENTRY = re.compile(r"/api/\d+/cron/")
"""Where Sentry's paths begin: the project's number tells them from an ordinary path with these words."""


def address(url: str, *, failed: bool) -> str:
    """Where to send the request for a tick that went well or failed.

    Uptime Kuma and Sentry take it as a parameter; Healthchecks, Better Stack and most others as `/fail` at the end.
    """
    parts = urlsplit(url)
    if "/api/push/" in parts.path:
        return _with(url, {"status": "down" if failed else "up", "msg": "tick failed" if failed else "OK"})
    if SENTRY.match(parts.path):
        return _with(url, {"status": "error" if failed else "ok"})
    if not failed:
        return url
    return urlunsplit(parts._replace(path=f"{parts.path.rstrip('/')}/fail"))


def _with(url: str, told: dict[str, str]) -> str:
    """The address with these parameters in place of its own of the same names."""
    parts = urlsplit(url)
    kept = [(name, value) for name, value in parse_qsl(parts.query, keep_blank_values=True) if name not in told]
    return urlunsplit(parts._replace(query=urlencode([*kept, *told.items()])))
