"""What answers while the service is being imported: `/healthz` at once, everything else when the application is there.

    port bound --> /healthz answered --> application loaded, in a thread --> the others answered, in it
                                     `-> it cannot be loaded: the process ends, and whoever waited is told to come again

So a proxy that wakes a host never meets a closed port, and the scheduler's first ring waits instead of failing.
"""

from __future__ import annotations

import asyncio
import threading
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Any, Protocol

from app import alive

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractAsyncContextManager

LEAVING_SECONDS = 10.0
"""What an order to stop waits for an import that has begun: cut off in the middle, it may leave something behind."""

UNLOADED = b'{"title":"Service Unavailable","status":503,"detail":"the service does not start; its log says why"}'


class Application(Protocol):
    """What is loaded: an ASGI application, told of an order to stop."""

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Answer one request."""
        ...

    def stop(self) -> None:
        """Start nothing new."""
        ...

    def running(self) -> AbstractAsyncContextManager[None]:
        """From before the first request to after the last."""
        ...


class Front:
    """An ASGI application before one that `load` gives; `load` runs in a thread of its own, once, and may raise."""

    def __init__(self, load: Callable[[], Application]) -> None:
        self._load = load
        self._loaded = asyncio.Event()
        self._ready = asyncio.Event()
        self._application: Application | None = None
        self._stopping = False
        self._ended: Callable[[], None] | None = None

        self.failure: BaseException | None = None
        """Why the application is not there and never will be."""

    def on_failure(self, end: Callable[[], None]) -> None:
        """What to call when the application cannot be loaded; in the event loop."""
        self._ended = end

    def request(self) -> None:
        """The process was told to stop; said to the application too, now or as soon as it is there."""
        self._stopping = True
        if self._application is not None:
            self._application.stop()

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Answer what can be answered, and hand the rest on; the body of a request waits where it is."""
        if scope["type"] == "lifespan":
            await self._live(receive, send)
            return
        if alive.asked(scope) and self.failure is None:
            await alive.answer(scope, receive, send)
            return
        await self._ready.wait()
        if self._application is None:
            await _unloaded(send)
        else:
            await self._application(scope, receive, send)

    async def _live(self, receive: Any, send: Any) -> None:
        """From the server's start to its end, which it tells of when no request runs any more."""
        await receive()
        loop = asyncio.get_running_loop()
        # A daemon: an import that hangs must not keep a process from ending that was told to.
        threading.Thread(target=self._work, args=(loop,), name="loading", daemon=True).start()
        await send({"type": "lifespan.startup.complete"})
        leaving = asyncio.create_task(receive())
        loaded = asyncio.create_task(self._loaded.wait())
        await asyncio.wait({leaving, loaded}, return_when=asyncio.FIRST_COMPLETED)
        await asyncio.wait({loaded}, timeout=LEAVING_SECONDS)
        loaded.cancel()
        async with AsyncExitStack() as stack:
            if self._application is not None:
                await stack.enter_async_context(self._application.running())
            self._ready.set()
            await leaving
        await send({"type": "lifespan.shutdown.complete"})

    def _work(self, loop: asyncio.AbstractEventLoop) -> None:
        application, failure = None, None
        try:
            application = self._load()
        except BaseException as error:  # noqa: BLE001 - whoever waits for it must hear of it, whatever it is
            failure = error
        try:
            loop.call_soon_threadsafe(self._come, application, failure)
        except RuntimeError:  # the loop was closed meanwhile: nobody waits any more
            return

    def _come(self, application: Application | None, failure: BaseException | None) -> None:
        self._application, self.failure = application, failure
        if application is None and self._ended is not None:
            self._ended()
        elif application is not None and self._stopping:
            application.stop()
        self._loaded.set()


async def _unloaded(send: Any) -> None:
    headers = [
        (b"content-length", b"%d" % len(UNLOADED)),
        (b"content-type", b"application/problem+json"),
        (b"retry-after", b"10"),
        (b"connection", b"close"),
    ]
    await send({"type": "http.response.start", "status": 503, "headers": headers})
    await send({"type": "http.response.body", "body": UNLOADED})
