"""Whatever a source lists, in whatever order, over rounds that fail, break off or come twice: each is told once."""

from __future__ import annotations

import asyncio
import itertools
from collections import Counter
from collections.abc import Sequence
from typing import Any

import asyncpg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from app.domain.items import Item
from app.domain.jobs import Job
from app.stores import items as store
from app.stores.database import Database
from tests.stores.test_items import Board

WORDS = ["ash", "birch", "cedar", "dogwood", "elm", "fir", "gum", "hazel", "ivy", "juniper", "kapok", "larch", "maple"]

NUMBERS = st.integers(min_value=0, max_value=len(WORDS) - 1)
STEPS = st.lists(
    st.tuples(st.sampled_from(["round", "round", "broken off", "twice", "failed"]), st.lists(NUMBERS, max_size=8)),
    min_size=3,
    max_size=8,
)

boards = itertools.count()


def an_item(number: int) -> Item:
    """Known by its id, by its link or by both; titles are few and say nothing."""
    word = WORDS[number]
    identifier = word if number % 3 else ""
    link = f"https://e.test/{word}?utm_source={number}" if number % 3 != 1 else None
    return Item(key=identifier or f"https://e.test/{word}", title=f"Gig {number % 4}", id=identifier, link=link)


@pytest.mark.timeout(180)
@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=STEPS)
async def test_every_item_after_the_first_round_is_owed_exactly_once(
    database: Database, sql: asyncpg.Connection, monkeypatch: pytest.MonkeyPatch, steps: list[tuple[str, list[int]]]
):
    board = Rounds(database, sql, f"board{next(boards)}")
    known: set[int] | None = None
    told: set[int] = set()

    for step, numbers in steps:
        listed = [an_item(number) for number in numbers]
        match step:
            case "failed":
                await board.fail()
            case "broken off":
                await board.break_off(listed, monkeypatch)
            case _:
                await (board.twice(listed) if step == "twice" else board.store(await board.fetch(), listed))
                told |= set() if known is None else set(numbers) - known
                known = (known or set()) | set(numbers)

    assert await board.owed() == Counter(an_item(number).key for number in told)


class Killed(Exception):
    """In the middle of a transaction."""


class Rounds(Board):
    """What befalls a source."""

    token = 0

    async def fetch(self, token: int = 1) -> Job:
        await self.sql.execute("DELETE FROM wakebell.jobs WHERE type <> 'fetch_source' OR status <> 'running'")
        await self.sql.execute("UPDATE wakebell.sources SET due_at = now() + interval '1 day', retry_at = NULL")
        self.token += token
        return await super().fetch(self.token)

    async def fail(self) -> None:
        await self.sources.fail(
            await self.fetch(),
            self.name,
            "feed:1",
            "answered 500",
            host=f"{self.name}.example",
            gap=store.SIGHTING,
            answered=True,
            jitter=0.5,
        )

    async def break_off(self, listed: Sequence[Item], monkeypatch: pytest.MonkeyPatch) -> None:
        """Killed just before its transaction would end; whoever rescues the job ends it."""
        job = await self.fetch()

        async def killed(*_: Any, **__: Any) -> None:
            raise Killed

        with monkeypatch.context() as patched:
            patched.setattr("app.stores.items.jobs.finish_in", killed)
            with pytest.raises(Killed):
                await self.store(job, listed)
        await self.sql.execute("DELETE FROM wakebell.jobs WHERE id = $1", job.id)

    async def twice(self, listed: Sequence[Item]) -> None:
        """Two replicas have read it at once, and not in one order."""
        first = await self.fetch()
        await self.sql.execute("UPDATE wakebell.jobs SET unique_key = 'other' WHERE id = $1", first.id)
        second = await self.fetch()
        await asyncio.gather(self.store(first, listed), self.store(second, listed[::-1]))

    async def owed(self) -> Counter[str]:
        query = (
            "SELECT key FROM wakebell.owed JOIN wakebell.items ON items.id = item_id WHERE source = $1 AND "
            "recipient = 'me'"
        )
        return Counter(row["key"] for row in await self.sql.fetch(query, self.name))
