"""What Redis remembers of conversations, on a real one."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta

import pytest
from redis.asyncio import Redis

from app.clients import recall
from app.clients.recall import Recall
from app.domain.conversations import Side, Turn
from app.domain.errors import MemoryUnavailable
from tests.fakes.redis_server import NEEDED, PROGRAM, RedisServer, redis_server

pytestmark = pytest.mark.skipif(PROGRAM is None, reason=NEEDED)

NOON = datetime(2026, 12, 1, 12, tzinfo=UTC)
WEEK = timedelta(days=7)


def turn(number: int, side: Side = "person") -> Turn:
    return Turn(mark=f"e{number}:{side}", side=side, text=f"ที่ {number}", at=NOON + timedelta(minutes=number))


@pytest.fixture
async def server() -> AsyncIterator[RedisServer]:
    async with redis_server() as server:
        yield server


@pytest.fixture
async def memory(server: RedisServer) -> AsyncIterator[Recall]:
    async with recall.opened(server.url, prefix="wakebell:", keep=WEEK) as memory:
        yield memory


async def test_the_last_turns_are_remembered_in_their_order(memory: Recall):
    turns = [turn(number) for number in range(20)]
    for one in turns:
        await memory.add("line", "U1", [one, turn(1)], most=12)

    assert (await memory.last("line", "U1", most=12))[-5:] == turns[-5:]
    assert len(await memory.last("line", "U1", most=50)) == 12
    assert await memory.last("line", "U1", most=1) == turns[-1:]
    assert await memory.last("line", "U2", most=12) == []
    assert await memory.last("page", "U1", most=12) == []


async def test_a_turn_that_is_told_again_is_remembered_once(memory: Recall):
    for _ in range(3):
        await memory.add("line", "U1", [turn(1), turn(1, "service")], most=12)

    assert await memory.last("line", "U1", most=12) == [turn(1), turn(1, "service")]


async def test_copies_at_once_are_remembered_once(memory: Recall):
    await asyncio.gather(*(memory.add("line", "U1", [turn(1), turn(2)], most=12) for _ in range(50)))

    assert await memory.last("line", "U1", most=12) == [turn(1), turn(2)]


async def test_an_event_is_known_once_it_is_confirmed(memory: Recall):
    assert await memory.answered("line", ["a", "b"]) == set()

    await memory.confirm("line", "a")

    assert await memory.answered("line", ["a", "b"]) == {"a"}
    assert await memory.answered("page", ["a"]) == set()
    assert await memory.answered("line", []) == set()


async def test_everything_expires(memory: Recall, server: RedisServer):
    await memory.add("line", "U1", [turn(1)], most=12)
    await memory.confirm("line", "a")

    async with Redis.from_url(server.url, decode_responses=True) as client:
        keys = await client.keys("*")
        lives = [await client.pttl(key) for key in keys]

    assert sorted(keys) == ["wakebell:answered:line:a", "wakebell:turns:line:U1"]
    assert all(0 < life <= WEEK.total_seconds() * 1000 for life in lives)


async def test_where_nothing_is_to_be_remembered_nothing_is(memory: Recall):
    await memory.add("line", "U1", [turn(1)], most=0)

    assert await memory.last("line", "U1", most=0) == []
    assert await memory.last("line", "U1", most=12) == []


async def test_one_that_is_gone_is_told_without_its_address(memory: Recall, server: RedisServer):
    server.kill()

    for asked in (memory.last("line", "U1", most=1), memory.confirm("line", "a"), memory.answered("line", ["a"])):
        with pytest.raises(MemoryUnavailable, match=r"^REDIS_URL: the server could not be asked \(\w+\)$"):
            await asked


async def test_one_that_comes_back_is_used_again(memory: Recall, server: RedisServer):
    await memory.add("line", "U1", [turn(1)], most=12)
    server.kill()
    await server.start()

    await memory.add("line", "U1", [turn(2)], most=12)

    assert await memory.last("line", "U1", most=12) == [turn(2)]


async def test_what_somebody_else_has_put_there_is_passed_over(memory: Recall, server: RedisServer):
    async with Redis.from_url(server.url) as client:
        await client.rpush(
            "wakebell:turns:line:U1",
            b"garbage",
            b"[1]",
            b"{}",
            b'["a", "odd", "b", "2026-12-01T00:00:00Z"]',
            b'["a", "person", "b", 7]',
            b"\xff",
        )

    await memory.add("line", "U1", [turn(1)], most=12)

    assert await memory.last("line", "U1", most=12) == [turn(1)]
