"""What statements read: pages, which are the same on every machine, and the plans of what runs inside functions."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import asyncpg

from app.stores import looks
from tests.stores.test_looks import ABOUT

_LOOK, _NAMES = looks.LOOK.driver

EXPLAINING = """
LOAD 'auto_explain';
SET LOCAL auto_explain.log_min_duration = 0;
SET LOCAL auto_explain.log_analyze = on;
SET LOCAL auto_explain.log_timing = off;
SET LOCAL auto_explain.log_nested_statements = on;
SET LOCAL auto_explain.log_level = notice;
"""
LOOK = (_LOOK, *(looks._params(ABOUT)[name] for name in _NAMES))
"""The statement that a tick begins with and its arguments; an idle tick asks nothing else."""

SCANS = """
SELECT coalesce(sum(seq_scan), 0)::int FROM pg_stat_xact_user_tables
WHERE schemaname = 'wakebell' AND pg_relation_size(relid) > 50 * 8192
"""

ENOUGH = "SET LOCAL auto_explain.log_min_duration = -1"


async def read(sql: asyncpg.Connection, statement: str, *arguments: Any) -> tuple[int, int]:
    """Pages that it reads and whole scans of long tables that it makes, when it is not the first of its session.

    What it has done is taken back.
    """
    transaction = sql.transaction()
    await transaction.start()
    try:
        await sql.execute("SAVEPOINT unread")
        await sql.fetch(statement, *arguments)
        await sql.execute("ROLLBACK TO unread")
        [plan] = json.loads(await sql.fetchval(f"EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) {statement}", *arguments))
        scans = await sql.fetchval(SCANS)
        return pages(plan["Plan"]), scans
    finally:
        await transaction.rollback()


def pages(plan: dict[str, Any]) -> int:
    hit: int = plan["Shared Hit Blocks"]
    return hit + int(plan["Shared Read Blocks"])


def above(read: dict[str, tuple[int, int]], allowed: dict[str, int]) -> dict[str, tuple[int, int]]:
    return {name: (count, scans) for name, (count, scans) in read.items() if count > allowed[name] or scans}


JIT = "\nJIT:"
"""In the text of a plan that was compiled."""


@dataclass(frozen=True, slots=True)
class Plans:
    """The plans of a statement and of all that ran inside of it, as text."""

    inside: list[str]
    outside: str

    @property
    def indexes(self) -> set[str]:
        """Of jobs: those that what ran inside has used."""
        return {name for plan in self.inside for name in re.findall(r"(?:using|Index Scan on) (jobs_\w+)", plan)}

    @property
    def compiled(self) -> list[str]:
        """What ran inside, touched jobs, and was compiled first."""
        return [plan for plan in self.inside if JIT in plan and re.search(r" on jobs\b", plan)]


async def plans(sql: asyncpg.Connection, statement: str, *arguments: Any, settings: Sequence[str] = ()) -> Plans:
    """By the server's auto_explain, which is a superuser's. What the statement has done is taken back."""
    told: list[str] = []

    def listen(_: Any, message: Any) -> None:
        if "Query Text:" in message.message:
            told.append(message.message)

    transaction = sql.transaction()
    await transaction.start()
    sql.add_log_listener(listen)
    try:
        await sql.execute(EXPLAINING + "".join(f"SET LOCAL {setting};" for setting in settings))
        await sql.fetch(statement, *arguments)
        await sql.execute(ENOUGH)  # ends the statement, whose plan is told only then
        await asyncio.sleep(0)  # where the driver calls listeners
    finally:
        sql.remove_log_listener(listen)
        await transaction.rollback()
    [*inside, outside] = told
    assert statement[:100] in outside, "the statement itself is told last"
    return Plans(inside, outside)
