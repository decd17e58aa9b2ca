"""`python -m tests.soak.quiet`: for a minute after a tick the process says nothing to anybody, as the kernel sees it.

A chat's memory is in Redis where that is installed. Every system call is written down by strace: some hosts count
packets, and some the processor's time.
"""

from __future__ import annotations

import argparse
import asyncio
import re
import shutil
import sys
import tempfile
from collections import Counter
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import asyncpg
import psutil

from app.dev import postgres
from app.stores.migrations import migrate
from tests.fakes.feeds import Feeds
from tests.fakes.line import Line
from tests.fakes.redis_server import PROGRAM, redis_server
from tests.flow.processes import Nursery
from tests.flow.stage import Stage

AT_MOST_SECONDS = 15.0
"""From the answer until the last connection is closed."""

CALL = re.compile(r"^(?:\d+ +)?(?:[\d.]+ +)?(\w+)\(", re.MULTILINE)

SPEAKING = frozenset({"connect", "send", "sendto", "sendmsg", "sendmmsg", "socket", "write", "writev"})


def main() -> int:
    """Exit status 1 when something was open too long, or something was said."""
    parser = argparse.ArgumentParser(prog="python -m tests.soak.quiet", description=__doc__)
    parser.add_argument("--seconds", type=float, default=60.0)
    args = parser.parse_args()
    if shutil.which("strace") is None:
        print("needs strace, of the package of that name", file=sys.stderr)  # noqa: T201 - a command prints
        return 1
    folder = Path(tempfile.mkdtemp(prefix="wakebell-quiet-"))
    folder.chmod(0o755)  # as root, PostgreSQL runs as another user
    nursery = Nursery()
    try:
        return asyncio.run(_watched(folder, nursery, args.seconds))
    finally:
        nursery.close()
        shutil.rmtree(folder, ignore_errors=True)


async def _watched(folder: Path, nursery: Nursery, seconds: float) -> int:
    server = await asyncio.to_thread(postgres.start, folder / "postgres")
    try:
        await migrate(server.url)
        async with AsyncExitStack() as stack:
            sql = await asyncpg.connect(server.url)
            stack.push_async_callback(sql.close)
            feeds, line = await stack.enter_async_context(Feeds()), await stack.enter_async_context(Line())
            stage = Stage(folder=folder, database_url=server.url, sql=sql, feeds=feeds, line=line, nursery=nursery)
            environ: dict[str, Any] = {}
            if PROGRAM is not None:
                environ["REDIS_URL"] = (await stack.enter_async_context(redis_server())).url
            try:
                return await _minute(stage, seconds, environ)
            finally:
                for process in stage.processes:
                    process.clear_away()
    finally:
        await asyncio.to_thread(server.stop)


async def _minute(stage: Stage, seconds: float, environ: dict[str, Any]) -> int:
    feed = stage.feeds.add("jobs", "Cook")
    service = await stage.serve(command=True, **environ)
    await service.tick()
    feed.add("Driver")
    await stage.make_due()
    await service.tick()
    process = psutil.Process(service.process.pid)
    begun = asyncio.get_running_loop().time()
    while [one for one in process.net_connections() if one.status != psutil.CONN_LISTEN]:
        await asyncio.sleep(0.05)
        if asyncio.get_running_loop().time() - begun > AT_MOST_SECONDS:
            print(f"still open after {AT_MOST_SECONDS:g} s", file=sys.stderr)  # noqa: T201
            return 1
    closed = asyncio.get_running_loop().time() - begun
    log = stage.folder / "strace"
    strace = await asyncio.create_subprocess_exec("strace", "-f", "-p", str(process.pid), "-o", str(log))
    await asyncio.sleep(seconds)
    strace.terminate()
    await strace.wait()
    calls = Counter(CALL.findall(log.read_text()))
    said = {name: count for name, count in calls.items() if name in SPEAKING}
    print(f"closed {closed:.2f} s after the answer; in {seconds:g} s: {dict(calls) or 'no system call'}")  # noqa: T201
    if said:
        print(f"it spoke: {said}", file=sys.stderr)  # noqa: T201
    return 1 if said else 0


if __name__ == "__main__":
    sys.exit(main())
