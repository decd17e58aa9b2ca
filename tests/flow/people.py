"""People who write to the service's chat on LINE, delivered as LINE does it."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import time
from typing import Any

CHANNEL_SECRET = "the-channel-secret-of-the-tests"

CHAT = """
[channels.line]
kind = "line"
token = "env:LINE_TOKEN"
base_url = "{line}"

[recipients.me]
channel = "line"
to = "env:LINE_USER"

[subscriptions.all]
to = ["me"]

[chats.clinic]
kind = "line"
secret = "the-channel-secret-of-the-tests"
channel = "line"
job = "echo"
"""
"""For a stage's `telling`; `ECHO` is its handler."""

ECHO = """
    from pydantic import BaseModel
    from app.domain.jobs import Done

    class Payload(BaseModel):
        text: str

    async def handle(payload, ctx):
        return Done("You said " + payload.text)
"""


def delivery(number: int, text: str, *, person: int = 1, again: bool = False) -> dict[str, Any]:
    """A request: one message, the first time or `again`."""
    event = {
        "type": "message",
        "mode": "active",
        "timestamp": round(time.time() * 1000),
        "source": {"type": "user", "userId": f"U{person:032x}"},
        "webhookEventId": f"01PLATFORM{number:016d}",
        "deliveryContext": {"isRedelivery": again},
        "replyToken": f"token-{number}",
        "message": {"id": str(number), "type": "text", "text": text},
    }
    content = json.dumps({"destination": "Ubot", "events": [event]}).encode()
    signature = base64.b64encode(hmac.digest(CHANNEL_SECRET.encode(), content, hashlib.sha256)).decode()
    return {"content": content, "headers": {"x-line-signature": signature, "Content-Type": "application/json"}}
