"""One reader in a process of its own: `python -m bench.feeds.child READER ROUNDS`, paths on standard input.

Imports nothing but the reader's file, so that a process costs what the reader costs.
"""

from __future__ import annotations

import importlib
import json
import sys
import time
import warnings
from pathlib import Path
from typing import Any

from bench.queues.child import peak_kib


def main() -> None:
    """Answers in JSON: what each file's entries are, or why there are none; the fastest round; the peak of memory."""
    warnings.simplefilter("ignore")
    name, rounds = sys.argv[1], int(sys.argv[2])
    bodies = [Path(line.rstrip("\n")).read_bytes() for line in sys.stdin]
    started = time.process_time()
    reader = importlib.import_module(f"bench.feeds.adapters.{name}")
    imported = time.process_time() - started
    before = peak_kib()
    read = [_read(reader, body) for body in bodies]
    peak = peak_kib()
    answer = {"read": read, "seconds": min(_round(reader, bodies) for _ in range(rounds))}
    sys.stdout.write(json.dumps(answer | {"import": imported, "peak_kib": peak - before}) + "\n")


def _round(reader: Any, bodies: list[bytes]) -> float:
    started = time.process_time()
    for body in bodies:
        _read(reader, body)
    return time.process_time() - started


def _read(reader: Any, body: bytes) -> list[Any] | str:
    try:
        return list(reader.read(body))
    except Exception as error:  # noqa: BLE001 - a reader that raises has not read it, whatever it raised
        return type(error).__name__


if __name__ == "__main__":
    main()
