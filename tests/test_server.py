from __future__ import annotations

import asyncio
import os
import signal
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx
import pytest
from fastapi import FastAPI

from app import server as module
from app.context import Stopping
from app.domain.errors import ServiceError
from app.server import Server, bind


def port_of(listening: socket.socket) -> int:
    return int(listening.getsockname()[1])


@pytest.mark.parametrize(("host", "address"), [("127.0.0.1", "127.0.0.1"), ("::1", "::1"), ("localhost", "127.0.0.1")])
def test_an_address_is_listened_on(host: str, address: str):
    with bind(host, 0) as listening:
        assert listening.getsockname()[0] == address
        socket.create_connection((address, port_of(listening))).close()


def test_every_address_of_both_kinds_is_listened_on():
    with bind("::", 0) as listening:
        for address in ("127.0.0.1", "::1"):
            socket.create_connection((address, port_of(listening))).close()


@pytest.mark.parametrize("host", ["203.0.113.1", "no-such-host.invalid"])
def test_an_address_that_is_not_ours_is_told(host: str):
    with pytest.raises(ServiceError, match=f"{host}:0 cannot be listened on: .*; set PORT or HOST"):
        bind(host, 0)


def test_a_port_that_is_taken_is_told():
    with (
        bind("127.0.0.1", 0) as listening,
        pytest.raises(ServiceError, match=r"Address already in use.*; set PORT or HOST"),
    ):
        bind("127.0.0.1", port_of(listening))


class Served:
    """A server with one slow door."""

    def __init__(self) -> None:
        self.stopping = Stopping()
        self.entered = asyncio.Event()
        self.open = asyncio.Event()
        self.ended = False
        app = FastAPI()

        @app.get("/slow")
        async def slow() -> str:
            self.entered.set()
            await self.open.wait()
            self.ended = True
            return "done"

        self.server = Server(app, self.stopping)


@pytest.fixture
def served() -> Served:
    return Served()


@asynccontextmanager
async def serving(served: Served) -> AsyncIterator[tuple[httpx.AsyncClient, asyncio.Task[None]]]:
    with bind("127.0.0.1", 0) as listening:
        task = asyncio.create_task(served.server.serve(sockets=[listening]))
        async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port_of(listening)}") as http:
            yield http, task
        served.open.set()
        served.server.stop()
        await task


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_an_order_to_stop_lets_the_running_request_be_answered(served: Served, number: signal.Signals):
    async with serving(served) as (http, task):
        asking = asyncio.create_task(http.get("/slow"))
        await served.entered.wait()

        os.kill(os.getpid(), number)
        await served.stopping.wait()
        served.open.set()

        assert (await asking).json() == "done"
        await task


async def test_the_same_order_twice_in_a_moment_is_one_order(served: Served):
    async with serving(served) as (http, task):
        asking = asyncio.create_task(http.get("/slow"))
        await served.entered.wait()

        served.server.stop()
        served.server.stop()
        served.open.set()

        assert (await asking).json() == "done"
        await task


async def test_a_second_order_ends_at_once(served: Served, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(module, "ECHO_SECONDS", -1)
    async with serving(served) as (http, task):
        asking = asyncio.create_task(http.get("/slow"))
        await served.entered.wait()

        served.server.stop()
        served.server.stop()
        await task

        assert not served.ended, "it did not wait for the answer"
        asking.cancel()


async def test_the_server_does_not_name_itself(served: Served):
    served.open.set()
    async with serving(served) as (http, _):
        response = await http.get("/slow")

    assert "server" not in response.headers
