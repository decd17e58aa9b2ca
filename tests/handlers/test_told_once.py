"""Whatever a source lists, in whatever order, over rounds that fail, break off or come twice at once: told once each."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any

import asyncpg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from app.context import Context
from app.domain.errors import TemporaryFailure
from app.domain.items import Fetched, Item, Unchanged
from app.plans import sources as plan
from app.stores import items as store
from tests.fakes.batches import seen
from tests.handlers.conftest import Run, Source

WORDS = "ash birch cedar dogwood elm fir gum hazel ivy juniper kapok larch maple".split()


def an_item(number: int) -> Item:
    """Known by its id, by its link or by both; titles are few and say nothing."""
    word = WORDS[number]
    identifier = word if number % 3 else ""
    link = f"https://e.test/{word}?utm_source={number}" if number % 3 != 1 else None
    title = f"python {number % 4}"
    return Item(key=identifier or f"https://e.test/{word}", title=title, id=identifier, link=link)


NUMBERS = st.integers(min_value=0, max_value=len(WORDS) - 1)
LISTED = st.lists(NUMBERS, max_size=8)
STEPS = st.lists(
    st.one_of(
        st.tuples(st.sampled_from(["round", "round", "broken off", "twice"]), LISTED),
        st.tuples(st.sampled_from(["failed", "unchanged"]), st.just([])),
    ),
    min_size=3,
    max_size=8,
)


@pytest.mark.timeout(120)
@settings(max_examples=20, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=STEPS)
async def test_every_item_after_the_first_round_is_told_exactly_once(
    ctx: Context,
    sql: asyncpg.Connection,
    source: Source,
    run: Run,
    monkeypatch: pytest.MonkeyPatch,
    steps: list[tuple[str, list[int]]],
):
    await sql.execute("TRUNCATE wakebell.sources, wakebell.items, wakebell.owed, wakebell.messages, wakebell.jobs")
    known: set[int] | None = None
    told: set[int] = set()

    for step, listed in steps:
        source.answer = Fetched(items=tuple(an_item(number) for number in listed))
        if step == "failed":
            source.answer = TemporaryFailure("board.example answered 500")
        if step == "unchanged" and known is not None:
            source.answer = Unchanged()
        await due(ctx, sql)
        if step == "broken off":
            await broken_off(sql, run, monkeypatch)
        elif step == "twice":
            await twice(sql, run)
        else:
            await run("fetch_source")
        if step in {"round", "twice"} or (step == "unchanged" and known is None):
            told |= set() if known is None else set(listed) - known
            known = (known or set()) | set(listed)
    await compose(sql, run)

    expected = Counter({(an_item(number).title, an_item(number).link): 1 for number in told if an_item(number).link})
    expected.update((an_item(number).title, None) for number in told if not an_item(number).link)
    assert Counter(await owed(sql)) == expected
    assert await sent(sql) == Counter(an_item(number).title for number in told)


async def due(ctx: Context, sql: asyncpg.Connection) -> None:
    await sql.execute("UPDATE wakebell.sources SET due_at = now(), retry_at = NULL, fresh_until = NULL")
    await sql.execute("UPDATE wakebell.hosts SET next_at = now(), wait_until = NULL")
    await plan.plan(ctx, await seen(ctx))


async def broken_off(sql: asyncpg.Connection, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """Killed just before its transaction would end; whoever rescues the job ends it."""

    async def killed(*_: Any, **__: Any) -> None:
        raise SystemExit

    with monkeypatch.context() as patched:
        patched.setattr(store.messages, "note_in", killed)
        patched.setattr(store.jobs, "finish_in", killed)
        with pytest.raises(SystemExit):
            await run("fetch_source")
    await sql.execute("UPDATE wakebell.jobs SET status = 'cancelled', finished_at = now() WHERE type = 'fetch_source'")


async def twice(sql: asyncpg.Connection, run: Run) -> None:
    """Two replicas have read it at once."""
    await sql.execute(
        "INSERT INTO wakebell.jobs (type, payload, queue) SELECT type, payload, queue FROM wakebell.jobs "
        "WHERE type = 'fetch_source' AND status = 'pending'"
    )
    await asyncio.gather(run("fetch_source"), run("fetch_source"))


async def compose(sql: asyncpg.Connection, run: Run) -> None:
    while await sql.fetchval(
        "SELECT count(*) FROM wakebell.jobs WHERE type = 'compose_messages' AND status = 'pending'"
    ):
        await run("compose_messages")


async def owed(sql: asyncpg.Connection) -> list[tuple[str, str | None]]:
    query = "SELECT title, link FROM wakebell.owed JOIN wakebell.items ON items.id = item_id WHERE recipient = 'me'"
    return [(row["title"], row["link"]) for row in await sql.fetch(query)]


async def sent(sql: asyncpg.Connection) -> Counter[str]:
    query = "SELECT body FROM wakebell.messages WHERE recipient = 'me' AND kind = 'items'"
    return Counter(title for row in await sql.fetch(query) for title in row["body"].split("|"))
