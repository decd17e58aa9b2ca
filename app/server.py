"""uvicorn as this service wants it: an order to stop ends the batch at its next job, and the answer still comes."""

from __future__ import annotations

import asyncio
import signal
import socket
import time
from contextlib import contextmanager
from email.utils import formatdate
from typing import TYPE_CHECKING, Any, Protocol

import uvicorn

from app.domain.errors import ServiceError

if TYPE_CHECKING:
    from collections.abc import Iterator

KEEP_ALIVE_SECONDS = 75
"""Longer than any proxy keeps an idle connection: with uvicorn's 5 a proxy now and then meets a closed one, and
answers 502.
"""

GRACEFUL_SECONDS = 20
"""What running requests get after SIGTERM. Jobs get 8 of them; the rest is for the answer."""

ECHO_SECONDS = 1.0
"""A signal within this time is the same order: `make` and `timeout` pass on what the terminal has sent already."""

SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Stopping(Protocol):
    """Whoever is to hear of the order to stop."""

    def request(self) -> None:
        """It was given."""
        ...


class Server(uvicorn.Server):
    """Serves until it is told to stop; then ends in order, with exit status 0. Between requests it does nothing."""

    def __init__(self, app: Any, stopping: Stopping) -> None:
        super().__init__(
            uvicorn.Config(
                dated(app),
                loop="asyncio",
                http="h11",
                lifespan="on",
                date_header=False,
                log_config=None,
                access_log=False,
                server_header=False,
                ws="none",
                timeout_keep_alive=KEEP_ALIVE_SECONDS,
                timeout_graceful_shutdown=GRACEFUL_SECONDS,
            ),
        )
        self._stopping = stopping
        self._told_at: float | None = None
        self._told = asyncio.Event()

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Without raising the signal again at the end: its exit status 143 is a crash to supervisors."""
        loop = asyncio.get_running_loop()
        for number in SIGNALS:
            loop.add_signal_handler(number, self.stop)
        try:
            yield
        finally:
            for number in SIGNALS:
                loop.remove_signal_handler(number)

    def stop(self) -> None:
        """Take no new request, start no new job, answer the running ones. Once more, later: at once."""
        now = time.monotonic()
        if self._told_at is None:
            self._told_at = now
        elif now - self._told_at > ECHO_SECONDS:
            self.force_exit = True
        self.end()
        self._stopping.request()

    def end(self) -> None:
        """Take no new request, and return when the running ones are answered."""
        self.should_exit = True
        self._told.set()

    async def main_loop(self) -> None:
        """Without uvicorn's ten looks a second at the clock and at `should_exit`: whoever sleeps is not to wake."""
        await self.on_tick(0)
        await self._told.wait()


def dated(app: Any) -> Any:
    """The same application; its answers say when they were given, which uvicorn would look up every second."""

    async def dating(scope: Any, receive: Any, send: Any) -> None:
        async def sending(message: Any) -> None:
            if message["type"] == "http.response.start":
                date = (b"date", formatdate(usegmt=True).encode())
                message = {**message, "headers": [*message.get("headers", ()), date]}
            await send(message)

        await app(scope, receive, sending)

    return dating


def bind(host: str, port: int) -> socket.socket:
    """A listening socket.

    Raises:
        ServiceError: the address cannot be used, and which setting to change.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, backlog=2048, dualstack_ipv6=host == "::")
    except OSError as error:
        raise ServiceError(f"{host}:{port} cannot be listened on: {error.strerror}; set PORT or HOST") from error
