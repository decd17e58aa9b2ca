"""A chat on a host that stops a machine as soon as no request is in flight."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import json
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any

import httpx
import pytest

from tests.fakes.http_server import HttpServer, Request, send
from tests.fakes.line import Line
from tests.flow.service import Service, until
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
reply_budget_seconds = 20

[chats.clinic.model]
url = "{model}"
model = "slow"
"""


class Model(HttpServer):
    """A language model that takes its time."""

    def __init__(self, seconds: float) -> None:
        super().__init__()
        self.seconds = seconds
        self.asked: list[Any] = []

    async def answer(self, request: Request, wire: asyncio.StreamWriter) -> None:
        self.asked.append(json.loads(request.body))
        await asyncio.sleep(self.seconds)
        told = {"choices": [{"message": {"content": "We open at nine."}}], "usage": {"total_tokens": 20}}
        await send(wire, 200, json.dumps(told).encode(), headers={"Content-Type": "application/json"})


class SleepyHost:
    """One address; behind it a machine that is started by a request, and killed when none is in flight any more."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        self._service: Service | None = None
        self._waking = asyncio.Lock()
        self._in_flight = 0
        self._talks: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server | None = None
        self.stops = 0

    @property
    def url(self) -> str:
        assert self._server is not None
        return f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"

    @asynccontextmanager
    async def awake(self) -> AsyncIterator[None]:
        self._server = await asyncio.start_server(self._talk, "127.0.0.1", 0)
        try:
            yield
        finally:
            self._server.close()
            for talk in self._talks:
                talk.cancel()
            await asyncio.gather(*self._talks, return_exceptions=True)

    async def start(self) -> Service:
        async with self._waking:
            if self._service is None:
                self._service = await self._stage.serve(PUBLIC_URL=self.url)
            return self._service

    async def _talk(self, reader: asyncio.StreamReader, wire: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._talks.add(task)
        self._in_flight += 1
        try:
            service = await self.start()
            behind, to = await asyncio.open_connection("127.0.0.1", service.port)
            ways = [asyncio.create_task(_copy(reader, to)), asyncio.create_task(_copy(behind, wire))]
            await asyncio.wait(ways, return_when="FIRST_COMPLETED")
            for way in ways:
                way.cancel()
            await asyncio.gather(*ways, return_exceptions=True)
            to.close()
        finally:
            self._talks.discard(task)
            wire.close()
            self._in_flight -= 1
            if not self._in_flight and self._service is not None:
                self._service.kill()
                self._service = None
                self.stops += 1


async def _copy(reader: asyncio.StreamReader, wire: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while data := await reader.read(65536):
            wire.write(data)
            await wire.drain()


def signed(number: int, text: str) -> dict[str, Any]:
    event = {
        "type": "message",
        "mode": "active",
        "timestamp": round(time.time() * 1000),
        "source": {"type": "user", "userId": NOK},
        "webhookEventId": f"01{number:024d}",
        "deliveryContext": {"isRedelivery": False},
        "replyToken": f"token-{number}",
        "message": {"id": str(number), "type": "text", "text": text},
    }
    content = json.dumps({"destination": "Ubot", "events": [event]}).encode()
    signature = base64.b64encode(hmac.digest(CHANNEL_SECRET.encode(), content, hashlib.sha256)).decode()
    headers = {"x-line-signature": signature, "Content-Type": "application/json", "Connection": "close"}
    return {"content": content, "headers": headers}


async def deliver(host: SleepyHost, number: int, text: str) -> float:
    """Seconds until it was taken."""
    begun = time.monotonic()
    async with httpx.AsyncClient(trust_env=False, timeout=60) as http:
        answer = await http.post(f"{host.url}/api/webhooks/clinic", **signed(number, text))
    assert answer.status_code == 200, answer.text
    return time.monotonic() - begun


@pytest.fixture
async def model() -> AsyncIterator[Model]:
    async with Model(12.0) as model:
        yield model


async def test_a_slow_reply_is_made_without_a_tick_where_only_requests_keep_the_machine(
    stage: Stage, model: Model, capsys: pytest.CaptureFixture[str]
):
    stage.telling = CHAT.replace("{model}", model.url)
    line: Line = stage.line
    host = SleepyHost(stage)
    async with host.awake():
        begun = time.monotonic()
        cold = await deliver(host, 1, "When do you open?")
        assert not line.replies
        await until(lambda: line.replies, told="the reply has reached the person")
        whole = time.monotonic() - begun
        await until(lambda: host.stops == 1, told="the machine is stopped, since nothing is in flight")

        model.seconds = 0.0
        await host.start()
        warm = await deliver(host, 2, "Thank you")
        await until(lambda: len(line.replies) == 2, told="the second reply has reached the person")
        await until(lambda: host.stops == 2, told="the machine is stopped again")

    assert [reply.texts for reply in line.replies.values()] == [("We open at nine.",)] * 2
    assert [message["content"] for message in model.asked[1]["messages"]] == [
        "When do you open?",
        "We open at nine.",
        "Thank you",
    ]
    assert await stage.sql.fetchval("SELECT count(*) FROM wakebell.ticks") == 0
    with capsys.disabled():
        print(f"\nwebhook taken in {cold:.2f} s cold, {warm:.2f} s warm; slow reply after {whole:.1f} s")  # noqa: T201
