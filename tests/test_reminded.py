"""What `wakebell check` says of reminders."""

from __future__ import annotations

from pathlib import Path

import asyncpg
import pytest

from app import check
from tests.fakes.batches import CRON_SECRET

WELL = "SELECT id AS ref, name AS title, begins AS starts_at, 'me' AS \"to\" FROM shop.visits"
REMINDERS = """
[reminders.day_before]
before = "24h"

[reminders.morning]
before = "1h30m"
all_day_at = "07:00"
text = "{{ title }}"

[reminders.shop]
before = "2d"
query = '''%s'''
"""


async def found(database_url: str, folder: Path, query: str = WELL, *, database: bool = True) -> check.Found:
    (folder / "wakebell.toml").write_text(REMINDERS % query)
    environ = {
        "DATABASE_URL": database_url,
        "WAKEBELL_CONFIG": str(folder / "wakebell.toml"),
        "CRON_SECRET": CRON_SECRET,
    }
    return await check.run(environ, database=database)


@pytest.fixture(autouse=True)
async def shop(database_url: str) -> None:
    sql = await asyncpg.connect(database_url)
    await sql.execute(
        "CREATE SCHEMA shop; "
        "CREATE TABLE shop.visits (id bigint, name text, begins timestamptz, day date, at timestamp)"
    )
    await sql.close()


async def test_each_reminder_is_told_in_words(database_url: str, tmp_path: Path):
    told = await found(database_url, tmp_path)

    assert told.problems == []
    assert [line for line in told.lines if line.startswith("reminder")] == [
        "reminder day_before: 24 h before, in the service's words",
        "reminder morning: 1 h 30 min before, in words of its own, of all-day bookings from 07:00",
        "reminder shop: 2 d before, in the service's words, from a table of yours",
    ]


@pytest.mark.parametrize(
    ("query", "told"),
    [
        (WELL.replace("name AS title, ", ""), ["has no column title; add a text, such as name AS title"]),
        (
            WELL.replace(", 'me' AS \"to\"", ""),
            ['has no column to; add a recipient\'s name AS "to" (in double quotes), or the two columns'],
        ),
        (
            WELL.replace("begins", "at"),
            ["gives starts_at as timestamp; it must be a timestamptz, such as day_and_time AT TIME ZONE"],
        ),
        (
            WELL.replace("begins AS", "day AS").replace("'me' AS", "1 AS"),
            [
                "gives starts_at as date; it must be a timestamptz",
                'gives to as int4; cast it: CAST(to AS text) AS "to"',
            ],
        ),
        (WELL.replace("shop.visits", "shop.visit"), ["cannot be run: write the table's schema before its name"]),
        (f"{WELL}; SELECT 1", ["cannot be run: it holds more than one statement; leave one"]),
    ],
)
async def test_a_query_without_what_it_must_give_is_a_problem_that_says_what_to_change(
    database_url: str, tmp_path: Path, query: str, told: list[str]
):
    problems = (await found(database_url, tmp_path, query)).problems

    where = f"{tmp_path / 'wakebell.toml'}: reminders.shop.query: "
    assert len(problems) == len(told)
    for problem, words in zip(problems, told, strict=True):
        assert problem.startswith(where + words)


async def test_without_a_database_no_query_is_looked_at(database_url: str, tmp_path: Path):
    assert (await found(database_url, tmp_path, "SELECT nothing", database=False)).problems == []
