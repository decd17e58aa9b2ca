"""`python -m bench.cold_start`: from the start of a process to its first answer, beside `python -c pass` and others.

A round starts each process once, one after the other; what is told are medians and their ratios to `python -c pass` of
the same rounds. All run on one environment, made of `requirements.lock`. A missed goal is told, and the exit status 0.
"""

from __future__ import annotations

import argparse
import asyncio
import http.client
import os
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from app.stores.migrations import migrate
from bench.queues.databases import serving
from bench.queues.environments import LOCK, ROOT, venv_of
from tests.fakes.feeds import Feeds

if TYPE_CHECKING:
    import resource
    from collections.abc import Mapping

DATABASE = "cold_start"
SECRET = "nobody-rings-from-outside"  # noqa: S105 - of this bench
SOURCES = 10
PATIENCE = 120.0

UVICORN = """
import os, uvicorn
async def app(scope, receive, send):
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b"ok"})
uvicorn.run(app, port=int(os.environ["PORT"]), log_config=None, access_log=False, ws="none", lifespan="off")
"""

FASTAPI = """
import os, uvicorn
from fastapi import FastAPI
app = FastAPI(openapi_url=None)
@app.get("/")
async def hello():
    return "ok"
uvicorn.run(app, port=int(os.environ["PORT"]), log_config=None, access_log=False, ws="none", lifespan="off")
"""

SQLALCHEMY = """
import os, uvicorn
from fastapi import FastAPI
from sqlalchemy import text
from sqlalchemy.ext.asyncio import create_async_engine
app = FastAPI(openapi_url=None)
engine = create_async_engine(os.environ["DATABASE_URL"].replace("postgresql:", "postgresql+asyncpg:", 1))
@app.get("/")
async def asked():
    async with engine.connect() as connection:
        return (await connection.execute(text("SELECT 1"))).scalar()
uvicorn.run(app, port=int(os.environ["PORT"]), log_config=None, access_log=False, ws="none", lifespan="off")
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One process, and what it is asked first."""

    name: str
    arguments: tuple[str, ...]
    method: str = "GET"
    path: str | None = "/"
    """None: it is asked nothing, and ends by itself."""

    config: str = ""
    goal: float | None = None
    """Times `python -c pass`, by the clock and by CPU."""

    most_mib: float | None = None


@dataclass(frozen=True, slots=True)
class Trial:
    """Until its first answer."""

    wall: float
    cpu: float
    mib: float


PASS = Case(name="python -c pass", arguments=("-c", "pass"), path=None)
SERVE = ("-m", "app", "serve")
TICK = "/api/cron/tick"
CASES = (
    PASS,
    Case(name="bare uvicorn", arguments=("-c", UVICORN)),
    Case(name="a bare FastAPI application", arguments=("-c", FASTAPI)),
    Case(name="FastAPI and SQLAlchemy, one query", arguments=("-c", SQLALCHEMY)),
    Case(name="Wakebell: /healthz", arguments=SERVE, path="/healthz", goal=12),
    Case(name="Wakebell: a tick with nothing to do", arguments=SERVE, method="POST", path=TICK, goal=60),
    Case(
        name=f"Wakebell: a tick with {SOURCES} sources",
        arguments=SERVE,
        method="POST",
        path=TICK,
        config="sources",
        most_mib=90,
    ),
)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="python -m bench.cold_start", description=__doc__)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--python", help="an interpreter that has what requirements.lock names; else one is made")
    args = parser.parse_args()
    asyncio.run(_run(args.python or venv_of(sys.executable, LOCK)[0], args.rounds))


async def _run(python: str, rounds: int) -> None:
    async with serving() as server, Feeds() as feeds:
        await server.create(DATABASE)
        try:
            url = server.url(DATABASE)
            await migrate(url)
            with tempfile.TemporaryDirectory() as folder:
                environ = {"PATH": os.defpath, "PYTHONPATH": str(ROOT), "DATABASE_URL": url}
                environ |= {"CRON_SECRET": SECRET, "HOST": "127.0.0.1", "LOG_LEVEL": "ERROR"}
                _configure(Path(folder), feeds)
                trials = await asyncio.to_thread(_trials, python, environ, Path(folder), rounds)
        finally:
            await server.drop(DATABASE)
    print(_table(trials))  # noqa: T201 - a command prints


def _configure(folder: Path, feeds: Feeds) -> None:
    """A configuration with nothing due at all, and one whose sources are due at each tick."""
    board = '[sources.{name}]\nkind = "feed"\nurl = "{url}"\nevery_minutes = {every}\n'
    for number in range(SOURCES):
        feeds.add(f"board{number}", *(f"Gig {one} of {number}" for one in range(50)), validators=False)
    due = [board.format(name=name, url=feed.url, every=1 / 60) for name, feed in feeds.feeds.items()]
    (folder / "sources.toml").write_text("[service]\nhost_gap_seconds = 0\n" + "".join(due))
    (folder / "wakebell.toml").write_text("")


def _trials(python: str, environ: Mapping[str, str], folder: Path, rounds: int) -> dict[Case, list[Trial]]:
    found: dict[Case, list[Trial]] = {case: [] for case in CASES}
    for number in range(rounds + 1):
        for case in CASES:
            trial = _trial(case, python, environ, folder)
            if number:  # the first round writes bytecode
                found[case].append(trial)
        print(f"round {number} of {rounds}", file=sys.stderr, flush=True)  # noqa: T201
    return found


def _trial(case: Case, python: str, environ: Mapping[str, str], folder: Path) -> Trial:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    config = folder / f"{case.config or 'wakebell'}.toml"
    begun = time.perf_counter()
    process = subprocess.Popen(  # noqa: S603
        [python, *case.arguments],
        env={**environ, "PORT": str(port), "WAKEBELL_CONFIG": str(config)},
        cwd=folder,
        stdout=subprocess.DEVNULL,
    )
    if case.path is None:
        _, _, used = os.wait4(process.pid, 0)
        wall, mib = time.perf_counter() - begun, 0.0
    else:
        _ask(case, port, process, begun + PATIENCE)
        wall, mib = time.perf_counter() - begun, _most_mib(process.pid)
        process.send_signal(signal.SIGKILL)  # at once: nothing that comes after the answer is counted
        _, _, used = os.wait4(process.pid, 0)
    process.returncode = 0  # it has been waited for
    return Trial(wall, _cpu(used), mib)


def _ask(case: Case, port: int, process: subprocess.Popen[bytes], until: float) -> None:
    """Knock until somebody opens, and wait for the answer."""
    while True:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
        try:
            connection.request(case.method, case.path or "/", headers={"Authorization": f"Bearer {SECRET}"})
            answer = connection.getresponse()
            body = answer.read()
        except OSError:
            if process.poll() is not None or time.perf_counter() > until:
                raise SystemExit(f"{case.name}: does not answer") from None
            time.sleep(0.001)
            continue
        finally:
            connection.close()
        if answer.status != http.client.OK:
            process.kill()
            raise SystemExit(f"{case.name}: answered {answer.status}: {body.decode()}")
        return


def _most_mib(pid: int) -> float:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) / 1024
    raise SystemExit("this needs Linux: /proc tells the memory")


def _cpu(used: resource.struct_rusage) -> float:
    return used.ru_utime + used.ru_stime


def _table(trials: Mapping[Case, list[Trial]]) -> str:
    def middle(case: Case) -> Trial:
        each = trials[case]
        return Trial(*(statistics.median(getattr(one, name) for one in each) for name in ("wall", "cpu", "mib")))

    least = middle(PASS)
    lines = [
        "| until the first answer | ms | times | CPU ms | times | peak MiB | goal |",
        "|---|---:|---:|---:|---:|---:|---|",
    ]
    for case in CASES:
        found = middle(case)
        wall, cpu = found.wall / least.wall, found.cpu / least.cpu
        told = ""
        if case.goal is not None:
            told = f"{case.goal:g} times: {'met' if max(wall, cpu) <= case.goal else 'missed'}"
        if case.most_mib is not None:
            told = f"{case.most_mib:g} MiB: {'met' if found.mib <= case.most_mib else 'missed'}"
        lines.append(
            f"| {case.name} | {found.wall * 1000:.0f} | {wall:.1f} | {found.cpu * 1000:.0f} | {cpu:.1f} "
            f"| {found.mib:.0f} | {told} |"
            if case.path
            else f"| {case.name} | {found.wall * 1000:.0f} | 1 | {found.cpu * 1000:.0f} | 1 | | |"
        )
    load = os.getloadavg()[0]
    version = ".".join(map(str, sys.version_info[:3]))
    return "\n".join([*lines, "", f"Python {version}, {os.cpu_count()} cores, load {load:.1f}"])


if __name__ == "__main__":
    main()
