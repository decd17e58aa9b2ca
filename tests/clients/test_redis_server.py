"""A look at a real Redis."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from redis.asyncio import Redis

from app.clients import redis_server as looked
from app.clients.redis_server import Server
from app.domain.findings import Status
from tests.fakes.redis_server import NEEDED, PROGRAM, RedisServer, redis_server


@pytest.fixture
async def server() -> AsyncIterator[RedisServer]:
    if PROGRAM is None:
        pytest.skip(NEEDED)
    async with redis_server() as server:
        yield server


async def told(url: str) -> dict[str, tuple[Status, str]]:
    return {found.name: (found.status, found.sentence) for found in await looked.look(url)}


async def test_a_redis_is_looked_at_and_keeps_what_it_has(server: RedisServer, monkeypatch: pytest.MonkeyPatch):
    async with Redis.from_url(server.url) as client:
        await client.set("somebody's", "value")

        found = await told(server.url)

        assert found[""][0] == "ok"
        assert found[""][1].startswith("Redis ")
        assert found["eviction"] == ("ok", "noeviction: it forgets nothing before its time")
        assert found["clock"][0] == "ok"
        assert await client.keys() == [b"somebody's"]

        await client.config_set("maxmemory-policy", "allkeys-lru")

        status, words = (await told(server.url))["eviction"]
        assert status == "warn"
        assert words.startswith("allkeys-lru: once its memory is full it forgets conversations")
        assert words.endswith("set maxmemory-policy noeviction, or give it a database of its own")

        await client.config_set("requirepass", "the-right-one")

    refused = await told(server.url)
    wrong = await told(server.url.replace("//", "//:the-wrong-one@"))
    for status, words in (refused[""], wrong[""]):
        assert status == "fail"
        assert words.endswith("check user and password in REDIS_URL")
        assert "the-wrong-one" not in words
    monkeypatch.setattr(looked, "SECONDS", 0.3)  # it waits in vain for a greeting that it understands
    by_tls = await told(server.url.replace("redis://", "rediss://"))
    assert by_tls[""][0] == "fail"
    assert "write rediss:// in place of redis://" in by_tls[""][1]

    server.kill()
    assert (await told(server.url))[""] == ("fail", "nobody listens there; check the port, and whether it is up")


@pytest.mark.parametrize(
    ("policy", "limit", "status"),
    [
        ("noeviction", 10**6, "ok"),
        ("", 10**6, "ok"),
        ("volatile-lru", 0, "ok"),
        ("volatile-lru", 10**6, "warn"),  # all that is ours expires
        ("allkeys-lfu", 0, "warn"),
    ],
)
def test_a_server_that_forgets_when_it_is_full_is_told(policy: str, limit: int, status: Status):
    server = Server(
        name="Valkey",
        version="8.1",
        role="slave",
        policy=policy,
        memory_limit=limit,
        ahead_seconds=-3,
        round_trip_ms=1,
    )

    copy, eviction, clock = looked._told(server)

    assert eviction.status == status
    assert copy.sentence == "Valkey 8.1 is a copy, which takes no writes; name its primary in REDIS_URL"
    assert clock.status == "warn"
