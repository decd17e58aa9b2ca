"""Commands in a chat, and processes that die over them."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import signal
import time
from contextlib import suppress

import httpx
import pytest

from tests.flow.killable import OF_COMMANDS
from tests.flow.service import Service
from tests.flow.stage import Stage

CHANNEL_SECRET = "the-channel-secret"
NOK = "U000000000000000000000000000000b2"

CHAT = """
[channels.line]
kind = "line"
token = "env:LINE_TOKEN"
base_url = "{line}"

[chats.clinic]
kind = "line"
secret = "the-channel-secret"
channel = "line"
invitation = "open-sesame"
"""


async def said(service: Service, number: int, text: str) -> None:
    told = {
        "type": "message",
        "mode": "active",
        "timestamp": round(time.time() * 1000),
        "source": {"type": "user", "userId": NOK},
        "webhookEventId": f"01{number:024d}",
        "deliveryContext": {"isRedelivery": False},
        "replyToken": f"token-{number}",
        "message": {"id": str(number), "type": "text", "text": text},
    }
    content = json.dumps({"destination": "Ubot", "events": [told]}).encode()
    signature = base64.b64encode(hmac.digest(CHANNEL_SECRET.encode(), content, hashlib.sha256)).decode()
    headers = {"x-line-signature": signature, "Content-Type": "application/json"}
    answer = await service.ask("POST", "/api/webhooks/clinic", content=content, headers=headers)
    assert answer.status_code == 200, answer.text


@pytest.mark.parametrize("point", OF_COMMANDS)
async def test_a_process_that_dies_over_a_command_leaves_it_done_once_and_the_invitation_nowhere(
    stage: Stage, point: str
):
    stage.telling = CHAT
    for number, text in enumerate(["open-sesame", "watch python"]):
        mortal = await stage.serve(die_at=point)
        with suppress(httpx.TransportError):  # it may have answered before
            await said(mortal, number, text)
        assert await mortal.ended() == -signal.SIGKILL
        await stage.end_leases()
        survivor = await stage.serve()
        await survivor.tick()
        survivor.kill()

    assert await stage.sql.fetch("SELECT outcome FROM wakebell.said ORDER BY id") == [("replied",)] * 2
    assert await stage.sql.fetchval("SELECT array_agg(text ORDER BY id) FROM wakebell.said") == ["", ""]
    assert await stage.sql.fetchval("SELECT array_agg(phrases) FROM wakebell.watches") == [["python"]]
    assert await stage.sql.fetchval("SELECT count(*) FROM wakebell.turns") == 0
