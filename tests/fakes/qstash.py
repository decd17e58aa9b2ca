"""Rings as Upstash QStash signs them, by its own documentation ("Security", "Verify Signatures")."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import time
from typing import Any

CURRENT = "sig_current_7kxXD6UBAk7DqU6hzuHMDdXFX"
NEXT = "sig_next_5wKXQ6mPSerYPu6DRqYpA5dDjVZW"


def claims(url: str, body: bytes = b"", /, *, at: float | None = None, **other: Any) -> dict[str, Any]:
    """What QStash says of a request, valid for five minutes from `at`; `other` are said in place of it."""
    now = int(time.time() if at is None else at)
    said = {
        "iss": "Upstash",
        "sub": url,
        "exp": now + 300,
        "nbf": now,
        "iat": now,
        "jti": "jwt_67kxXD6UBAk7DqU6hzuHMDdXFXfP",
        "body": base64.urlsafe_b64encode(hashlib.sha256(body).digest()).decode(),
    }
    return {**said, **other}


def token(payload: Any, key: str = CURRENT, *, alg: str = "HS256", hashed: str = "sha256") -> str:
    """A token that says so, with a signature of this key."""
    signed = ".".join(encoded(json.dumps(part).encode()) for part in ({"alg": alg, "typ": "JWT"}, payload))
    return f"{signed}.{encoded(hmac.digest(key.encode(), signed.encode(), hashed))}"


def encoded(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()
