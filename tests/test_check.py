from __future__ import annotations

from pathlib import Path

import asyncpg
import pytest

from app import check, settings

NOWHERE = "postgres://app:s3cr3t@127.0.0.1:1/name"

CONFIGURATION = """
[sources.board]
kind = "feed"
url = "https://board.example/feed.xml?key=s3cr3t"
every_minutes = 30

[recipients.me]
channel = "inbox"

[subscriptions.gigs]
to = ["me"]
"""

BROKEN_HANDLER = "from pydantic import BaseModel\nclass Payload(BaseModel): ...\n"


@pytest.fixture
def environ(tmp_path: Path, database_url: str) -> dict[str, str]:
    (tmp_path / "wakebell.toml").write_text(CONFIGURATION)
    return {
        "DATABASE_URL": database_url,
        "CRON_SECRET": "a-cron-secret-of-thirty-characters",
        "WAKEBELL_CONFIG": str(tmp_path / "wakebell.toml"),
    }


async def test_what_is_configured_is_told_without_secrets(environ: dict[str, str]):
    found = await check.run(environ)

    assert found.problems == []
    assert "source board: feed, every 30 minutes" in found.lines
    assert "channel inbox: inbox" in found.lines
    assert "recipient me: by inbox" in found.lines
    assert "subscription gigs: to me" in found.lines
    assert found.lines[-1] == "everything is in order"
    assert "s3cr3t" not in str(found)


async def test_filters_are_told_and_those_that_can_never_match_are_no_problem(environ: dict[str, str], tmp_path: Path):
    more = """
[sources.api]
kind = "json"
url = "https://api.example"
title = "name"
fields = { pay = "salary" }

[subscriptions.paid]
sources = ["api"]
regex = ["py+"]
min = { pay = 500 }
max = { pay = 400 }

[subscriptions.feeds]
sources = ["board"]
fields = { company = ["Acme"] }
"""
    (tmp_path / "wakebell.toml").write_text(CONFIGURATION + more)

    found = await check.run(environ)

    assert found.problems == []
    assert [line for line in found.lines if line.startswith(("subscription paid", "subscription feeds"))] == [
        "subscription paid: to inbox; of api; where a pattern finds something: py+; pay at least 500; pay at most 400",
        "subscription paid: wants pay at least 500 and at most 400: no number is, only a range that reaches over both",
        'subscription feeds: to inbox; of board; company is any of "Acme"',
        'subscription feeds: can never match: no source of it has a field "company"',
    ]


async def test_a_source_that_tells_nothing_is_told_and_is_no_problem(environ: dict[str, str], database_url: str):
    fingerprint = settings.load(environ).sources["board"].fingerprint
    connection = await asyncpg.connect(database_url)
    await connection.execute(
        "INSERT INTO wakebell.sources (name, fingerprint, every_seconds, due_at, primed_at, state, empty_rounds) "
        "VALUES ('board', $1, 1800, now(), now(), 'blind', 3)",
        fingerprint,
    )
    await connection.close()

    found = await check.run(environ)

    assert found.problems == []
    [told] = [line for line in found.lines if line.startswith("source board is ")]
    assert told.startswith("source board is blind: it has listed nothing for 3 rounds in a row")


async def test_who_is_told_nothing_now_is_named(environ: dict[str, str], database_url: str):
    configured = settings.load(environ)
    me = configured.recipients["me"]
    connection = await asyncpg.connect(database_url)
    await connection.execute(
        "INSERT INTO wakebell.recipients (address, name, channel, blocked_at) VALUES ($1, 'me', $2, now())",
        *(settings.address_of(configured, me), me.channel),
    )
    await connection.close()

    found = await check.run(environ)

    assert found.problems == []
    assert "recipient me is told nothing now" in {line.partition(":")[0] for line in found.lines}


async def test_problems_of_every_kind_are_told_together(environ: dict[str, str], tmp_path: Path):
    (tmp_path / "handlers").mkdir()
    (tmp_path / "handlers" / "greet.py").write_text(BROKEN_HANDLER)
    (tmp_path / "handlers" / "broken.py").write_text("import nothing_of_the_kind")

    found = await check.run(
        environ | {"DATABASE_URL": f"{NOWHERE}?one=1&sslmode=x", "MIGRATION_DATABASE_URL": "mysql://x"},
    )

    told = "\n".join(found.problems)
    for words in ("broken.py", 'the key "one"', 'sslmode "x"', "MIGRATION_DATABASE_URL: "):
        assert words in told
    assert len(found.problems) == len(set(found.problems))
    assert "everything is in order" not in found.lines


async def test_a_handler_that_is_none_is_told(environ: dict[str, str], tmp_path: Path):
    (tmp_path / "handlers").mkdir()
    (tmp_path / "handlers" / "greet.py").write_text(BROKEN_HANDLER)

    found = await check.run(environ)

    assert found.problems == [
        "handlers/greet.py: needs `async def handle(payload, ctx)`, or `def` for work that blocks"
    ]


async def test_a_configuration_that_is_wrong_does_not_hide_the_database(environ: dict[str, str]):
    found = await check.run(environ | {"CRON_SECRET": "", "DATABASE_URL": NOWHERE})

    assert len(found.problems) == 2
    assert found.problems[0].startswith("CRON_SECRET: is empty")
    assert found.problems[1].startswith("DATABASE_URL: the database 127.0.0.1/name could not be reached")
    assert "s3cr3t" not in str(found.problems)


@pytest.mark.parametrize(
    ("statement", "problem"),
    [
        ("UPDATE wakebell.alembic_version SET version_num = '0000'", "is behind"),
        ("DROP SCHEMA wakebell CASCADE", "is missing"),
    ],
)
async def test_a_schema_that_is_not_there_yet_is_told(
    environ: dict[str, str], database_url: str, statement: str, problem: str
):
    connection = await asyncpg.connect(database_url)
    await connection.execute(statement)
    await connection.close()

    found = await check.run(environ)

    assert found.problems == [f"the database's schema {problem}; {check.MIGRATE}"]
    assert "run `wakebell migrate`, or set AUTO_MIGRATE=1" in check.MIGRATE

    found = await check.run({**environ, "AUTO_MIGRATE": "1"})

    assert not found.problems
    state = problem.removeprefix("is ")
    assert f"schema: {state}, and brought up by the first start or tick (AUTO_MIGRATE)" in found.lines
    assert found.lines[-1] == "everything is in order"


async def test_what_is_said_of_a_schema_that_will_do(environ: dict[str, str], database_url: str):
    found = await check.run({**environ, "AUTO_MIGRATE": "1"})

    assert "schema: brought up by whoever finds it behind (AUTO_MIGRATE)" in found.lines

    connection = await asyncpg.connect(database_url)
    await connection.execute("UPDATE wakebell.alembic_version SET version_num = '9999'")
    await connection.close()

    assert "schema: ahead of this release, which works with it" in (await check.run(environ)).lines


async def test_a_server_that_is_too_old_is_told(environ: dict[str, str], monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("app.stores.schema.OLDEST_SERVER", 99)

    [problem] = (await check.run(environ)).problems

    assert "is too old: this release needs PostgreSQL 99 or newer" in problem


async def test_a_database_that_cannot_keep_every_name_is_told(environ: dict[str, str], ascii_database_url: str):
    found = await check.run({**environ, "DATABASE_URL": ascii_database_url})

    [problem] = found.problems
    assert "encoding is SQL_ASCII" in problem


async def test_what_can_never_match_is_not_in_order(environ: dict[str, str], tmp_path: Path):
    (tmp_path / "wakebell.toml").write_text(CONFIGURATION + "min = { budget = 500 }\n")

    found = await check.run(environ)

    assert not found.problems
    assert found.lines[-1] == "it will start; 1 of the lines above says what can never match"


async def test_a_check_writes_nothing(environ: dict[str, str], database_url: str):
    await check.run(environ)

    connection = await asyncpg.connect(database_url)
    rows = await connection.fetchval(
        "SELECT (SELECT count(*) FROM wakebell.ticks) + (SELECT count(*) FROM wakebell.jobs) "
        "+ (SELECT count(*) FROM wakebell.sources)",
    )
    await connection.close()
    assert rows == 0


async def test_what_was_found_before_comes_first(environ: dict[str, str]):
    found = await check.run({**environ, "DATABASE_URL": ""}, ["no embedded PostgreSQL"])

    assert found.problems[0] == "no embedded PostgreSQL"
    assert found.problems[1].startswith("DATABASE_URL: is not set")


HANDLER = "from pydantic import BaseModel\nclass Payload(BaseModel): ...\nasync def handle(payload, ctx): ...\n"


async def test_handlers_that_were_found_are_named(environ: dict[str, str], tmp_path: Path):
    (tmp_path / "handlers").mkdir()
    (tmp_path / "handlers" / "greet.py").write_text(HANDLER)

    found = await check.run(environ)

    assert "handler greet: handlers/greet.py" in found.lines


async def test_handlers_are_told_in_one_style(environ: dict[str, str], tmp_path: Path):
    (tmp_path / "handlers").mkdir()
    (tmp_path / "handlers" / "send-Mail.py").write_text(HANDLER)

    wrong_name = (await check.run(environ)).problems
    (tmp_path / "handlers" / "broken.py").write_text("import nothing_of_the_kind")
    broken = (await check.run(environ)).problems

    assert wrong_name == [
        "handlers/send-Mail.py: the name is that of the job type: lower-case letters, digits and _; rename the file"
    ]
    assert broken[0].startswith("handlers/broken.py: cannot be imported: ModuleNotFoundError")


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "[::1]"])
async def test_a_source_that_no_host_finds_is_no_problem_but_told(environ: dict[str, str], tmp_path: Path, host: str):
    (tmp_path / "wakebell.toml").write_text(f'[sources.gigs]\nkind = "feed"\nurl = "http://{host}:8099/gigs.xml"\n')

    found = await check.run(environ)

    assert found.problems == []
    assert any(line.startswith("source gigs: is on this machine alone") for line in found.lines)


async def test_without_the_database_the_rest_is_looked_at(environ: dict[str, str]):
    found = await check.run({**environ, "DATABASE_URL": "", "CRON_SECRET": ""}, database=False)

    assert [problem.partition(":")[0] for problem in found.problems] == ["CRON_SECRET"]
