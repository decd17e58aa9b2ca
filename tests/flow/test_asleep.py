"""Between requests the process is as good as not there: hosts, databases and bills wait for that."""

from __future__ import annotations

import json
import signal
from textwrap import dedent
from typing import Any

import psutil

from tests.fakes.proxy import Proxy
from tests.flow.service import Service, free_port, until
from tests.flow.stage import Stage

TELLING = """
    import asyncio, json, signal, sys, threading
    from app import cli, server
    serve = server.Server.serve

    async def telling(self, sockets=None):
        loop = asyncio.get_running_loop()

        def tell():
            timers = [repr(handle) for handle in loop._scheduled if not handle.cancelled()]
            ready = [repr(handle) for handle in loop._ready if not handle.cancelled()]
            tasks = sorted(task.get_coro().__qualname__ for task in asyncio.all_tasks())
            threads = sorted(thread.name.partition("_")[0] for thread in threading.enumerate())
            told = {"timers": timers, "ready": ready, "tasks": tasks, "threads": threads}
            print("STATE", json.dumps(told), flush=True)

        loop.add_signal_handler(signal.SIGUSR1, tell)
        await serve(self, sockets)

    server.Server.serve = telling
    sys.exit(cli.main(["serve"]))
"""

LOOKS = 200


async def state(service: Service) -> dict[str, Any]:
    """What the event loop has before it, at this moment."""
    service.process.send(signal.SIGUSR1)

    def told() -> list[str]:
        return [line for line in service.log.splitlines() if line.startswith("STATE ")]

    [line] = await until(told, told="the process tells its state")
    found: dict[str, Any] = json.loads(line.removeprefix("STATE "))
    return found


def sockets(service: Service) -> list[tuple[str, Any]]:
    """Its open ones, but that at which it listens."""
    open_ones = psutil.Process(service.process.pid).net_connections()
    return [(one.status, one.raddr) for one in open_ones if one.status != psutil.CONN_LISTEN]


async def test_after_a_tick_nothing_is_open_nothing_is_planned_and_a_probe_wakes_nobody(stage: Stage):
    feed = stage.feeds.add("jobs", "Cook")
    async with Proxy(stage.database_url) as proxy:
        port = free_port()
        environ = {"HOST": "127.0.0.1", "PORT": str(port), "DATABASE_URL": proxy.url}
        service = Service(stage.program(dedent(TELLING), **environ), port)
        await service.ready()
        await service.tick()
        feed.add("Driver")
        await stage.make_due()
        assert (await service.tick())["messages"]["sent"] == 1
        await until(lambda: not sockets(service), told="the process has no connection to anybody")
        said, made = proxy.bytes, proxy.connections

        for _ in range(LOOKS):
            assert (await service.ask("GET", "/healthz")).status_code == 200

        assert (proxy.bytes, proxy.connections) == (said, made)
        await until(lambda: not sockets(service), told="whoever asked has gone")
        before = await state(service)

    assert before["timers"] == []
    assert before["ready"] == []
    assert before["tasks"] == ["LifespanOn.main", "LifespanOn.receive", "_served"], "each waits for the order to stop"
    assert [name for name in before["threads"] if name != "asyncio"] == ["MainThread"], "those of asyncio's pool wait"
