"""Providers of chats, as they deliver what people say and take what is answered."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx
import respx

from app.context import Service

SECRET = "the-channel-secret"
NURSE = "U000000000000000000000000000000a1"
NOK = "U000000000000000000000000000000b2"


REPLY = "https://api.line.me/v2/bot/message/reply"
PUSH = "https://api.line.me/v2/bot/message/push"
LOADING = "https://api.line.me/v2/bot/chat/loading/start"
TELEGRAM = re.compile(r"https://api\.telegram\.org/.*")


@contextmanager
def providers() -> Iterator[respx.MockRouter]:
    """Every provider, taking all."""
    with respx.mock(assert_all_called=False) as router:
        router.post(LOADING, name="loading").respond(202, json={})
        router.post(REPLY, name="reply").respond(200, json={})
        router.post(PUSH, name="push").respond(200, json={})
        router.post(TELEGRAM, name="telegram").respond(200, json={"ok": True, "result": {"message_id": 1}})
        yield router


def event(
    number: int, text: str | None = "hello", *, person: str = NOK, kind: str = "message", at: int = 0
) -> dict[str, Any]:
    told: dict[str, Any] = {
        "type": kind,
        "mode": "active",
        "timestamp": 1_796_000_000_000 + number * 1000 + at,
        "source": {"type": "user", "userId": person},
        "webhookEventId": f"01{number:024d}",
        "deliveryContext": {"isRedelivery": False},
    }
    if kind == "message":
        told |= {"replyToken": f"token-{number}", "message": {"id": str(number), "type": "text", "text": text}}
    return told


def signed(*events: dict[str, Any]) -> dict[str, Any]:
    content = json.dumps({"destination": "Ubot", "events": list(events)}, ensure_ascii=False).encode()
    signature = base64.b64encode(hmac.digest(SECRET.encode(), content, hashlib.sha256)).decode()
    return {"content": content, "headers": {"x-line-signature": signature, "Content-Type": "application/json"}}


async def line(client: httpx.AsyncClient, service: Service, *events: dict[str, Any]) -> None:
    """Delivered, answered with 200, and done with what comes after."""
    answer = await client.post("/api/webhooks/clinic", **signed(*events))
    assert answer.status_code == 200, answer.text
    await service.settle()


async def telegram(client: httpx.AsyncClient, number: int, text: str, *, chat: str = "desk", person: int = 7) -> None:
    update = {
        "update_id": number,
        "message": {
            "message_id": number,
            "date": 1_796_000_000 + number,
            "chat": {"id": person, "type": "private"},
            "from": {"id": person, "is_bot": False, "first_name": "Nok"},
            "text": text,
        },
    }
    headers = {"X-Telegram-Bot-Api-Secret-Token": "secret-of-the-webhook"}
    answer = await client.post(f"/api/webhooks/{chat}", json=update, headers=headers)
    assert answer.status_code == 200, answer.text


def said(route: respx.Route) -> list[list[str]]:
    """The texts of each call."""
    told = []
    for call in route.calls:
        body = json.loads(call.request.content)
        told.append([one["text"] for one in body["messages"]] if "messages" in body else [body["text"]])
    return told
