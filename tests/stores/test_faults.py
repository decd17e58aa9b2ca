from __future__ import annotations

import socket
import ssl

import asyncpg
import pytest
from sqlalchemy import text
from sqlalchemy.exc import DBAPIError, IntegrityError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from app.domain.errors import DatabaseUnavailable
from app.stores import faults
from app.stores.address import parse
from app.stores.database import connect

ADDRESS = parse("postgres://app:s3cr3t@db.example/gigs", name="MIGRATION_DATABASE_URL")


def wrapped(error: BaseException, *, invalidated: bool = False) -> DBAPIError:
    """As SQLAlchemy hands it over."""
    found = DBAPIError("SELECT 1", None, error, connection_invalidated=invalidated)
    assert found.orig is error
    return found


@pytest.mark.parametrize(
    ("error", "told", "again"),
    [
        (
            asyncpg.InvalidPasswordError("password authentication failed"),
            "refused the sign-in; check user and password in MIGRATION_DATABASE_URL",
            False,
        ),
        (
            asyncpg.InvalidAuthorizationSpecificationError('role "app" does not exist'),
            "refused the sign-in; check user and password in MIGRATION_DATABASE_URL",
            False,
        ),
        (asyncpg.InternalServerError("Tenant or user not found"), "refused the sign-in", False),
        (
            asyncpg.InvalidAuthorizationSpecificationError('no pg_hba.conf entry for host "::1", no encryption'),
            "takes no unencrypted connection; set sslmode=require",
            False,
        ),
        (asyncpg.InvalidCatalogNameError("no"), "has no database of that name", False),
        (ssl.SSLCertVerificationError("certificate verify failed"), "do not agree on TLS; check sslmode", False),
        (ConnectionError("PostgreSQL server rejected SSL upgrade"), "do not agree on TLS; check sslmode", False),
        (asyncpg.TooManyConnectionsError("sorry, too many clients already"), "has no free connection left", True),
        (asyncpg.ProtocolViolationError("no more connections allowed"), "has no free connection left", True),
        (asyncpg.CannotConnectNowError("starting up"), "is starting up", True),
        (PoolTimeout("QueuePool limit"), "all of this process's connections in use", False),
        (TimeoutError(), "did not answer in time", True),
        (ConnectionRefusedError(111, "Connection refused"), "could not be reached (Connection refused)", True),
        (socket.gaierror(-2, "Name or service not known"), "could not be reached (Name or service not known)", True),
        (ConnectionResetError(), "could not be reached (ConnectionResetError)", True),
        (asyncpg.ConnectionDoesNotExistError("closed"), "refused the connection (ConnectionDoesNotExistError)", True),
    ],
)
@pytest.mark.parametrize("wrap", [False, True])
def test_a_connection_that_could_not_be_made_is_told_in_one_sentence(
    error: Exception,
    told: str,
    again: bool,  # noqa: FBT001
    wrap: bool,  # noqa: FBT001
):
    found, may_help = faults.of_connecting(wrapped(error) if wrap else error, ADDRESS)

    assert str(found).startswith("the database db.example/gigs ")
    assert told in str(found)
    assert may_help == again
    assert "s3cr3t" not in str(found)


def test_a_bug_is_not_hidden_behind_the_network():
    with pytest.raises(KeyError):
        faults.of_connecting(KeyError("bug"), ADDRESS)


@pytest.mark.parametrize(
    "error",
    [
        asyncpg.QueryCanceledError("canceling statement due to statement timeout"),
        asyncpg.DeadlockDetectedError("deadlock detected"),
        asyncpg.SerializationError("could not serialize"),
        asyncpg.LockNotAvailableError("canceling statement due to lock timeout"),
    ],
)
def test_somebody_elses_lock_is_not_this_statements_fault(error: asyncpg.PostgresError):
    found = faults.translated(wrapped(error), ADDRESS)

    assert isinstance(found, DatabaseUnavailable)
    assert str(found) == f"the database was busy ({type(error).__name__})"


@pytest.mark.parametrize(
    "error",
    [
        asyncpg.AdminShutdownError("terminating connection"),
        asyncpg.ConnectionDoesNotExistError("closed"),
        asyncpg.InterfaceError("connection is closed"),
        ConnectionResetError(),
        TimeoutError(),
    ],
)
@pytest.mark.parametrize("wrap", [False, True])
def test_a_connection_that_broke_is_told_as_such(error: Exception, wrap: bool):  # noqa: FBT001
    found = faults.translated(wrapped(error) if wrap else error, ADDRESS)

    assert isinstance(found, DatabaseUnavailable)
    assert "broke the connection" in str(found)


def test_a_statements_own_fault_is_left_as_it_is():
    error = IntegrityError("INSERT", None, asyncpg.UniqueViolationError("twice"))

    assert faults.translated(error, ADDRESS) is error


async def test_a_database_that_takes_no_writes_is_told(database_url: str):
    database = connect(database_url)
    connection = await asyncpg.connect(database_url)
    await connection.execute(
        "DO $$ BEGIN EXECUTE "
        "format('ALTER DATABASE %I SET default_transaction_read_only = on', current_database()); END $$"
    )
    await connection.close()

    with pytest.raises(DatabaseUnavailable, match="takes no writes now"):
        await database.fetch(text("INSERT INTO wakebell.ticks (trigger) VALUES ('test')"))
    await database.dispose()
