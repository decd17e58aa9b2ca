from __future__ import annotations

import logging
from datetime import timedelta

import asyncpg
import pytest

from app.context import Context
from app.domain.errors import PermanentFailure, TemporaryFailure
from app.domain.items import Fetched, Item, Unchanged
from app.plans import sources as plan
from tests.fakes.batches import seen
from tests.handlers.conftest import Run, Source


def items(*titles: str) -> tuple[Item, ...]:
    return tuple(Item(key=title, title=title) for title in titles)


async def planned(ctx: Context, sql: asyncpg.Connection) -> None:
    await sql.execute("UPDATE wakebell.sources SET due_at = now()")
    await plan.plan(ctx, await seen(ctx))


async def test_the_first_round_is_silent_and_the_next_one_tells(
    ctx: Context, sql: asyncpg.Connection, source: Source, run: Run
):
    source.answer = Fetched(items=items("old"), etag='"1"', last_modified="Mon")
    await planned(ctx, sql)
    assert (await run("fetch_source"))["status"] == "done"
    source.answer = Fetched(items=items("old", "python gig"), etag='"2"')
    await planned(ctx, sql)
    assert (await run("fetch_source"))["status"] == "done"

    told = ctx.tally
    assert (told["sources.fetched"], told["sources.primed"]) == (2, 1)
    assert (told["sources.new_items"], told["sources.matched_items"]) == (2, 1)
    owed = await sql.fetch("SELECT recipient, subscriptions FROM wakebell.owed ORDER BY recipient")
    assert [tuple(row) for row in owed] == [("inbox", '["all"]'), ("me", '["all", "python"]')]
    [note] = await sql.fetch("SELECT recipient, text FROM wakebell.messages")
    assert note["recipient"] == "inbox"
    assert "board" in note["text"]
    assert "1" in note["text"]
    first, second = source.readings
    assert (first.etag, first.last_modified) == (None, None)
    assert (second.etag, second.last_modified) == ('"1"', "Mon")
    assert second.source == "board"


async def test_what_is_odd_about_a_source_is_loud_in_its_first_round_and_logged_in_each(
    ctx: Context, sql: asyncpg.Connection, source: Source, run: Run, caplog: pytest.LogCaptureFixture
):
    caplog.set_level(logging.INFO, logger="app")
    source.answer = Fetched(items=items("old"), warnings=("the feed is not well-formed",))
    for _ in range(2):
        await planned(ctx, sql)
        await run("fetch_source")

    odd = [record for record in caplog.records if record.getMessage() == "source odd but readable"]
    assert [record.levelno for record in odd] == [logging.WARNING, logging.INFO]
    assert {(vars(record)["source"], *vars(record)["warnings"]) for record in odd} == {
        ("board", "the feed is not well-formed")
    }
    assert ctx.tally.status == "ok"


async def test_an_unchanged_source_is_counted_as_such(ctx: Context, sql: asyncpg.Connection, source: Source, run: Run):
    source.answer = Unchanged()
    await planned(ctx, sql)

    assert (await run("fetch_source"))["status"] == "done"

    assert (ctx.tally["sources.unchanged"], ctx.tally["sources.fetched"]) == (1, 0)
    assert await sql.fetchval("SELECT primed_at FROM wakebell.sources") is None


@pytest.mark.parametrize("failure", [TemporaryFailure("board.example answered 503"), PermanentFailure("gone")])
async def test_a_source_that_fails_is_named_and_tried_again(
    ctx: Context, sql: asyncpg.Connection, source: Source, run: Run, failure: Exception
):
    source.answer = failure
    await planned(ctx, sql)

    row = await run("fetch_source")

    assert (row["status"], row["last_error"]) == ("cancelled", str(failure))
    wait = await sql.fetchval("SELECT retry_at - now() FROM wakebell.sources")
    assert timedelta(seconds=50) < wait <= timedelta(minutes=1)
    assert (ctx.tally["sources.failed"], ctx.tally.errors) == (1, ["source board failed"])
    assert await sql.fetchval("SELECT failures FROM wakebell.sources") == 1
    assert await sql.fetchval("SELECT primed_at FROM wakebell.sources") is None


async def test_a_kinds_bug_is_a_round_that_failed(ctx: Context, sql: asyncpg.Connection, source: Source, run: Run):
    source.answer = KeyError("bug")
    await planned(ctx, sql)

    row = await run("fetch_source")

    assert (row["status"], row["last_error"]) == ("cancelled", "KeyError: 'bug'")
    assert await sql.fetchval("SELECT failures FROM wakebell.sources") == 1
    assert ctx.tally.status == "partial"


async def test_a_source_that_is_configured_no_longer_is_not_fetched(
    ctx: Context, sql: asyncpg.Connection, source: Source, run: Run
):
    await planned(ctx, sql)
    await sql.execute("""UPDATE wakebell.jobs SET payload = '{"source": "gone"}'""")

    row = await run("fetch_source")

    assert row["status"] == "cancelled"
    assert 'no source "gone"' in row["last_error"]
    assert source.readings == []
    assert ctx.tally.status == "ok"


async def test_a_replica_with_another_configuration_leaves_it_to_the_newer_one(
    ctx: Context, sql: asyncpg.Connection, source: Source, run: Run
):
    await planned(ctx, sql)
    await sql.execute("UPDATE wakebell.sources SET fingerprint = 'another'")

    row = await run("fetch_source")

    assert row["status"] == "cancelled"
    assert await sql.fetchval("SELECT retry_at - now() FROM wakebell.sources") > timedelta(seconds=50)
    assert source.readings == []
    assert ctx.tally.status == "ok"


async def test_a_round_that_outlived_its_lease_is_stored_by_whoever_has_it_now(
    ctx: Context, sql: asyncpg.Connection, source: Source, run: Run
):
    source.answer = Fetched(items=items("a"))
    await planned(ctx, sql)
    await sql.execute(
        "CREATE FUNCTION public.steal() RETURNS trigger LANGUAGE plpgsql AS "
        "$$ BEGIN NEW.lease_token := 7; RETURN NEW; END $$",
    )
    await sql.execute(
        "CREATE TRIGGER steal BEFORE UPDATE ON wakebell.jobs FOR EACH ROW WHEN (NEW.status = 'running') "
        "EXECUTE FUNCTION public.steal()",
    )

    row = await run("fetch_source")

    assert row["status"] == "running"
    assert await sql.fetchval("SELECT count(*) FROM wakebell.items") == 0
    assert ctx.tally["sources.fetched"] == 0
