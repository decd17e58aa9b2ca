from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx
import pytest

from app import alive
from app import front as module
from app.domain.errors import ConfigError
from app.front import Front
from app.server import Server, bind


class Application:
    """Echoes what it is sent, and keeps what becomes of it."""

    def __init__(self) -> None:
        self.told: list[str] = []

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        body, more = b"", True
        while more:
            message = await receive()
            if message["type"] == "http.disconnect":
                self.told.append("gone")
                return
            body += message.get("body", b"")
            more = message.get("more_body", False)
        self.told.append(scope["path"])
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": body})

    def stop(self) -> None:
        self.told.append("stop")

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        self.told.append("begins")
        yield
        self.told.append("ends")


class Stage:
    """A server whose application is loaded when the test says so."""

    def __init__(self) -> None:
        self.application = Application()
        self.failure: BaseException | None = None
        self.load = threading.Event()
        self.loading = threading.Event()
        self.front = Front(self._load)
        self.server = Server(self.front, self.front)
        self.front.on_failure(self.server.end)

    def _load(self) -> Application:
        self.loading.set()
        assert self.load.wait(60)
        if self.failure is not None:
            raise self.failure
        return self.application

    @asynccontextmanager
    async def serving(self) -> AsyncIterator[httpx.AsyncClient]:
        with bind("127.0.0.1", 0) as listening:
            self.serving_task = asyncio.create_task(self.server.serve(sockets=[listening]))
            url = f"http://127.0.0.1:{listening.getsockname()[1]}"
            try:
                async with httpx.AsyncClient(base_url=url, timeout=60) as http:
                    yield http
            finally:
                self.load.set()
                self.server.end()
                await self.serving_task


@pytest.fixture
def stage() -> Stage:
    return Stage()


@pytest.mark.parametrize("method", ["GET", "HEAD"])
async def test_the_process_says_that_it_lives_while_it_loads(stage: Stage, method: str):
    async with stage.serving() as http:
        answer = await http.request(method, "/healthz")

        assert not stage.load.is_set()
    assert (answer.status_code, answer.headers["content-type"]) == (200, "application/json")
    assert answer.headers["content-length"] == str(len(alive.BODY))
    assert answer.content == (alive.BODY if method == "GET" else b"")
    assert answer.headers["date"].endswith("GMT")


async def test_whoever_comes_early_waits_and_is_answered_whole(stage: Stage):
    body = b"x" * 1_000_000  # more than the server reads ahead
    async with stage.serving() as http:
        early = [asyncio.create_task(http.post(f"/{number}", content=body)) for number in range(3)]
        await http.get("/healthz")
        assert stage.application.told == []
        stage.load.set()

        answers = await asyncio.gather(*early)
    assert [answer.content for answer in answers] == [body] * 3
    assert stage.application.told[0] == "begins"
    assert set(stage.application.told[1:4]) == {"/0", "/1", "/2"}
    assert stage.application.told[4:] == ["ends"]


async def test_who_has_left_meanwhile_is_in_nobodys_way(stage: Stage):
    async with stage.serving() as http:
        early = asyncio.create_task(http.post("/early", content=b"x"))
        await http.get("/healthz")
        early.cancel()
        await asyncio.wait({early})
        await http.get("/healthz")
        stage.load.set()
        await http.get("/late")

    assert "/late" in stage.application.told


async def test_only_a_look_at_the_process_is_answered_before_the_application(stage: Stage):
    async with stage.serving() as http:
        asking = [
            asyncio.create_task(http.request(method, path))
            for method, path in (("POST", "/healthz"), ("GET", "/healthz/"), ("GET", "/"))
        ]
        await http.get("/healthz")
        assert not any(one.done() for one in asking)
        stage.load.set()

        await asyncio.gather(*asking)
    assert set(stage.application.told) >= {"/healthz", "/healthz/", "/"}


async def test_what_cannot_be_loaded_ends_the_server_and_nobody_hangs(stage: Stage):
    stage.failure = ConfigError(["CRON_SECRET: is not set"])
    async with stage.serving() as http:
        early = asyncio.create_task(http.post("/api/cron/tick"))
        await http.get("/healthz")
        stage.load.set()

        answer = await early
        await stage.serving_task
        with pytest.raises(httpx.ConnectError):
            await http.get("/healthz")
    assert (answer.status_code, answer.headers["retry-after"]) == (503, "10")
    assert answer.headers["content-type"] == "application/problem+json"
    assert "CRON_SECRET" not in answer.text
    assert stage.front.failure is stage.failure


async def test_an_order_to_stop_while_it_loads_reaches_the_application_and_early_requests_are_answered(stage: Stage):
    async with stage.serving() as http:
        early = asyncio.create_task(http.get("/early"))
        await http.get("/healthz")
        stage.server.stop()
        stage.load.set()

        assert (await early).status_code == 200
        await stage.serving_task
    assert stage.application.told == ["stop", "begins", "/early", "ends"]


async def test_an_order_to_stop_while_it_serves_reaches_the_application_once(stage: Stage):
    async with stage.serving() as http:
        stage.load.set()
        await http.get("/one")
        stage.server.stop()
        await stage.serving_task

    assert stage.application.told == ["begins", "/one", "stop", "ends"]


async def test_what_never_loads_does_not_keep_the_process(stage: Stage, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(module, "LEAVING_SECONDS", 0)
    async with stage.serving() as http:
        await http.get("/healthz")
        stage.server.stop()

        await stage.serving_task
        assert not stage.load.is_set()
    assert stage.application.told == []
