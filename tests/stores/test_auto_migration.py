"""AUTO_MIGRATE: who finds the schema missing or behind brings it up."""

from __future__ import annotations

import asyncio
import sys
from contextlib import suppress
from urllib.parse import urlsplit

import asyncpg
import pytest

from app import stores
from app.domain.errors import ConfigError, DatabaseUnavailable, SchemaOutdated
from app.stores import Stores, auto_migration, migrations
from app.stores.auto_migration import AutoMigration
from app.stores.database import connect
from app.stores.schema import HEAD

HOLD = "SELECT pg_advisory_xact_lock(1464549965, 0)"


def opened(url: str, migration_url: str | None = None) -> Stores:
    return stores.over(connect(url), migration=auto_migration.auto_migration(url, migration_url))


@pytest.fixture
def tries(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The addresses that were migrated, or were to be."""
    seen: list[str] = []
    migrate = migrations.migrate

    async def noted(url: str, *, name: str) -> migrations.Migrated:
        seen.append(name)
        return await migrate(url, name=name)

    monkeypatch.setattr(migrations, "migrate", noted)
    return seen


async def test_all_who_ask_at_once_wait_for_the_same_one(
    empty_database_url: str, tries: list[str], caplog: pytest.LogCaptureFixture
):
    service = opened(empty_database_url)

    with caplog.at_level("INFO", logger="app"):
        async with service.database.held():
            await asyncio.gather(*(service.require_schema() for _ in range(4)), service.schema())

            assert await service.schema() == "current"

    assert tries == ["DATABASE_URL"]
    [record] = caplog.records
    assert (record.message, vars(record)["before"], vars(record)["after"]) == ("schema brought up", None, HEAD)


async def test_it_begins_with_the_process_that_serves(empty_database_url: str, tries: list[str]):
    service = opened(empty_database_url)

    async with service.served():
        while not service.database.schema_known:  # noqa: ASYNC110 - no event tells of it
            await asyncio.sleep(0.01)

    assert tries == ["DATABASE_URL"]


async def test_where_there_is_nothing_to_do_alembic_is_not_imported(database_url: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "app.stores.migrations", None)  # an import of it fails
    service = opened(database_url)

    async with service.database.held():
        await service.require_schema()


async def test_a_newer_schema_is_left_alone(database_url: str, sql: asyncpg.Connection, tries: list[str]):
    await sql.execute("UPDATE wakebell.alembic_version SET version_num = '9999'")
    service = opened(database_url)

    async with service.database.held():
        await service.require_schema()

        assert await service.schema() == "ahead"

    assert tries == []


async def test_without_it_nothing_is_brought_up(empty_database_url: str, tries: list[str]):
    service = stores.over(connect(empty_database_url))

    async with service.served(), service.database.held():
        with pytest.raises(SchemaOutdated, match="the database's schema is missing; run `wakebell migrate`"):
            await service.require_schema()

    assert tries == []


@pytest.mark.direct
async def test_one_that_is_refused_is_told_and_not_tried_again_at_once(
    guest_url: str, empty_database_url: str, tries: list[str], monkeypatch: pytest.MonkeyPatch
):
    service = opened(guest_url)

    async with service.database.held():
        for _ in range(3):
            with pytest.raises(
                SchemaOutdated, match=r"AUTO_MIGRATE.*may not create or change the schema.*GRANT CREATE"
            ):
                await service.require_schema()
        assert len(tries) == 1

        owner = await asyncpg.connect(empty_database_url)
        await owner.execute(f'CREATE SCHEMA wakebell AUTHORIZATION "{urlsplit(guest_url).username}"')
        await owner.close()
        monkeypatch.setattr("app.stores.auto_migration.time.monotonic", lambda: 1e12)  # the minute is over
        await service.require_schema()

    assert len(tries) == 2


@pytest.mark.direct
async def test_what_somebody_else_brings_up_meanwhile_is_seen(guest_url: str, empty_database_url: str):
    service = opened(empty_database_url, guest_url)

    async with service.database.held():
        with pytest.raises(SchemaOutdated):
            await service.require_schema()
        await migrations.migrate(empty_database_url)

        await service.require_schema()


async def test_it_goes_on_when_who_asked_has_gone(empty_database_url: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(auto_migration, "WAIT_SECONDS", 0.05)
    service = opened(empty_database_url)
    holder = await asyncpg.connect(empty_database_url)

    async with service.database.held():
        async with holder.transaction():
            await holder.execute(HOLD)
            with pytest.raises(SchemaOutdated, match="is being brought up to this release; ring again"):
                await service.require_schema()
            with suppress(TimeoutError):
                async with asyncio.timeout(0.01):
                    await service.require_schema()
        await holder.close()
        monkeypatch.setattr(auto_migration, "WAIT_SECONDS", 30)
        await service.require_schema()


async def test_a_database_that_is_away_is_tried_again_by_the_next(empty_database_url: str, tries: list[str]):
    service = stores.over(
        connect(empty_database_url),
        migration=AutoMigration("postgres://127.0.0.1:1/away", name="MIGRATION_DATABASE_URL"),
    )

    async with service.database.held():
        for _ in range(2):
            with pytest.raises(DatabaseUnavailable, match=r"127\.0\.0\.1/away .* in MIGRATION_DATABASE_URL"):
                await service.require_schema()

    assert len(tries) == 2


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The tries to connect follow each other without a wait."""
    monkeypatch.setattr("app.stores.database.CONNECT_WAITS", (0,))


async def test_the_address_for_migrations_is_the_one_that_is_taken(empty_database_url: str, tries: list[str]):
    service = opened("postgres://127.0.0.1:1/never", empty_database_url)

    assert service.migration is not None
    await service.migration.run()

    assert tries == ["MIGRATION_DATABASE_URL"]


def test_an_address_for_migrations_that_cannot_be_used_is_told_at_the_start():
    with pytest.raises(ConfigError, match='MIGRATION_DATABASE_URL: begins with "mysql://"'):
        auto_migration.auto_migration("postgres://db.example/name", "mysql://db.example/name")
