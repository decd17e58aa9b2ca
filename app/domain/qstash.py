"""Who rings through Upstash QStash: a JWT in the header `Upstash-Signature`, signed with one of two keys.

Source: upstash.com/docs/qstash, "Security" and "Verify Signatures"; the form of the token is RFC 7515's.

The algorithm is ours to say and not the token's: HMAC-SHA256 alone is ever computed, and nothing of a token is read
before one of the keys turns out to have signed it.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
from typing import TYPE_CHECKING, Any

from app.domain import signatures
from app.domain.errors import SignatureError

if TYPE_CHECKING:
    from collections.abc import Sequence

HEADER = "upstash-signature"

ALGORITHM = "HS256"
ISSUER = "Upstash"

LONGEST = 4096
"""Bytes of a token: QStash's have some 400, and the address that is in them."""

LEEWAY_SECONDS = 60
"""Between QStash's clock and ours, which is behind for a while after a machine was suspended."""

FARTHEST = 10.0**12
"""Seconds since 1970 that can be meant; also what keeps NaN and infinity out."""


class Refused(SignatureError):
    """One of the keys has signed it, and it is not for this request: what it says is QStash's own, and may be told."""


def signed_claims(token: bytes, keys: Sequence[bytes]) -> dict[str, Any]:
    """What one of the keys has signed, whatever it says. How long a refusal takes tells nothing of the keys.

    Raises:
        SignatureError: none of them has.
        Refused: one of them has, and it is no token of QStash's form.
    """
    signed, dot, given = token.rpartition(b".")
    if len(token) > LONGEST or not dot:
        raise SignatureError(f"the header {HEADER} must be a token of at most {LONGEST} bytes")
    right = [_encoded(hmac.digest(key, signed, "sha256")) for key in keys if key]
    if not signatures.any_equal([given], right):
        raise SignatureError(f"none of the keys has signed the token in {HEADER}")
    header, _, payload = signed.partition(b".")
    if _object(header).get("alg") != ALGORITHM:
        raise Refused(f"its algorithm must be {ALGORITHM}")
    return _object(payload)


def refuse_others(claims: dict[str, Any], *, url: str, now: float) -> None:
    """Nothing, where they are for a request to exactly this address, at about this time; the body is yet to be seen.

    Raises:
        Refused: which claim says otherwise.
    """
    if claims.get("iss") != ISSUER:
        raise Refused(f"its issuer must be {ISSUER}")
    if claims.get("sub") != url:
        raise Refused(f"it is signed for another address than {url}, which is PUBLIC_URL and the path: make them one")
    if now - LEEWAY_SECONDS >= _instant(claims, "exp"):
        raise Refused("it has expired")
    if now + LEEWAY_SECONDS < _instant(claims, "nbf"):
        raise Refused("it is not valid yet: the clocks differ")


def refuse_other_body(claims: dict[str, Any], body: bytes) -> None:
    """Nothing, where exactly these bytes are what was signed; with padding behind its digest or without.

    Raises:
        Refused: they are not.
    """
    said = claims.get("body")
    right = _encoded(hashlib.sha256(body).digest()).decode()
    if not isinstance(said, str) or said.rstrip("=") != right:
        raise Refused("it is signed for another body")


def _instant(claims: dict[str, Any], name: str) -> float:
    value = claims.get(name)
    if isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < FARTHEST:
        return float(value)
    raise Refused(f"its {name} must be a time")


def _object(part: bytes) -> dict[str, Any]:
    """A part of a token that one of the keys has signed."""
    try:
        read = json.loads(base64.b64decode(part + b"=" * (-len(part) % 4), altchars=b"-_", validate=True))
    except (ValueError, RecursionError):  # no base64, no UTF-8, no JSON, or too deep
        read = None
    if not isinstance(read, dict):
        raise Refused("it is no JSON Web Token")
    return read


def _encoded(digest: bytes) -> bytes:
    """base64url without padding, as a token has it."""
    return base64.urlsafe_b64encode(digest).rstrip(b"=")
