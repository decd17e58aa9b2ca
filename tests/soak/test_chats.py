"""People talking to two replicas, in small: `python -m tests.soak.chats` is the whole."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fakes import nginx, redis_server
from tests.flow.processes import Nursery
from tests.soak.chats import Talk, talk

pytestmark = [
    pytest.mark.skipif(nginx.PROGRAM is None, reason=nginx.NEEDED),
    pytest.mark.skipif(redis_server.PROGRAM is None, reason=redis_server.NEEDED),
]

SMALL = Talk(people=4, messages=4, kill_every=1.0, kills=2, spread=1.5, budget=1)
"""Each replica is killed once: what it had in hand is held up until its lease ends, once and not again and again."""


@pytest.fixture
def nursery() -> Iterator[Nursery]:
    nursery = Nursery()
    yield nursery
    nursery.close()


async def test_each_message_is_answered_once_in_order_and_with_the_last_turns(
    tmp_path: Path, nursery: Nursery, database_url: str
):
    found = await talk(SMALL, database_url=database_url, folder=tmp_path, nursery=nursery)

    assert found.faults == [], found.table


async def test_so_it_is_where_redis_remembers(tmp_path: Path, nursery: Nursery, database_url: str):
    async with redis_server.redis_server() as server:
        found = await talk(SMALL, database_url=database_url, folder=tmp_path, nursery=nursery, redis_url=server.url)

    assert found.faults == [], found.table


async def test_so_it_is_where_redis_dies_in_between(tmp_path: Path, nursery: Nursery, database_url: str):
    async with redis_server.redis_server() as server:
        found = await talk(
            Talk(people=4, messages=4, kill_every=None, spread=1.5, budget=1),
            database_url=database_url,
            folder=tmp_path,
            nursery=nursery,
            redis_url=server.url,
            in_between=server.kill,
        )

    # What only Redis knew is gone with it; nobody is left without an answer, nor gets two.
    assert [fault for fault in found.faults if "right last turns" not in fault] == [], found.table
