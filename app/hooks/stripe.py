"""Stripe. Source: docs.stripe.com/webhooks, "Verify webhook signatures manually"."""

from __future__ import annotations

import hmac
import re
from typing import TYPE_CHECKING

from app.domain import signatures
from app.domain.errors import SignatureError
from app.hooks import Malformed, Received, Told, as_it_is, name_of, plain_key, seconds, single, timely, type_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pydantic import JsonValue

SECRET = "the signing secret of the endpoint in the dashboard, whsec_…"  # noqa: S105 - words about one

TIMED = True

SIGNATURE = re.compile(rb"v1=[0-9a-f]{64}")

key = plain_key
document = as_it_is


def signed(headers: Mapping[str, bytes]) -> bool:
    """By a time and one signature at least."""
    parts = [part.strip() for part in headers.get("stripe-signature", b"").split(b",")]
    return any(part.startswith(b"t=") for part in parts) and any(SIGNATURE.fullmatch(part) for part in parts)


def verify(received: Received, keys: Sequence[bytes], *, now: float, tolerance: float) -> None:
    """`t=…,v1=…,v1=…`: several `v1` while a secret is rolled; other schemes are for tests and count for nothing."""
    parts = [part.partition(b"=") for part in received.header("stripe-signature").split(b",")]
    timestamp = seconds(single([value for name, _, value in parts if name.strip() == b"t"], "t in stripe-signature"))
    given = [value.strip() for name, _, value in parts if name.strip() == b"v1"]
    right = [hmac.new(one, timestamp + b"." + received.body, "sha256").hexdigest().encode() for one in keys]
    if not signatures.any_equal(given, right):
        raise SignatureError("none of its signatures is right")
    timely(timestamp, now=now, tolerance=tolerance)


def told(received: Received, parsed: JsonValue) -> Told:  # noqa: ARG001 - as every kind
    """`evt_…` and `invoice.paid`."""
    if not isinstance(parsed, dict):
        raise Malformed("the body must be a JSON object")
    return Told(id=name_of(parsed.get("id"), "id"), type=type_of(parsed.get("type"), "type"))
