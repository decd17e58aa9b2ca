"""Signatures of Standard Webhooks, as they are made and as they are looked at.

Source: github.com/standard-webhooks/standard-webhooks, spec/standard-webhooks.md.
"""

from __future__ import annotations

import base64
import binascii
import hmac

PREFIX = "whsec_"
"""What every secret of the standard begins with."""

KEY_BYTES = range(24, 65)

MOST_SIGNATURES = 20
"""Of one request that are looked at: more than two are never meant."""


def key_of(secret: str) -> bytes:
    """The key that a secret stands for.

    Raises:
        ValueError: it is none, and what to change; never with the secret in it.
    """
    if not secret.startswith(PREFIX):
        raise ValueError(f"must be {PREFIX} followed by base64")
    try:
        key = base64.b64decode(secret.removeprefix(PREFIX), validate=True)
    except binascii.Error:
        raise ValueError(f"must have base64 with its padding after {PREFIX}") from None
    if len(key) not in KEY_BYTES:
        raise ValueError(f"holds {len(key)} bytes and must hold 24 to 64; make one of `openssl rand -base64 32`")
    return key


def signature(key: bytes, *, message_id: bytes, timestamp: bytes, body: bytes) -> bytes:
    """What such a message has in its header: `v1,` and base64."""
    signed = b".".join((message_id, timestamp, body))
    return b"v1," + base64.b64encode(hmac.digest(key, signed, "sha256"))


def any_equal(given: list[bytes], right: list[bytes]) -> bool:
    """Whether one of these is one of those. How long it takes tells nothing of the right ones."""
    matches = [hmac.compare_digest(one, other) for one in given[:MOST_SIGNATURES] for other in right]
    return any(matches)
