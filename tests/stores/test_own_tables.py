"""Queries of users', against tables that are not the service's."""

from __future__ import annotations

from datetime import UTC, datetime, time, timedelta
from urllib.parse import urlsplit

import asyncpg
import pytest
from sqlalchemy import text

from app.domain import own_rows
from app.domain.bookings import Rule
from app.domain.errors import QueryFailure
from app.stores import own_tables
from app.stores.database import Database, connect, rows
from app.stores.own_tables import MOST, OwnTables
from app.stores.reminders import Asked, Reminders

DAY_BEFORE = Rule(name="day_before", before=timedelta(hours=24))
HOUR_BEFORE = Rule(name="hour_before", before=timedelta(hours=1))
RULES = [DAY_BEFORE, HOUR_BEFORE]

SHOP = """
CREATE SCHEMA shop;
CREATE TABLE shop.visits (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name text, begins timestamptz NOT NULL, who text DEFAULT 'me', whole_day boolean DEFAULT false,
    zone text, cancelled boolean DEFAULT false
);
CREATE INDEX visits_begins_idx ON shop.visits (begins);
"""
QUERY = """
SELECT id AS ref, name AS title, begins AS starts_at, zone AS timezone, who AS "to", whole_day AS all_day
FROM shop.visits WHERE NOT cancelled  -- a comment, and a :colon
"""
ADD = "INSERT INTO shop.visits (name, begins) VALUES ($1, now() + $2) RETURNING id, begins"
SETTING = text("SELECT current_setting('transaction_read_only') AS read_only")
MARK = "INSERT INTO wakebell.reminders (booking, reminder, starts_at, message_id) VALUES ($1, $2, $3, $4)"


@pytest.fixture
async def tables(database: Database, sql: asyncpg.Connection) -> OwnTables:
    await sql.execute(SHOP)
    return OwnTables(database)


async def add(sql: asyncpg.Connection, hours: float, name: str = "visit") -> tuple[str, datetime]:
    row = await sql.fetchrow(ADD, name, timedelta(hours=hours))
    return str(row["id"]), row["begins"]


async def test_what_is_due_is_found_and_what_begins_later_is_waited_for(tables: OwnTables, sql: asyncpg.Connection):
    await add(sql, -1)
    ref, begins = await add(sql, 12)
    _, later = await add(sql, 30)

    found = await tables.due(QUERY, RULES)

    assert [(row.ref, row.starts_at, row.all_day, row.timezone) for row in found.rows] == [(ref, begins, False, None)]
    assert found.next_at == min(begins - timedelta(hours=1), later - timedelta(hours=24))


async def test_a_start_without_end_breaks_nothing(tables: OwnTables, sql: asyncpg.Connection):
    await sql.execute("INSERT INTO shop.visits (name, begins) VALUES ('a', 'infinity'), ('b', '-infinity')")

    found = await tables.due(QUERY, RULES)

    assert found.rows == ()
    assert found.next_at is not None
    assert found.next_at > found.now


async def test_no_row_is_nothing_due(tables: OwnTables):
    found = await tables.due(QUERY, RULES)

    assert (found.rows, found.next_at) == ((), None)


@pytest.mark.parametrize(
    ("hours", "reminder", "due"),
    [(12, "day_before", False), (12, "other", True), (0.5, "hour_before", False), (0.5, "day_before", True)],
)
async def test_the_reminder_that_fell_due_last_is_told_once(
    tables: OwnTables, sql: asyncpg.Connection, hours: float, reminder: str, *, due: bool
):
    ref, begins = await add(sql, hours)
    await sql.execute(MARK, ref, reminder, begins, 1)

    assert bool((await tables.due(QUERY, RULES)).rows) is due


async def test_a_start_that_has_moved_is_due_again(tables: OwnTables, sql: asyncpg.Connection):
    ref, begins = await add(sql, 12)
    await sql.execute(MARK, ref, "day_before", begins, 1)
    await sql.execute("UPDATE shop.visits SET begins = begins + interval '1 hour'")

    assert [row.ref for row in (await tables.due(QUERY, RULES)).rows] == [ref]
    assert await tables.find(QUERY, ref, begins, zone="UTC") is None


async def test_an_all_day_row_is_found_until_its_hour_has_passed(tables: OwnTables, sql: asyncpg.Connection):
    await add(sql, -2)
    await sql.execute("UPDATE shop.visits SET whole_day = true")
    evening = Rule(name="evening", before=timedelta(hours=1), all_day_at=time(23))
    morning = Rule(name="morning", before=timedelta(hours=1), all_day_at=time(2))

    found = [(await tables.due(QUERY, [rule])).rows for rule in (evening, morning)]

    assert [len(rows) for rows in found] == [0, 1]


async def test_one_row_is_read_with_what_was_told_of_it(tables: OwnTables, sql: asyncpg.Connection):
    ref, begins = await add(sql, 12, "ตัดผม")
    await sql.execute("UPDATE shop.visits SET zone = 'Asia/Bangkok'")
    await sql.execute(MARK, ref, "day_before", begins, 1)
    await sql.execute(MARK, ref, "given_up", begins, None)

    found = await tables.find(QUERY, ref, begins, zone="UTC")

    assert found is not None
    assert (found.booking.ref, found.booking.title, found.booking.recipient) == (ref, "ตัดผม", "me")
    assert (found.booking.timezone, found.booking.start.at) == ("Asia/Bangkok", begins)
    assert found.told == {"day_before"}


async def test_a_channel_and_an_address_name_somebody_too(tables: OwnTables, sql: asyncpg.Connection):
    ref, begins = await add(sql, 12)
    query = "SELECT id AS ref, name AS title, begins AS starts_at, 'line' AS channel, 'U1' AS address FROM shop.visits"

    found = await tables.find(query, ref, begins, zone="Asia/Bangkok")

    assert found is not None
    booking = found.booking
    assert (booking.recipient, booking.channel, booking.address, booking.timezone) == (
        None,
        "line",
        "U1",
        "Asia/Bangkok",
    )


async def test_a_tick_takes_a_bounded_number_of_rows(tables: OwnTables, sql: asyncpg.Connection):
    await sql.execute(
        "INSERT INTO shop.visits (name, begins) "
        "SELECT 'v', now() + make_interval(secs => n) FROM generate_series(600, 600 + $1) AS n",
        MOST,
    )

    assert len((await tables.due(QUERY, RULES)).rows) == MOST


MANY = "INSERT INTO shop.visits (name, begins) SELECT $1, now() + $2 FROM generate_series(1, $3)"


async def test_starts_that_a_job_is_about_to_tell_hide_nobody(
    tables: OwnTables, database: Database, sql: asyncpg.Connection
):
    await sql.execute(MANY, "held", timedelta(hours=10), MOST)
    ref, begins = await add(sql, 11)
    held = [
        Asked(booking=row.ref, starts_at=row.starts_at, reminder="day_before", origin="day_before")
        for row in (await tables.due(QUERY, RULES)).rows
    ]
    await Reminders(database).queue(held)

    found = await tables.due(QUERY, RULES)

    assert (len(held), [(row.ref, row.starts_at) for row in found.rows]) == (MOST, [(ref, begins)])


@pytest.mark.parametrize(
    ("ref", "unnamed", "overlong"),
    [("CASE WHEN name = 'odd' THEN NULL ELSE id END", MOST, 0), ("repeat(name, 70)", 0, 1)],
)
async def test_rows_without_a_name_that_can_be_kept_hide_nobody_and_are_counted(
    tables: OwnTables, sql: asyncpg.Connection, ref: str, unnamed: int, overlong: int
):
    await sql.execute(MANY, "odd" if unnamed else "long", timedelta(hours=10), unnamed or overlong)
    await add(sql, 11, "ok")
    query = f'SELECT {ref} AS ref, name AS title, begins AS starts_at, who AS "to" FROM shop.visits'

    found = await tables.due(query, RULES)

    assert (len(found.rows), found.unnamed, found.overlong) == (1, unnamed, overlong)


@pytest.mark.parametrize(("hours", "all_day_at"), [(-2, time(0)), (-0.5, time(0)), (21.5, time(3))])
async def test_all_day_rows_whose_hour_has_passed_or_not_come_hide_nobody(
    tables: OwnTables, sql: asyncpg.Connection, hours: float, all_day_at: time
):
    await sql.execute(MANY, "over", timedelta(hours=hours), MOST)
    await sql.execute("UPDATE shop.visits SET whole_day = true")
    ref, _ = await add(sql, 23)

    found = await tables.due(QUERY, [Rule(name="day_before", before=timedelta(hours=24), all_day_at=all_day_at)])

    assert ref in {row.ref for row in found.rows}


async def test_those_of_some_starts_that_are_still_there_are_told(tables: OwnTables, sql: asyncpg.Connection):
    stays, moves, goes = [await add(sql, hours) for hours in (10, 11, 12)]
    await sql.execute("UPDATE shop.visits SET begins = begins + interval '1 minute' WHERE id = 2")
    await sql.execute("DELETE FROM shop.visits WHERE id = 3")

    assert await tables.standing(QUERY, [stays, moves, goes]) == {stays}


@pytest.mark.parametrize("written", ["now()::timestamp + interval '1 hour'", "current_date + 1"])
@pytest.mark.parametrize("rows", ["true", "false"])
async def test_starts_without_a_zone_are_refused_with_the_remedy(tables: OwnTables, written: str, rows: str):
    query = f"SELECT 'e' AS ref, 't' AS title, {written} AS starts_at, 'me' AS \"to\" WHERE {rows}"

    with pytest.raises(QueryFailure, match="it must be a timestamptz, such as"):
        await tables.due(query, RULES)


@pytest.mark.direct
async def test_what_a_query_leaves_behind_on_its_connection_ends_with_it(
    tables: OwnTables, database: Database, sql: asyncpg.Connection
):
    query = (
        "SELECT 'e' AS ref, 't' AS title, now() + interval '1 hour' AS starts_at, 'me' AS \"to\" "
        "WHERE set_config('default_transaction_read_only', 'on', false) IS NOT NULL "
        "AND pg_advisory_lock(7) IS NOT NULL"
    )

    assert len((await tables.due(query, RULES)).rows) == 1

    await sql.execute("SET lock_timeout = '10s'; SELECT pg_advisory_lock(7)")
    async with database.transaction() as first, database.transaction() as second:
        for db in (first, second):
            assert [[*row.values()] for row in await rows(db, SETTING)] == [["off"]]


async def test_a_query_that_ends_its_connection_is_a_query_that_failed(tables: OwnTables, database: Database):
    query = (
        "SELECT pg_terminate_backend(pg_backend_pid())::text AS ref, 't' AS title, "
        "now() + interval '1 hour' AS starts_at, 'me' AS \"to\""
    )

    with pytest.raises(QueryFailure, match="the connection to the database was lost while it ran"):
        await tables.due(query, RULES)

    assert (await database.fetch(SETTING))[0]["read_only"] == "off"


async def test_a_hundred_thousand_rows_are_read_by_the_users_index(tables: OwnTables, sql: asyncpg.Connection):
    await sql.execute(
        "INSERT INTO shop.visits (name, begins) "
        "SELECT 'v', now() + make_interval(hours => n / 10 - 5000) FROM generate_series(1, 100000) AS n"
    )
    await sql.execute("ANALYZE shop.visits")

    found = await tables.due(QUERY, RULES)
    scans = await sql.fetchval("SELECT seq_scan FROM pg_stat_user_tables WHERE relname = 'visits'")
    await tables.due(QUERY, RULES)

    assert len(found.rows) == 240
    assert await sql.fetchval("SELECT seq_scan FROM pg_stat_user_tables WHERE relname = 'visits'") == scans


@pytest.mark.parametrize(
    ("query", "told"),
    [
        ("SELECT * FROM shop.nothing", "write the table's schema before its name"),
        ("SELECT nothing FROM shop.visits", 'column "nothing" does not exist'),
        ("SELECT 1 AS ref", "starts_at"),
        ("SELEKT", "syntax error"),
        (f"{QUERY}; SELECT 1", "more than one statement"),
        ("SELECT 1) AS booking; DELETE FROM shop.visits; SELECT (1", "more than one statement"),
        ("WITH gone AS (DELETE FROM shop.visits RETURNING *) SELECT id AS ref, begins AS starts_at FROM gone", "WITH"),
        (
            "SELECT nextval('shop.visits_id_seq') AS ref, begins AS starts_at, 'x' AS title FROM shop.visits",
            "it writes",
        ),
        (
            "SELECT 1 AS ref, now() AS starts_at WHERE set_config('transaction_read_only', 'off', true) IS NOT NULL",
            "read-write mode",
        ),
    ],
)
async def test_a_query_that_cannot_be_used_is_told_and_changes_nothing(
    tables: OwnTables, sql: asyncpg.Connection, query: str, told: str
):
    await add(sql, 12)

    with pytest.raises(QueryFailure, match=told):
        await tables.due(query, RULES)

    assert await sql.fetchval("SELECT count(*) FROM shop.visits") == 1


async def test_a_query_that_takes_too_long_is_cut(
    tables: OwnTables, sql: asyncpg.Connection, monkeypatch: pytest.MonkeyPatch
):
    await add(sql, 12)
    monkeypatch.setattr(own_tables, "READ_ONLY", text(own_tables.READ_ONLY.text.replace("'3s'", "'50ms'")))

    with pytest.raises(QueryFailure, match="it took longer than 3 seconds; give starts_at an index"):
        await tables.due("SELECT id AS ref, begins AS starts_at FROM shop.visits, pg_sleep(9)", RULES)


@pytest.mark.direct
async def test_a_table_that_may_not_be_read_is_told_with_the_remedy(
    tables: OwnTables, database_url: str, sql: asyncpg.Connection
):
    role = f"reader_{urlsplit(database_url).path.lstrip('/')}"
    await sql.execute(f"CREATE ROLE {role} LOGIN PASSWORD 'secret'")
    try:
        stranger = connect(urlsplit(database_url)._replace(netloc=netloc(database_url, role)).geturl())
        with pytest.raises(QueryFailure, match="may not read that; GRANT SELECT on it"):
            await OwnTables(stranger).columns("SELECT * FROM shop.visits")
        await stranger.dispose()
    finally:
        await sql.execute(f"DROP ROLE {role}")


def netloc(url: str, role: str) -> str:
    return f"{role}:secret@{urlsplit(url).netloc.rpartition('@')[2]}"


async def test_columns_are_told_with_their_types_and_no_row_is_read(tables: OwnTables, sql: asyncpg.Connection):
    await add(sql, 12)

    columns = await tables.columns(f"{QUERY} AND 1 / (id - id) = 1".replace("-- a comment, and a :colon", ""))

    assert columns == {
        "ref": "int8",
        "title": "text",
        "starts_at": "timestamptz",
        "timezone": "text",
        "to": "text",
        "all_day": "bool",
    }
    assert own_rows.faults(columns) == []


async def test_the_transaction_leaves_nothing_behind_on_its_connection(tables: OwnTables, sql: asyncpg.Connection):
    await tables.due(QUERY, RULES)

    assert (await tables._database.fetch(SETTING))[0]["read_only"] == "off"
    now = datetime.now(UTC)
    assert abs((await tables.due(QUERY, RULES)).now - now) < timedelta(minutes=5)
