"""Brings the schema up to this release's.

Everything in one transaction that first takes an advisory lock of its own length: several at once wait for each other,
right through a transaction pooler too, and a killed one leaves nothing behind.
"""

from __future__ import annotations

import asyncio
import threading
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import asyncpg
from alembic import command, op
from alembic.config import Config
from alembic.script import ScriptDirectory
from alembic.util import CommandError
from sqlalchemy import text
from sqlalchemy.exc import DBAPIError

from app.domain.errors import ServiceError
from app.stores.database import connect, rows
from app.stores.schema import HEAD, compared, unfit

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from sqlalchemy import Connection
    from sqlalchemy.ext.asyncio import AsyncConnection

PREPARE = """
SELECT set_config('lock_timeout', '120s', true), set_config('statement_timeout', '0', true),
    set_config('idle_in_transaction_session_timeout', '0', true);
SELECT pg_advisory_xact_lock(1464549965, 0);
SELECT set_config('lock_timeout', '5s', true);
"""
"""Two minutes for another migrator, the longest that a host's release hook should stand still; then no table is waited
for so long that every tick would queue up behind us.
"""

CLIENT_SECONDS = 600.0
"""What the driver waits for a script; only against a connection that died."""

PRESENT = text(
    "SELECT to_regnamespace('wakebell') IS NOT NULL AS schema, "
    "to_regclass('wakebell.alembic_version') IS NOT NULL AS version, "
    "CAST(pg_catalog.getdatabaseencoding() AS text) AS encoding, "
    "CAST(pg_catalog.current_setting('server_version_num') AS integer) AS server",
)
VERSION = text("SELECT version_num FROM wakebell.alembic_version")
CREATE_SCHEMA = text("CREATE SCHEMA wakebell")


@dataclass(frozen=True, slots=True)
class Migrated:
    """Versions of the schema; the same twice when there was nothing to do."""

    before: str | None
    """None: there was no schema."""

    after: str


async def migrate(url: str, *, name: str = "DATABASE_URL") -> Migrated:
    """Bring the schema to this release's version, or wait for another migrator that does.

    A schema that is newer than this release is left as it is: rolling a release back must not fail here.

    Args:
        url: any provider's URL of the database; one that goes past the pooler is better, not needed.
        name: the variable it came from, for error messages.

    Raises:
        ConfigError: what in the URL cannot be used.
        ServiceError: what the database refused, in one sentence; nothing was changed.
    """
    database = connect(url, name=name)
    try:
        async with database.sqlalchemy() as db:
            return await _migrated(db)
    except asyncpg.PostgresError as error:
        raise _told(error) from error
    except DBAPIError as error:
        raise _told(error.orig.__cause__ if error.orig else error) from error
    except CommandError as error:
        raise ServiceError(f"the schema is at a version that this release knows no way from: {error}") from error
    finally:
        await database.dispose()


async def _migrated(db: AsyncConnection) -> Migrated:
    await db.run_sync(_run, PREPARE)
    present = (await rows(db, PRESENT))[0]
    if (told := unfit(present["encoding"], present["server"])) is not None:
        raise ServiceError(told)
    before = await _version(db) if present["version"] else None
    if before is not None and compared(before) in {"current", "ahead"}:
        return Migrated(before=before, after=before)
    if not present["schema"]:
        await db.execute(CREATE_SCHEMA)
    await db.run_sync(_run, _script("remember.sql"))
    async with _alembic_alone():
        await db.run_sync(_upgrade)
    await db.run_sync(_run, _script("close.sql"))
    return Migrated(before=before, after=HEAD)


async def _version(db: AsyncConnection) -> str | None:
    found = await rows(db, VERSION)
    return str(found[0]["version_num"]) if found else None


ALEMBIC = threading.Lock()
"""Alembic knows one migration a process: `op` and `context` are the module's."""

ALEMBIC_SECONDS = 0.01


@asynccontextmanager
async def _alembic_alone() -> AsyncIterator[None]:
    """Of this process, whatever its event loops: asked for again and again, so that who waits can be cancelled."""
    while not ALEMBIC.acquire(blocking=False):  # noqa: ASYNC110 - an event belongs to one event loop
        await asyncio.sleep(ALEMBIC_SECONDS)
    try:
        yield
    finally:
        ALEMBIC.release()


def _upgrade(connection: Connection) -> None:
    config = _config()
    config.attributes["connection"] = connection
    command.upgrade(config, HEAD)


def run_script(name: str) -> None:
    """For version files: run a file of `alembic/sql` as it stands, in the migration's transaction."""
    _run(op.get_bind(), _script(name))


def _run(connection: Connection, script: str) -> None:
    """Many statements at once, as the driver alone can send them."""
    raw: Any = connection.connection.dbapi_connection
    raw.run_async(lambda driver: driver.execute(script, timeout=CLIENT_SECONDS))


def _script(name: str) -> str:
    return (location() / "sql" / name).read_text(encoding="utf-8")


def location() -> Path:
    """Where the versions are: beside `app` in a checkout, inside it in an installed package."""
    app = Path(__file__).parents[1]
    packaged = app / "_alembic"
    return packaged if packaged.is_dir() else app.parent / "alembic"


def _config() -> Config:
    """Without an ini file: nothing in it would be ours, and a `%` in its values means something else."""
    config = Config()
    config.set_main_option("script_location", str(location()).replace("%", "%%"))
    config.set_main_option("file_template", "%%(rev)s_%%(slug)s")
    return config


def new_version(message: str) -> Path:
    """Write an empty version file, numbered after the newest; its number becomes `HEAD` in `schema.py`."""
    config = _config()
    newest = ScriptDirectory.from_config(config).get_current_head() or "0000"
    written = command.revision(config, message, rev_id=f"{int(newest) + 1:04}")
    if written is None or isinstance(written, list):
        raise ServiceError("the version file could not be written")
    return Path(written.path)


def _told(error: BaseException | None) -> ServiceError:
    if isinstance(error, asyncpg.LockNotAvailableError):
        return ServiceError("another migration, or somebody's open transaction, holds the schema; try again later")
    if isinstance(error, asyncpg.InsufficientPrivilegeError):
        return ServiceError(
            f"the database user may not create or change the schema wakebell ({error}); "
            "GRANT CREATE ON DATABASE to it, or give its owner's URL as MIGRATION_DATABASE_URL",
        )
    return ServiceError(f"the migration failed and changed nothing: {error}")
