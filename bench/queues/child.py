"""One trial in a process of its own: `python -m bench.queues.child CONTENDER ACTION COUNT`, answers in JSON.

Imports nothing but the contender's file, so that a process costs what the contender costs.
"""

from __future__ import annotations

import asyncio
import importlib
import json
import resource
import sys
import time
from typing import Any


async def run(contender: Any, action: str, url: str, count: int) -> dict[str, float]:
    """`put` and `drain` are timed without the connecting; `once` is timed by the caller, from start to exit."""
    from bench.queues import counter  # noqa: PLC0415 - beside the contender, in its environment

    if action == "prepare":
        await contender.prepare(url)
        return {}
    async with contender.opened(url) as app:
        started, worked = time.perf_counter(), time.process_time()
        await (contender.put if action == "put" else contender.drain)(app, count)
        seconds, cpu = time.perf_counter() - started, time.process_time() - worked
    return {"seconds": seconds, "cpu": cpu, "ran": counter.ran(), "peak_kib": peak_kib()}


def profiled(contender: Any, url: str, count: int) -> dict[str, str]:
    """Where the time of a drain goes: the functions with most time of their own."""
    import cProfile  # noqa: PLC0415 - only where it is asked for
    import io  # noqa: PLC0415
    import pstats  # noqa: PLC0415

    with cProfile.Profile() as profile:
        asyncio.run(run(contender, "drain", url, count))
    told = io.StringIO()
    pstats.Stats(profile, stream=told).strip_dirs().sort_stats("tottime").print_stats(25)
    return {"profile": told.getvalue()}


def peak_kib() -> int:
    """The most memory that this process has had.

    On Linux not from `getrusage`: there a process begins with the peak of the one that started it.
    """
    try:
        with open("/proc/self/status", encoding="ascii", errors="replace") as status:  # noqa: PTH123 - cheaper
            return next(int(line.split()[1]) for line in status if line.startswith("VmHWM:"))
    except (OSError, StopIteration):
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return peak // 1024 if sys.platform == "darwin" else peak


def main() -> None:
    """The address comes on standard input, as nothing but the trial's own business."""
    name, action, count = sys.argv[1:]
    url = sys.stdin.readline().strip()
    contender = importlib.import_module(f"bench.queues.adapters.{name}")
    if action == "profile":
        answer: dict[str, Any] = dict(profiled(contender, url, int(count)))
    else:
        answer = dict(asyncio.run(run(contender, action, url, int(count))))
    sys.stdout.write(f"{json.dumps(answer)}\n")


if __name__ == "__main__":
    main()
