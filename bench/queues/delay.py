"""A server that is far away: everything that passes here arrives a while later, in order, and any number at once."""

from __future__ import annotations

import asyncio
import time
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path


COARSE = 0.001
"""asyncio waits in whole milliseconds, rounded up; the rest is slept outside of it."""


@asynccontextmanager
async def delayed(unix: Path, *, each_way: float) -> AsyncIterator[int]:
    """A port of this machine that leads to the socket, `each_way` seconds later in both directions."""
    passing: set[asyncio.Task[None]] = set()

    async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there, onward = await asyncio.open_unix_connection(unix)
        for source, target in ((reader, onward), (there, writer)):
            task = asyncio.create_task(_pass(source, target, each_way))
            passing.add(task)
            task.add_done_callback(passing.discard)

    server = await asyncio.start_server(accept, "127.0.0.1", 0)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()
        for task in passing:
            task.cancel()


async def _pass(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, each_way: float) -> None:
    """Each piece waits from its own arrival on: what is sent in one go arrives in one go."""
    loop = asyncio.get_running_loop()
    pieces: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue()

    async def deliver() -> None:
        with suppress(OSError):
            while True:
                due, piece = await pieces.get()
                await asyncio.sleep(max(0.0, due - loop.time() - COARSE))
                time.sleep(max(0.0, due - loop.time()))  # noqa: ASYNC251 - see COARSE
                if not piece:
                    break
                writer.write(piece)
        writer.close()

    delivering = asyncio.create_task(deliver())
    try:
        piece = b"-"
        while piece:
            try:
                piece = await reader.read(65536)
            except OSError:
                piece = b""
            pieces.put_nowait((loop.time() + each_way, piece))
        await delivering
    finally:
        delivering.cancel()
