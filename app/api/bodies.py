"""Bodies of requests: JSON objects, read no further than they may be long."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any, NoReturn

from starlette.requests import ClientDisconnect

from app.api.errors import Problem
from app.asked import Refused, storable
from app.stores.text import clean

if TYPE_CHECKING:
    from fastapi import Request

__all__ = ["json_object", "raw_body", "refused", "storable"]

MOST_BYTES = 512 * 1024
"""Of a whole body, unless its door says otherwise."""

BODY_SECONDS = 20.0
"""What a body gets to come: who sends a byte a second holds a connection, and nothing else for longer."""

MAYBE_JSON = frozenset(
    {"", "text/json", "text/plain", "application/octet-stream", "application/x-www-form-urlencoded"},
)
"""What programs send with JSON when nobody told them to name it; the last is what curl names."""


class Room:
    """What all bodies on their way in may have together."""

    def __init__(self, most_bytes: int) -> None:
        self._left = most_bytes

    def take(self, count: int) -> None:
        """For what has come of one.

        Raises:
            Problem: 503, there is none left now.
        """
        if count > self._left:
            detail = "too many bodies are on their way in; nothing of this one is kept, send it again"
            raise Problem(503, "Service Unavailable", detail, headers={"Retry-After": "5", "Connection": "close"})
        self._left -= count

    def give(self, count: int) -> None:
        """Back."""
        self._left += count


STRANGERS = Room(16 * 1024 * 1024)
"""For those whom only their body's signature tells from strangers: anybody may send one, and as many as they like."""


async def json_object(request: Request, *, most_bytes: int = MOST_BYTES) -> dict[str, Any]:
    """The body as a dictionary. A body that is too long is refused before the rest of it has come.

    Raises:
        Problem: 413 too long, 408 too slow, 415 clearly not JSON, 400 not JSON after all, 422 JSON but no object.
    """
    _refuse_other_kinds(request)
    raw = await raw_body(request, most_bytes=most_bytes)
    try:
        parsed = json.loads(raw, parse_constant=_no_constant)
    except RecursionError:
        raise Problem(422, "Unprocessable Content", "the body is nested too deeply") from None
    except ValueError as error:  # no JSON, no UTF-8, or a number of thousands of digits
        raise Problem(400, "Bad Request", f"the body is not JSON{_place(error)}") from None
    if not isinstance(parsed, dict):
        raise Problem(422, "Unprocessable Content", "the body must be a JSON object: {…}")
    return parsed


def refused(refusal: Refused) -> Problem:
    """422 with what is wrong with the body; 413 for what is too long in it."""
    if refusal.too_long:
        return Problem(413, "Content Too Large", str(refusal))
    return Problem(422, "Unprocessable Content", str(refusal))


def _refuse_other_kinds(request: Request) -> None:
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind not in MAYBE_JSON and kind != "application/json" and not kind.endswith("+json"):
        detail = f"the body is said to be {clean(kind, limit=100)}; send JSON with `Content-Type: application/json`"
        raise Problem(415, "Unsupported Media Type", detail)


async def raw_body(request: Request, *, most_bytes: int, room: Room | None = None) -> bytes:
    """The body as it came. One that is too long is refused before the rest of it has come.

    Raises:
        Problem: 413 too long, 408 too slow, 415 compressed, 400 broken off, 503 no `room` for it.
    """
    if request.headers.get("content-encoding", "identity").strip().lower() not in {"", "identity"}:
        raise Problem(415, "Unsupported Media Type", "send the body as it is, without Content-Encoding")
    said = request.headers.get("content-length", "")
    if said.isascii() and said.isdigit() and int(said[:20]) > most_bytes:
        raise _too_long(most_bytes)
    read = bytearray()
    try:
        async with asyncio.timeout(BODY_SECONDS):
            async for chunk in request.stream():
                if room is not None:
                    room.take(len(chunk))
                read += chunk
                if len(read) > most_bytes:
                    raise _too_long(most_bytes)
    except TimeoutError:
        detail = f"the body must come within {BODY_SECONDS:g} seconds"
        raise Problem(408, "Request Timeout", detail, headers={"Connection": "close"}) from None
    except ClientDisconnect:
        raise Problem(400, "Bad Request", "the body ended before it was complete") from None
    finally:
        if room is not None:
            room.give(len(read))
    return bytes(read)


def _too_long(most_bytes: int) -> Problem:
    return Problem(413, "Content Too Large", f"the body must be at most {most_bytes // 1024} KiB")


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def _place(error: ValueError) -> str:
    if isinstance(error, json.JSONDecodeError):
        return f": {error.msg} at line {error.lineno}, column {error.colno}"
    return ""
