"""Requests as providers send them, signed by what their own documentation says."""

from __future__ import annotations

import base64
import hmac
import json
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from standardwebhooks import Webhook

STANDARD = "whsec_" + base64.b64encode(bytes(range(32))).decode()
STRIPE = "whsec_stripes-own-form-of-secret"
GITHUB = "It's a Secret to Everybody"


def encoded(body: Any) -> bytes:
    return body if isinstance(body, bytes) else json.dumps(body).encode()


def standard(
    body: Any, *, name: str = "msg_1", at: float | None = None, secret: str = STANDARD, begins: str = "webhook"
) -> tuple[bytes, dict[str, str]]:
    raw, now = encoded(body), datetime.fromtimestamp(time.time() if at is None else at, UTC)
    headers = {
        f"{begins}-id": name,
        f"{begins}-timestamp": str(int(now.timestamp())),
        f"{begins}-signature": Webhook(secret).sign(name, now, raw.decode("utf-8", "surrogateescape"))
        if _is_text(raw)
        else _v1(secret, name, now, raw),
    }
    return raw, {"Content-Type": "application/json", **headers}


def stripe(body: Any, *, at: float | None = None, secret: str = STRIPE, more: str = "") -> tuple[bytes, dict[str, str]]:
    raw, now = encoded(body), int(time.time() if at is None else at)
    v1 = hmac.new(secret.encode(), f"{now}.".encode() + raw, "sha256").hexdigest()
    return raw, {"Content-Type": "application/json; charset=utf-8", "Stripe-Signature": f"t={now},{more}v1={v1},v0=ab"}


def github(
    body: Any, *, name: str | None = "72d3162e-cc78-11e3-81ab-4c9367dc0958", event: str = "push", secret: str = GITHUB
) -> tuple[bytes, dict[str, str]]:
    raw = encoded(body)
    signature = "sha256=" + hmac.new(secret.encode(), raw, "sha256").hexdigest()
    headers = {"Content-Type": "application/json", "X-Hub-Signature-256": signature, "X-GitHub-Event": event}
    return raw, headers if name is None else {**headers, "X-GitHub-Delivery": name}


def lower(headers: Mapping[str, str]) -> dict[str, bytes]:
    return {name.lower(): value.encode("latin-1") for name, value in headers.items()}


def _is_text(raw: bytes) -> bool:
    try:
        raw.decode()
    except UnicodeDecodeError:
        return False
    return True


def _v1(secret: str, name: str, now: datetime, raw: bytes) -> str:
    key = base64.b64decode(secret.removeprefix("whsec_"))
    signed = f"{name}.{int(now.timestamp())}.".encode() + raw
    return "v1," + base64.b64encode(hmac.digest(key, signed, "sha256")).decode()
