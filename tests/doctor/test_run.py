"""All looks together."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from app import doctor
from app.doctor import memory, rings
from app.doctor.looks import Look
from app.domain.errors import DatabaseUnavailable, PermanentFailure
from app.domain.findings import Finding, Status, fail, ok
from app.settings import Settings


def raising(error: Exception) -> Callable[[], Awaitable[list[Finding]]]:
    async def work() -> list[Finding]:
        raise error

    return work


async def never() -> list[Finding]:
    await asyncio.Event().wait()
    raise AssertionError


@pytest.mark.parametrize(
    ("work", "status", "words"),
    [
        (never, "fail", "nothing came of it within 0.01 s; try again"),
        (raising(PermanentFailure("x answered 401; make a new token")), "fail", "x answered 401; make a new token"),
        (raising(DatabaseUnavailable("the database is full; wait")), "fail", "the database is full; wait"),
        (raising(KeyError("secret")), "fail", "looking at it broke off (KeyError); this is a fault of Wakebell's own"),
    ],
)
async def test_a_look_that_ends_badly_is_a_finding(
    work: Callable[[], Awaitable[list[Finding]]], status: Status, words: str
):
    [found] = await doctor._bounded(Look(name="thing", work=work, seconds=0.01))

    assert (found.name, found.status) == ("thing", status)
    assert words in found.sentence
    assert "secret" not in found.sentence


def test_a_redis_is_looked_at_where_there_is_one(configured: Callable[..., Settings]):
    assert memory.looks(configured()) == []
    assert [look.name for look in memory.looks(configured(REDIS_URL="redis://h"))] == ["redis"]


def test_every_look_ends_within_a_minute(configured: Callable[..., Settings], environ: Callable[..., dict[str, str]]):
    settings = configured(REDIS_URL="redis://h")

    looks = [*rings.looks(settings), *memory.looks(settings)]
    looks += doctor.address.looks(settings, None)  # type: ignore[arg-type]
    looks += doctor.database.looks(environ(MIGRATION_DATABASE_URL="x"), settings, [])

    assert len(looks) == 5
    assert all(look.seconds <= 60 for look in looks)


def test_what_is_shown_is_one_line_without_secrets_or_what_a_terminal_obeys(configured: Callable[..., Settings]):
    settings = configured(API_TOKEN="an-api-token-of-24-letters")
    found = fail("it said:\n\x1b[31man-api-token-of-24-letters", "x" * 5000, name="a\tb")

    shown = doctor._shown(found, settings.mask)

    assert (shown.name, shown.found) == ("a b", "it said:  [31m[secret]")
    assert len(shown.change) == 600
    assert doctor._shown(ok("ที่"), settings.mask).found == "ที่"


async def test_a_configuration_that_cannot_be_read_leaves_the_database_to_be_looked_at(
    environ: Callable[..., dict[str, str]], monkeypatch: pytest.MonkeyPatch
):
    found = await doctor.run(environ("[nonsense]\n", DATABASE_URL="mysql://x"))

    assert [(one.status, one.name) for one in found] == [
        ("fail", "configuration"),
        ("skipped", "CRON_SECRET"),
        ("fail", "database"),
    ]
