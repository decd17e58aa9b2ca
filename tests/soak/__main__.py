"""`python -m tests.soak`: eight processes drain 50,000 jobs while one of them is killed every second."""

from __future__ import annotations

import argparse
import asyncio
import os
import shutil
import sys
import tempfile
from datetime import UTC, datetime
from pathlib import Path

from tests.flow.processes import Nursery
from tests.soak.load import Size
from tests.soak.trial import Found, soak


def main() -> int:
    """Exit status 1 when something was not as it must be; then everything is left in a folder that is named."""
    parser = argparse.ArgumentParser(prog="python -m tests.soak", description=__doc__)
    parser.add_argument("--jobs", type=int, default=50_000)
    parser.add_argument("--serial", type=int, help="of them with a serial key; default: two fifths")
    parser.add_argument("--keys", type=int, default=500, help="serial keys")
    parser.add_argument("--processes", type=int, default=8)
    parser.add_argument("--kill-every", type=float, default=1.0, metavar="S", help="seconds")
    parser.add_argument(
        "--lease", type=float, metavar="S", help="end leases after so long; default: 12 s, as they are given"
    )
    parser.add_argument("--pooler", action="store_true", help="through pgbouncer with two server connections")
    args = parser.parse_args()
    size = Size(
        jobs=args.jobs,
        serial=args.jobs * 2 // 5 if args.serial is None else args.serial,
        keys=args.keys,
        processes=args.processes,
        kill_every=args.kill_every,
        lease=args.lease,
    )
    folder = Path(tempfile.mkdtemp(prefix="wakebell-soak-"))
    folder.chmod(0o755)  # as root, PostgreSQL runs as another user
    found = run(size, folder=folder, pooled=args.pooler)
    print(f"{datetime.now(UTC):%Y-%m-%d}, {os.cpu_count()} cores\n\n{found.table}")  # noqa: T201 - a command prints
    if found.faults:
        print("\n".join(["", *found.faults, f"Logs and data: {folder}"]), file=sys.stderr)  # noqa: T201
        return 1
    shutil.rmtree(folder)
    return 0


def run(size: Size, *, folder: Path, pooled: bool) -> Found:
    """With the server's defaults: what is committed is on disk."""
    nursery = Nursery()
    try:
        return asyncio.run(soak(size, folder=folder, nursery=nursery, options={}, pooled=pooled))
    finally:
        nursery.close()


if __name__ == "__main__":
    sys.exit(main())
