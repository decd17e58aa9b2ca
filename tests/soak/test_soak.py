"""The soak in small: its size is one that a test may have. `make soak` is the whole."""

from __future__ import annotations

import math
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import asyncpg
import pytest

from tests.flow.processes import Nursery
from tests.soak import load
from tests.soak.load import Size
from tests.soak.trial import complaints, soak

FAST = {"fsync": "off", "full_page_writes": "off", "synchronous_commit": "off"}

SMALL = Size(jobs=1000, serial=400, keys=40, processes=3, kill_every=1.5, lease=2.0, overdue=math.inf)
"""However slow the machine is that it runs on."""

BROKEN = """
INSERT INTO wakebell.jobs (id, type, status, serial_key, lease_until, lease_token)
OVERRIDING SYSTEM VALUE
SELECT id, 'exact', status, serial_key, now(), 1
FROM (VALUES (1, 'running', NULL), (2, 'done', NULL), (3, 'done', NULL), (4, 'done', 'k'), (5, 'done', 'k'))
    AS given (id, status, serial_key);
INSERT INTO public.effects (job, type) VALUES (3, 'exact'), (3, 'exact'), (5, 'exact'), (4, 'exact'), (9, 'exact')
"""


@pytest.fixture
def folder() -> Iterator[Path]:
    """Not pytest's: nobody else may enter that, and for root PostgreSQL is somebody else."""
    folder = Path(tempfile.mkdtemp(prefix="wakebell-soak-"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def nursery() -> Iterator[Nursery]:
    nursery = Nursery()
    yield nursery
    nursery.close()


async def test_jobs_drained_while_processes_are_killed_have_their_effect_once_and_in_order(
    folder: Path, nursery: Nursery
):
    found = await soak(SMALL, folder=folder, nursery=nursery, options=FAST)

    assert found.faults == [], found.table


async def test_what_is_not_as_it_must_be_is_told(database_url: str):
    sql = await asyncpg.connect(database_url)
    try:
        await sql.execute(load.STAGE)
        await sql.execute(BROKEN)

        assert await load.wrongs(sql) == [
            "1 not done: [1]",
            "1 done without an effect: [2]",
            "1 with more than one effect: [3]",
            "1 an effect of no job: [9]",
            "1 before one that was put in earlier with its serial key: [4]",
        ]
    finally:
        await sql.close()


def test_a_deadlock_in_the_servers_log_is_found(tmp_path: Path):
    log = tmp_path / "log"
    log.write_text(
        "2026-11-30 22:48:17.728 UTC [9106]  LOG:  checkpoint starting: time\n"
        "2026-11-30 22:48:18.000 UTC [9107] wakebell FATAL:  connection to client lost\n"
        + "2026-11-30 22:48:19.000 UTC [9108] wakebell ERROR:  deadlock detected\n"
        * 2
    )

    assert complaints(log) == ["ERROR:  deadlock detected (2x)"]
