"""`python -m bench.fuzz --minutes 10`: documents of 5 MB that nobody wrote, through every kind of source.

Each must come out as a round or as a failure of ours, within two seconds and not much memory. They are read in a
process of their own, since what hangs cannot be stopped in any other way. Exit status 1 when one was not.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import logging
import random
import resource
import select
import subprocess
import sys
import time
from dataclasses import dataclass, field
from typing import IO, Any

import httpx

from app import plugins
from app.clients.download import MAX_BYTES
from app.domain.errors import Failure
from app.sources import Reading
from tests.fakes import hostile

MOST_SECONDS = 2.0
MOST_MIB = 200
"""Over what the process has without a document; the document itself and its text are some 30 of them."""

HANGS_SECONDS = 60
LOOP_SECONDS = 0.055
"""What `_loop` takes on a quiet machine. Where others work too, seconds are told as that machine would take them."""

URL = "https://e.test/source"
KINDS: dict[str, dict[str, Any]] = {
    "feed": {"url": URL},
    "json": {
        "url": URL,
        "items": "data || items || @",
        "title": "title",
        "key": "id",
        "link": "url",
        "text": "content_html",
    },
    "html": {"url": URL, "items": "li, item, p", "title": "h3", "link": "a@href"},
}

READERS = ["feed", "feed", "json", "html"]
"""Feeds twice: their reader has most of its own."""


@dataclass(slots=True)
class Tally:
    """What came of all documents."""

    count: int = 0
    faults: list[str] = field(default_factory=list)
    slowest: list[tuple[float, str]] = field(default_factory=list)
    most_mib: float = 0.0

    def add(self, what: str, told: dict[str, Any]) -> None:
        """One document."""
        self.count += 1
        self.most_mib = max(self.most_mib, told["mib"])
        self.slowest = sorted([*self.slowest, (told["seconds"], what)], reverse=True)[:10]
        if told["error"]:
            self.faults.append(f"{what}: {told['error']}")
        if told["seconds"] > MOST_SECONDS:
            self.faults.append(f"{what}: {told['seconds']:.2f} s")
        if told["mib"] > MOST_MIB:
            self.faults.append(f"{what}: {told['mib']:.0f} MiB")


def main() -> int:
    """A document is one seed and one kind: `--kind feed --seed 7` reads that one again."""
    parser = argparse.ArgumentParser(prog="python -m bench.fuzz", description=__doc__)
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--bytes", type=int, default=MAX_BYTES, help="of the largest; half of all have less")
    parser.add_argument("--kind", choices=sorted(KINDS))
    parser.add_argument("--seed", type=int, help="this document alone")
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.child:
        _child()
        return 0
    kinds = [args.kind] if args.kind else READERS
    tally = Tally()
    until = time.monotonic() + args.minutes * 60
    child = None
    while time.monotonic() < until:
        seed = args.seed if args.seed is not None else random.SystemRandom().randrange(2**32)
        for kind in dict.fromkeys(kinds) if args.seed is not None else [kinds[seed % len(kinds)]]:
            child = child if child and child.poll() is None else _start()
            size = args.bytes if args.seed is not None or seed % 2 else seed % args.bytes
            tally.add(f"--kind {kind} --seed {seed} --bytes {size}", _ask(child, kind, seed, size))
        if args.seed is not None:
            break
    if child:
        child.kill()
        child.wait()
    _print(tally)
    return 1 if tally.faults else 0


def _print(tally: Tally) -> None:
    lines = [f"{tally.count:,} documents, at most {tally.most_mib:.0f} MiB over an idle process; the slowest:"]
    lines += [f"  {seconds:5.2f} s  {what}" for seconds, what in tally.slowest]
    lines += [f"FAULT {fault}" for fault in tally.faults] or ["no fault"]
    print("\n".join(lines))  # noqa: T201 - a command prints


def _start() -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "bench.fuzz", "--child"]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)  # noqa: S603 - ourselves


def _ask(child: subprocess.Popen[str], kind: str, seed: int, size: int) -> dict[str, Any]:
    asked, answers = _pipes(child)
    asked.write(json.dumps([kind, seed, size]) + "\n")
    asked.flush()
    ready, _, _ = select.select([answers], [], [], HANGS_SECONDS)
    if not ready:
        child.kill()
        child.wait()
        return {"seconds": float(HANGS_SECONDS), "mib": 0.0, "error": f"not done after {HANGS_SECONDS} s"}
    line = answers.readline()
    if not line:
        return {"seconds": 0.0, "mib": 0.0, "error": f"the process died ({child.wait()})"}
    told: dict[str, Any] = json.loads(line)
    return told


def _pipes(child: subprocess.Popen[str]) -> tuple[IO[str], IO[str]]:
    if child.stdin is None or child.stdout is None:
        raise TypeError("a child has pipes")
    return child.stdin, child.stdout


def _child() -> None:
    """Reads what it is asked to, and tells of each."""
    logging.disable(logging.CRITICAL)
    for kind in KINDS:
        _read(kind, b"")  # what is imported late is no document's cost
    for line in sys.stdin:
        kind, seed, size = json.loads(line)
        print(json.dumps(_measured(kind, hostile.document(seed, size))), flush=True)  # noqa: T201


def _measured(kind: str, body: bytes) -> dict[str, Any]:
    loop = min(_loop(), _loop())
    before = _peak_mib(reset=True)
    started = time.process_time()
    error = _read(kind, body)
    seconds = time.process_time() - started
    slower = max(min(loop, _loop()) / LOOP_SECONDS, 1.0)
    return {"seconds": seconds / slower, "mib": _peak_mib() - before, "error": error}


def _loop() -> float:
    started = time.process_time()
    sum(i * i for i in range(1_000_000))
    return time.process_time() - started


def _read(kind: str, body: bytes) -> str:
    """What was wrong; empty when it was a round or a failure of ours."""
    try:
        asyncio.run(_fetch(kind, body))
    except Failure:
        return ""
    except BaseException as error:  # noqa: BLE001 - which it is is what this is about
        return f"{type(error).__name__}: {error}"[:300]
    return ""


async def _fetch(kind: str, body: bytes) -> None:
    module = plugins.load("app.sources", kind)
    transport = httpx.MockTransport(lambda _: httpx.Response(200, stream=httpx.ByteStream(body)))
    async with httpx.AsyncClient(transport=transport) as http:
        reading = Reading(source="fuzz", http=http, user_agent="fuzz", primed=True)
        await module.fetch(module.Options.model_validate(KINDS[kind]), reading)


def _peak_mib(*, reset: bool = False) -> float:
    """The most memory since the last reset; where the system cannot tell, the most ever."""
    try:
        if reset:
            with open("/proc/self/clear_refs", "w", encoding="ascii") as clear:  # noqa: PTH123 - a file of the system's
                clear.write("5")
        with open("/proc/self/status", encoding="ascii", errors="replace") as status:  # noqa: PTH123
            return next(int(line.split()[1]) for line in status if line.startswith("VmHWM:")) / 1024
    except (OSError, StopIteration):
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return peak / (2**20 if sys.platform == "darwin" else 2**10)


if __name__ == "__main__":
    sys.exit(main())
