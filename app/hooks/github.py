"""GitHub. Source: docs.github.com, "Validating webhook deliveries".

GitHub signs the body alone: neither the time, nor the id, nor the name of the event. So nothing is too old here, and a
repeat is known by `X-GitHub-Delivery`, which stays the same when a delivery is sent again.
"""

from __future__ import annotations

import hmac
import re
from typing import TYPE_CHECKING
from urllib.parse import parse_qs

from app.domain import signatures
from app.domain.errors import SignatureError
from app.hooks import Malformed, Received, Told, name_of, plain_key, type_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pydantic import JsonValue

SECRET = "what you have written into the field Secret of the webhook"  # noqa: S105 - words about one

TIMED = False

FORM = b"application/x-www-form-urlencoded"

SIGNATURE = re.compile(rb"sha256=[0-9a-f]{64}")

key = plain_key


def signed(headers: Mapping[str, bytes]) -> bool:
    """By its one signature."""
    return SIGNATURE.fullmatch(headers.get("x-hub-signature-256", b"")) is not None


def verify(received: Received, keys: Sequence[bytes], *, now: float, tolerance: float) -> None:  # noqa: ARG001
    """Over the body as it came, a form's too. The older `X-Hub-Signature`, of SHA-1, counts for nothing."""
    right = [b"sha256=" + hmac.new(one, received.body, "sha256").hexdigest().encode() for one in keys]
    if not signatures.any_equal([received.header("x-hub-signature-256")], right):
        raise SignatureError("its signature is not right")


def document(received: Received) -> bytes:
    """The body, or the field `payload` of a form: what GitHub sends where nobody has chosen `application/json`."""
    if received.headers.get("content-type", b"").partition(b";")[0].strip().lower() != FORM:
        return received.body
    try:
        fields = parse_qs(received.body.decode("ascii"), strict_parsing=True, errors="strict", max_num_fields=2)
    except ValueError:
        fields = {}
    if len(fields.get("payload", [])) != 1:
        raise Malformed("a form must have one field `payload`; choose the content type application/json at GitHub")
    return fields["payload"][0].encode()


def told(received: Received, parsed: JsonValue) -> Told:  # noqa: ARG001 - as every kind
    """Out of the headers."""
    delivery = received.headers.get("x-github-delivery")
    return Told(
        id=name_of(delivery, "the header X-GitHub-Delivery"),
        type=type_of(received.headers.get("x-github-event"), "the header X-GitHub-Event"),
    )
