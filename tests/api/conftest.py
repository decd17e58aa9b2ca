from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import asyncpg
import pytest
import respx

from tests.api.chatting import providers
from tests.fakes.redis_server import NEEDED, PROGRAM, redis_server


@pytest.fixture(params=["postgres", pytest.param("redis", marks=pytest.mark.skipif(PROGRAM is None, reason=NEEDED))])
async def memory(request: pytest.FixtureRequest) -> AsyncIterator[dict[str, str]]:
    """What the environment says of where conversations are remembered."""
    if request.param == "postgres":
        yield {}
        return
    async with redis_server() as server:
        yield {"REDIS_URL": server.url}


@pytest.fixture
def provider() -> Iterator[respx.MockRouter]:
    with providers() as router:
        yield router


@pytest.fixture
async def sql(database_url: str) -> AsyncIterator[asyncpg.Connection]:
    connection = await asyncpg.connect(database_url)
    yield connection
    await connection.close()
