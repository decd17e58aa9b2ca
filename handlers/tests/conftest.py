import pytest

from app import testing


@pytest.fixture
async def queue():
    async with testing.queue("handlers") as queue:
        yield queue
