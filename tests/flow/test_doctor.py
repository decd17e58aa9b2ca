"""`wakebell doctor` beside a service that runs, with a provider that really tries the service's door."""

from __future__ import annotations

import asyncio
import base64
import hmac
import json
from typing import Any

import httpx

from tests.fakes.http_server import HttpServer, Request, send
from tests.fakes.switch import Switch
from tests.flow.service import Service, free_port
from tests.flow.stage import Stage

CHANNEL_SECRET = "channel-secret-of-the-tests"
LINE_TOKEN = "token-of-the-provider-in-the-tests"
API_TOKEN = "api-token-of-the-tests-0123"

FILE = """
[channels.provider]
kind = "line"
token = "env:PROVIDER_TOKEN"
base_url = "{url}"

[chats.people]
kind = "line"
secret = "env:PROVIDER_SECRET"
channel = "provider"

[chats.people.model]
url = "{url}/v1"
model = "small"
"""

TABLES = "SELECT relname FROM pg_class WHERE relnamespace = CAST('wakebell' AS regnamespace) AND relkind = 'r'"


class Provider(HttpServer):
    """LINE, as far as it is asked about a channel and its webhook; and a model's list beside it."""

    def __init__(self, secret: str = CHANNEL_SECRET) -> None:
        super().__init__()
        self.door = ""
        self.secret = secret
        self.asked: list[str] = []

    async def answer(self, request: Request, wire: asyncio.StreamWriter) -> None:
        self.asked.append(f"{request.method} {request.path}")
        status, told = await self._told(request)
        await send(wire, status, json.dumps(told).encode(), headers={"Content-Type": "application/json"})

    async def _told(self, request: Request) -> tuple[int, dict[str, Any]]:
        if request.path == "/v1/models":
            return 200, {"data": [{"id": "small"}]}
        if request.headers.get("authorization") != f"Bearer {LINE_TOKEN}":
            return 401, {"message": "Authentication failed"}
        if request.path == "/v2/bot/channel/webhook/test":
            return 200, await self._tried()
        told: dict[str, dict[str, Any]] = {
            "/v2/bot/info": {"displayName": "Bell", "basicId": "@bell"},
            "/v2/bot/message/quota": {"type": "limited", "value": 200},
            "/v2/bot/message/quota/consumption": {"totalUsage": 12},
            "/v2/bot/channel/webhook/endpoint": {"endpoint": self.door, "active": True},
        }
        return 200, told[request.path]

    async def _tried(self) -> dict[str, Any]:
        body = b'{"destination":"U1","events":[]}'
        signature = base64.b64encode(hmac.digest(self.secret.encode(), body, "sha256")).decode()
        async with httpx.AsyncClient(trust_env=False) as http:
            answer = await http.post(self.door, content=body, headers={"X-Line-Signature": signature})
        reason = "OK" if answer.is_success else "ERROR_STATUS_CODE"
        told = {"success": answer.is_success, "statusCode": answer.status_code, "reason": reason}
        return {**told, "detail": str(answer.status_code), "timestamp": "2026-12-01T05:00:00Z"}


async def rows(stage: Stage) -> dict[str, list[str]]:
    """All that is in the database, by tables."""
    names = [row["relname"] for row in await stage.sql.fetch(TABLES)]
    return {
        name: sorted(
            row["told"] for row in await stage.sql.fetch(f"SELECT CAST(t AS text) AS told FROM wakebell.{name} t")
        )
        for name in names
    }


async def looked(stage: Stage, *arguments: str, **environ: str) -> tuple[int, str]:
    process = stage.bear("doctor", *arguments, **environ)
    return await process.ended(), process.log


async def test_a_service_that_is_well_is_found_well_and_one_that_is_not_is_told_what_to_change(stage: Stage):
    stage.telling = ""
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    async with Provider() as provider, Switch() as switch:
        provider.door = f"{url}/api/webhooks/people"
        stage.more = FILE.format(url=provider.url)
        environ = {
            "PROVIDER_TOKEN": LINE_TOKEN,
            "PROVIDER_SECRET": CHANNEL_SECRET,
            "PUBLIC_URL": url,
            "API_TOKEN": API_TOKEN,
        }
        service: Service = await stage.serve_at("127.0.0.1", port, **environ)
        await service.tick()
        before = await rows(stage)

        status, told = await looked(stage, "--json", **environ, HEARTBEAT_URL=f"{switch.url}/ping/the-uuid")

        report = json.loads(told)
        found = {one["name"]: one for one in report["checks"]}
        assert {name: one["status"] for name, one in found.items() if one["status"] != "ok"} == {
            "dns 127.0.0.1": "warn",  # which nobody reaches from outside
            "PUBLIC_URL tls": "warn",
        }, told
        assert (status, report["status"]) == (0, "warn")
        assert found["chat people delivery"]["found"] == "LINE has tried it, and was answered"
        assert found["channel provider quota"]["found"] == "12 of this month's 200 messages are used up"
        assert found["PUBLIC_URL tick"]["found"] == "it refuses whoever does not prove who they are (401), as it should"
        assert found["database rings"]["found"].startswith("the last one ")
        assert " ago by http, ok; 1 in 24 hours" in found["database rings"]["found"]
        assert switch.pinged == []
        assert not any("message/push" in one or "broadcast" in one for one in provider.asked)
        assert await rows(stage) == before

        service.term()
        await service.ended()
        provider.door = f"{url}/elsewhere"
        wrong = {**environ, "PROVIDER_TOKEN": "a-wrong-token-0123"}
        status, told = await looked(stage, **wrong, REDIS_URL="redis://:hunter2-hunter2@127.0.0.1:1")

    lines = told.splitlines()
    secrets = [value for name, value in stage.environ.items() if name not in {"HOST", "PORT"}]
    assert status == 1
    assert [line.split()[0] for line in lines].count("fail") == 4
    for name, words in (
        ("PUBLIC_URL", "127.0.0.1 could not be reached (ConnectError): nobody listens there; check the port"),
        ("channel provider", "issue a new one in the LINE Developers console, tab Messaging API"),
        ("chat people", "issue a new one in the LINE Developers console"),
        ("redis", "nobody listens there; check the port, and whether it is up"),
    ):
        assert any(line.startswith("fail") and f" {name} " in line and words in line for line in lines), (name, told)
    assert "nobody notices when the rings stop" in told
    for secret in (*wrong.values(), LINE_TOKEN, "hunter2-hunter2", "the-uuid", *secrets):
        assert secret == url or secret not in told
