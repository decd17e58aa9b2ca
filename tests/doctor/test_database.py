"""What is told of a database."""

from __future__ import annotations

from dataclasses import replace

import pytest

from app.doctor import database as looked
from app.domain.errors import DatabaseUnavailable
from app.domain.findings import Finding, Status
from app.stores import database as connecting
from app.stores.database import connect
from app.stores.examination import Between, Examination, Rights, Server, Tls
from app.stores.schema import SchemaState

FAR = connect("postgresql://bell:hunter2-hunter2@db.test/gigs?sslmode=require")
NEAR = connect("postgresql://bell@localhost/gigs")

WELL = Server(
    version_number=160004,
    version="16.4 (Debian 16.4-1)",
    encoding="UTF8",
    isolation="read committed",
    read_only=False,
    most_connections=97,
    connections=12,
    tls=Tls(version="TLSv1.3", verified=True),
    connect_ms=40,
    round_trip_ms=1.25,
    ahead_seconds=0.1,
    doubt_seconds=0.01,
)


def told(server: Server) -> dict[str, Finding]:
    return {found.name: found for found in looked._server(server, FAR)}


def test_a_database_that_is_as_it_should_be_is_told_in_four_lines():
    found = told(WELL)

    assert {name: one.status for name, one in found.items()} == dict.fromkeys(("", "tls", "clock", "connections"), "ok")
    assert found[""].sentence == "PostgreSQL 16.4 at db.test/gigs, 1.2 ms away, connected in 40 ms"
    assert found["tls"].sentence == "TLSv1.3, and the certificate is verified"
    assert "hunter2" not in "".join(one.sentence for one in found.values())


@pytest.mark.parametrize(
    ("server", "name", "status", "words"),
    [
        (replace(WELL, version_number=130010), "", "fail", "PostgreSQL 13 is too old"),
        (replace(WELL, version_number=190000), "version", "warn", "PostgreSQL 19 is newer than this release knows"),
        (replace(WELL, encoding="SQL_ASCII"), "", "fail", "the database's encoding is SQL_ASCII"),
        (replace(WELL, round_trip_ms=180.0), "", "warn", "180.0 ms away, connected in 40 ms; run the service in the"),
        (replace(WELL, ahead_seconds=-40), "clock", "warn", "40.0 s behind this machine's; set this machine's by NTP"),
        (
            replace(WELL, connections=90),
            "connections",
            "warn",
            "90 of 97 are in use; take the provider's pooled address",
        ),
        (replace(WELL, read_only=True), "writing", "fail", "it takes no writes: it is a copy, or set to read-only"),
        (replace(WELL, isolation="serializable"), "isolation", "warn", "transactions are serializable where nothing"),
        (replace(WELL, tls=None), "tls", "warn", "set sslmode=require in DATABASE_URL"),
        (replace(WELL, tls=Tls(version="TLSv1.2", verified=False)), "tls", "ok", "not verified; sslmode=verify-full"),
    ],
)
def test_each_fault_of_a_server_says_what_to_change(server: Server, name: str, status: Status, words: str):
    found = told(server)[name]

    assert found.status == status
    assert words in found.sentence


def test_a_server_on_this_machine_needs_no_tls():
    found = looked._tls(replace(WELL, tls=None), NEAR)

    assert (found.status, found.found) == ("ok", "none, and none is needed: the server is on this machine")


@pytest.mark.parametrize(
    ("state", "status", "words"),
    [
        ("current", "ok", "it is this release's"),
        ("ahead", "ok", "a newer release's, which serves this one too"),
        ("behind", "fail", "an older release's; run `wakebell migrate`"),
        ("missing", "fail", "there is none; run `wakebell migrate`"),
    ],
)
def test_each_state_of_the_schema_is_told(state: SchemaState, status: Status, words: str):
    found = looked._schema(state)

    assert found.status == status
    assert words in found.sentence


def test_a_schema_that_brings_itself_up_is_no_fault():
    found = looked._schema("behind", auto=True)

    assert (found.status, found.change) == (
        "warn",
        "AUTO_MIGRATE brings it up when the service starts, or with the next request",
    )


TABLES = tuple(f"wakebell.t{number}" for number in range(5))


@pytest.mark.parametrize(
    ("rights", "status", "words"),
    [
        (Rights(role="bell", enters=True, closed=(), hidden=()), "ok", "the role bell may read and write all tables"),
        (
            Rights(role="bell", enters=False, closed=(), hidden=()),
            "fail",
            "may not use the schema wakebell; use the role",
        ),
        (
            Rights(role="bell", enters=True, closed=TABLES, hidden=()),
            "fail",
            "may not read and write wakebell.t0, wakebell.t1, wakebell.t2 and 2 more tables; use the role that ran",
        ),
        (
            Rights(role="bell", enters=True, closed=(), hidden=TABLES[:1]),
            "fail",
            "does not own wakebell.t0, and row level security hides all rows from it; use the role that ran",
        ),
    ],
)
def test_what_the_role_may_not_do_is_told(rights: Rights, status: Status, words: str):
    found = looked._rights(rights)

    assert found.status == status
    assert words in found.sentence


async def test_an_address_that_cannot_be_read_is_told_problem_by_problem():
    found = await looked._database("postgresql://u@h/x?sslmode=maybe&one=1", None, [])

    assert [one.status for one in found] == ["fail", "fail"]
    assert all(one.found.startswith("DATABASE_URL: ") for one in found)


async def test_without_a_database_it_is_said_why():
    [unset] = await looked._database(None, None, [])
    [missing] = await looked._database(None, None, ["The embedded PostgreSQL is not installed: set DATABASE_URL."])

    assert unset.sentence == "DATABASE_URL is not set; set it to your PostgreSQL's"
    assert missing.sentence == "The embedded PostgreSQL is not installed: set DATABASE_URL."


async def test_one_that_is_not_reached_is_told_in_its_own_words(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(connecting, "CONNECT_WAITS", ())
    url = "postgresql://u:hunter2-hunter2@127.0.0.1:1/x"

    [found] = await looked._database(url, None, [])
    [direct] = await looked._migrations(url)

    for one in (found, direct):
        assert one.status == "fail"
        assert "could not be reached" in one.found
        assert "hunter2" not in one.found
    assert "MIGRATION_DATABASE_URL" in direct.found


@pytest.mark.parametrize(
    ("host", "between", "words"),
    [
        ("db.test", "nothing", "none: every connection is the server's own"),
        ("ep-x-pooler.eu.neon.test", "nothing", "the host's name says that there is one"),
        ("aws-0.pooler.supabase.test", "transaction", "it will do, for no state is kept in a session"),
        ("db.test", "session", "lends a connection for a session, or a proxy that acts like one; any will do"),
    ],
)
async def test_what_stands_between_is_told_and_never_a_fault(
    monkeypatch: pytest.MonkeyPatch, host: str, between: Between, words: str
):
    async def seen(_: Examination) -> Between:
        return between

    monkeypatch.setattr(Examination, "between", seen)

    found = await looked._pooler(connect(f"postgresql://u@{host}/x"))

    assert found.status == "ok"
    assert words in found.found


async def test_a_second_connection_that_is_not_to_be_had_is_told(monkeypatch: pytest.MonkeyPatch):
    async def full(_: Examination) -> Between:
        raise DatabaseUnavailable("the database is full")

    monkeypatch.setattr(Examination, "between", full)

    found = await looked._pooler(FAR)

    assert found.sentence == "a second connection was not to be had; look at the limits of pooler and server"


async def test_a_direct_address_for_migrations_is_looked_at_too(database_url: str):
    [found] = await looked._migrations(database_url)

    assert found.status == "ok"
    assert found.found.startswith("MIGRATION_DATABASE_URL is reached")


async def test_without_a_schema_nothing_else_is_asked(empty_database_url: str):
    found = {one.name: one for one in await looked._database(empty_database_url, None, [])}

    assert found["schema"].status == "fail"
    assert found["rings"].status == "skipped"
    assert "rights" not in found
