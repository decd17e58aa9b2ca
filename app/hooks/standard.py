"""Whoever speaks Standard Webhooks: Svix and what is built on it, OpenAI, Supabase, Clerk, Resend, this service itself.

Source: github.com/standard-webhooks/standard-webhooks, spec/standard-webhooks.md. Svix names the same headers `svix-…`.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from app.domain import signatures
from app.domain.errors import SignatureError
from app.hooks import Received, Told, as_it_is, name_of, seconds, timely, type_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pydantic import JsonValue

SECRET = "the signing secret of the endpoint, whsec_ and base64"  # noqa: S105 - words about one

TIMED = True

ID = "webhook-id"
NAMES = ("webhook", "svix")

SIGNATURE = re.compile(rb"v1,[A-Za-z0-9+/]{43}=")

key = signatures.key_of
document = as_it_is


def signed(headers: Mapping[str, bytes]) -> bool:
    """By an id, a time and one signature at least."""
    begins = next((name for name in NAMES if f"{name}-id" in headers), NAMES[0])
    given = headers.get(f"{begins}-signature", b"").split()
    rest = headers.get(f"{begins}-id") and headers.get(f"{begins}-timestamp", b"").isdigit()
    return bool(rest) and any(SIGNATURE.fullmatch(one) for one in given)


def verify(received: Received, keys: Sequence[bytes], *, now: float, tolerance: float) -> None:
    """Over id, time and body. Several signatures stand in the header, by spaces, while a secret is changed."""
    begins = _begins(received)
    message_id, timestamp = received.header(f"{begins}-id"), seconds(received.header(f"{begins}-timestamp"))
    right = [signatures.signature(one, message_id=message_id, timestamp=timestamp, body=received.body) for one in keys]
    if not signatures.any_equal(received.header(f"{begins}-signature").split(), right):
        raise SignatureError("none of its signatures is right")
    timely(timestamp, now=now, tolerance=tolerance)


def told(received: Received, parsed: JsonValue) -> Told:
    """The id is signed with the rest; a `type` is the standard's advice."""
    kind = parsed.get("type") if isinstance(parsed, dict) else None
    return Told(id=name_of(received.headers[f"{_begins(received)}-id"], ID), type=type_of(kind, "type"))


def _begins(received: Received) -> str:
    return next((name for name in NAMES if f"{name}-id" in received.headers), NAMES[0])
