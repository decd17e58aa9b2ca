"""The one answer to `/healthz`, as bare ASGI: it is given before anything else of the service is imported."""

from __future__ import annotations

from typing import Any

PATH = "/healthz"

METHODS = ("GET", "HEAD")
"""Many monitors send HEAD."""

BODY = b'{"status":"ok"}'


def asked(scope: Any) -> bool:
    """Whether it is asked for."""
    return scope["type"] == "http" and scope["path"] == PATH and scope["method"] in METHODS


async def answer(_: Any, __: Any, send: Any) -> None:
    """The process lives. Touches no database: a probe must not keep one awake."""
    headers = [(b"content-length", b"%d" % len(BODY)), (b"content-type", b"application/json")]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": BODY})
