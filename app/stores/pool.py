"""A few connections to PostgreSQL, shared by all that goes on in a process, and closed when nobody needs them."""

from __future__ import annotations

import asyncio
import logging
import time
from typing import TYPE_CHECKING, Any

import asyncpg

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

log = logging.getLogger(__name__)

MOST = 6

FAULTS = (asyncpg.PostgresError, asyncpg.InterfaceError, asyncpg.InternalClientError, OSError, TimeoutError)
"""What a statement may end with; the third where the driver loses count over a connection that is lost."""

FRESH_SECONDS = 1.0
"""A connection that was used so lately, and was not seen to be closed, is believed to live."""

PING_SECONDS = 3.0
"""What a connection may take to say that it lives; one whose machine slept may be dead without a word."""

CLOSE_SECONDS = 2.0
"""For a statement that was cut off to end, and the farewell; after that the connection is cut."""


class Pool:
    """At most `MOST` connections, made when asked for; the one used last is used next."""

    def __init__(self, make: Callable[[], Awaitable[Any]]) -> None:
        self._make = make
        self._slots = asyncio.Semaphore(MOST)
        self._idle: list[tuple[Any, float, float]] = []
        self._in_use: dict[Any, int] = {}
        self._generation = 0

    @property
    def open(self) -> int:
        """How many connections there are now."""
        return len(self._idle) + len(self._in_use)

    async def slot(self) -> None:
        """Wait until one more may be used. Each is given back by `put` or `drop`, or by `leave`."""
        await self._slots.acquire()

    def leave(self) -> None:
        """The slot is not needed."""
        self._slots.release()

    async def take(self) -> Any:
        """A connection that lives, for who has a slot. It is given back by `put` or `drop`, and the slot with it.

        Raises:
            Exception: whatever kept a new one from being made; the slot is kept.
        """
        connection = await self._living() or await self._make()
        self._in_use[connection] = self._generation
        return connection

    def put(self, connection: Any) -> bool:
        """Give a connection back that is as it was: no transaction is open in it. False: `drop` it instead."""
        if (
            self._in_use[connection] != self._generation
            or connection.is_closed()
            or connection.is_in_transaction()  # whatever has left it so, the next one must not be in it
        ):
            return False
        del self._in_use[connection]
        self._idle.append((connection, time.monotonic(), time.time()))
        self._slots.release()
        return True

    async def drop(self, connection: Any) -> None:
        """Give a connection back that nobody is to use again."""
        try:
            await _end(connection)
        finally:
            del self._in_use[connection]
            self._slots.release()

    async def dispose(self) -> None:
        """Close what is not in use; what is in use is closed when it is given back."""
        self._generation += 1
        idle, self._idle = self._idle, []
        await asyncio.gather(*(_end(connection) for connection, _, _ in idle))

    async def _living(self) -> Any:
        while self._idle:
            connection, monotonic, wall = self._idle.pop()
            if connection.is_closed():
                continue
            # A machine that was suspended wakes with dead sockets, and with clocks of which at least one has jumped.
            if time.monotonic() - monotonic < FRESH_SECONDS and 0 <= time.time() - wall < FRESH_SECONDS:
                return connection
            if await _answers(connection):
                return connection
            log.debug("a broken connection was dropped")
            slept, self._idle = self._idle, []  # the others have rested longer than this one
            for other, _, _ in slept:
                other.terminate()
        return None


async def _answers(connection: Any) -> bool:
    alive = False
    try:
        async with asyncio.timeout(PING_SECONDS):
            await connection.execute("SELECT 1")
        alive = True
    except FAULTS:
        pass
    finally:
        if not alive:
            connection.terminate()
    return alive


async def _end(connection: Any) -> None:
    try:
        await connection.close(timeout=CLOSE_SECONDS)
    except FAULTS:
        log.debug("a broken connection was dropped")
    finally:
        if not connection.is_closed():
            connection.terminate()
