"""One new item on its way to each kind of channel that speaks HTTP, through a stub of its provider."""

from __future__ import annotations

import asyncio
import json

import pytest

from tests.fakes.http_server import HttpServer, Request, send
from tests.flow.stage import Stage

TOKEN = "a-token-of-the-tests-0123"

SUBSCRIBED = """
[recipients.me]
channel = "other"
{to}

[subscriptions.all]
to = ["me"]
"""

CHANNELS: dict[str, tuple[str, str, dict[str, object], str | None]] = {
    "telegram": (
        'kind = "telegram"\ntoken = "123456789:{token}-and-some-more"\nbase_url = "{url}"',
        'to = "42"',
        {"ok": True, "result": {"message_id": 7}},
        "7",
    ),
    "discord": (
        'kind = "discord"\nwebhook_url = "https://discord.com/api/webhooks/1234567890/{token}"\nbase_url = "{url}"',
        "",
        {"id": "11"},
        "11",
    ),
    "slack": (
        'kind = "slack"\nwebhook_url = "https://hooks.slack.com/services/T1/B1/atokenofslack"\nbase_url = "{url}"',
        "",
        {},
        None,
    ),
    "ntfy": ('kind = "ntfy"\nbase_url = "{url}"', 'to = "jobs"', {"id": "xE7"}, "xE7"),
    "apprise": ('kind = "apprise"\nurl = "json://{host}/in"', "", {}, None),
}


class Provider(HttpServer):
    """Takes everything, after it has failed as often as it is told to."""

    def __init__(self, answer: dict[str, object], *, failures: int) -> None:
        super().__init__()
        self.told = json.dumps(answer).encode()
        self.failures = failures
        self.requests: list[Request] = []

    async def answer(self, request: Request, wire: asyncio.StreamWriter) -> None:
        self.requests.append(request)
        if len(self.requests) <= self.failures:
            await send(wire, 500, b"oops")
        else:
            await send(wire, 200, self.told, headers={"Content-Type": "application/json"})


@pytest.mark.parametrize("kind", CHANNELS)
async def test_a_new_item_arrives_with_the_same_bytes_at_every_try(stage: Stage, kind: str):
    options, to, answer, provider_id = CHANNELS[kind]
    async with Provider(answer, failures=1) as provider:
        channel = options.format(url=provider.url, token=TOKEN, host=provider.url.removeprefix("http://"))
        stage.telling = f"[channels.other]\n{channel}\n" + SUBSCRIBED.format(to=to)
        stage.feeds.add("jobs", "Cook")
        service = await stage.serve()
        await service.tick()
        assert provider.requests == []
        stage.feeds.feeds["jobs"].add("Driver")
        await stage.make_due()

        first = await service.tick()
        await stage.make_due()
        second = await service.tick()

        assert (first["messages"]["retrying"], second["messages"]["sent"]) == (1, 1)
        refused, taken = provider.requests
        assert b"Driver" in taken.body
        assert b"Cook" not in taken.body
        if kind != "apprise":  # which writes what it likes around a text
            assert refused.body == taken.body
        told = await stage.sql.fetchrow("SELECT status, provider_id FROM wakebell.messages WHERE kind = 'items'")
        assert (told["status"], told["provider_id"]) == ("sent", provider_id)
        assert TOKEN not in service.process.log
