from __future__ import annotations

import socket
import ssl

import asyncpg
import pytest
from sqlalchemy import text
from sqlalchemy.exc import DBAPIError, IntegrityError

from app.domain.errors import DatabaseUnavailable
from app.stores import faults
from app.stores.address import parse
from app.stores.database import connect

ADDRESS = parse("postgres://app:s3cr3t@db.example/gigs", name="MIGRATION_DATABASE_URL")


UNTRUSTED = ssl.SSLCertVerificationError(1, "[SSL] certificate verify failed: unable to get local issuer certificate")
UNTRUSTED.verify_message = "unable to get local issuer certificate"


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
        (asyncpg.InternalServerError("Tenant or user not found"), "its pooler knows no such project", False),
        (asyncpg.ProtocolViolationError("SASL authentication failed"), "refused the sign-in; check user", False),
        (asyncpg.ProtocolViolationError("no such user: app"), "refused the sign-in; check user", False),
        (
            asyncpg.InvalidAuthorizationSpecificationError('no pg_hba.conf entry for host "::1", no encryption'),
            "takes no unencrypted connection; set sslmode=require in MIGRATION_DATABASE_URL",
            False,
        ),
        (
            asyncpg.ProtocolViolationError("connection is insecure (try using `sslmode=require`)"),
            "takes no unencrypted connection; set sslmode=require",
            False,
        ),
        (
            asyncpg.InvalidAuthorizationSpecificationError('no pg_hba.conf entry for host "::1", SSL encryption'),
            "lets this user in from other places only; allow this host's address",
            False,
        ),
        (asyncpg.InvalidCatalogNameError("no"), "has no database of that name; check the last part", False),
        (asyncpg.ProtocolViolationError("no such database: gigs"), "has no database of that name", False),
        (
            ssl.SSLCertVerificationError(1, "certificate verify failed: Hostname mismatch, certificate is not valid"),
            "do not agree on TLS: its certificate is for another host",
            False,
        ),
        (UNTRUSTED, "do not agree on TLS: nothing that is trusted vouches for its certificate (unable to get", False),
        (ssl.SSLError(1, "wrong version number"), "do not agree on TLS; check sslmode", False),
        (ConnectionError("PostgreSQL server rejected SSL upgrade"), "it offers none; where the way to it is", False),
        (asyncpg.TooManyConnectionsError("sorry, too many clients already"), "left; run fewer replicas, or", True),
        (asyncpg.ProtocolViolationError("no more connections allowed"), "has no free connection left; run", True),
        (asyncpg.InternalServerError("Max client connections reached"), "has no free connection left; run", True),
        (
            asyncpg.InternalServerError("MaxClientsInSessionMode: max clients reached - in Session mode"),
            "has no free connection left for sessions; put the pooler's port for transactions (6543) into",
            True,
        ),
        (asyncpg.CannotConnectNowError("starting up"), "is starting up; ring again", True),
        (asyncpg.InternalServerError("Couldn't connect to compute node"), "is starting up; ring again", True),
        (asyncpg.ProtocolViolationError("pgbouncer cannot connect to server"), "by its own pooler; see whether", True),
        (faults.AllInUse(), "all of this process's connections in use; lower the concurrency", False),
        (TimeoutError(), "did not answer in time; check host and port in MIGRATION_DATABASE_URL, or put", True),
        (ConnectionRefusedError(111, "Connection refused"), "could not be reached (Connection refused); check", True),
        (
            ConnectionRefusedError(111, "Connect call failed ('127.0.0.1', 5432)"),
            "(Connection refused) by IPv4; check host and port in MIGRATION_DATABASE_URL, or put the provider's pooled",
            True,
        ),
        (
            OSError(101, "Connect call failed ('2600:1f16::1', 5432, 0, 0)"),
            "(Network is unreachable) by IPv6; check host and port in MIGRATION_DATABASE_URL, or put the provider's",
            True,
        ),
        (
            OSError(
                "Multiple exceptions: [Errno 111] Connect call failed ('::1', 5432, 0, 0), "
                "[Errno 111] Connect call failed ('127.0.0.1', 5432)"
            ),
            "could not be reached (Connection refused) by IPv4 and IPv6; check",
            True,
        ),
        (socket.gaierror(-2, "Name or service not known"), "has a host that nobody knows (Name or service not", True),
        (ConnectionResetError(), "could not be reached (ConnectionResetError)", True),
        (asyncpg.ConnectionDoesNotExistError("closed"), "refused the connection (closed)", True),
        (asyncpg.InternalServerError("exceeded the\ncompute quota"), "(exceeded the compute quota)", True),
        (asyncpg.InterfaceError("s3cr3t"), "refused the connection (InterfaceError)", True),
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
    assert "\n" not in str(found)


def test_a_connection_to_a_socket_has_no_pooled_address():
    told, _ = faults.of_connecting(FileNotFoundError(2, "No such file"), parse("postgres:///gigs?host=/run/pg"))

    assert str(told).endswith("(No such file); check host and port in DATABASE_URL")


def test_an_address_that_says_nothing_is_told_with_its_family():
    told = faults.unanswered(parse("postgres://[2001:db8::1]/gigs"))

    assert "2001:db8::1/gigs did not answer in time by IPv6;" in str(told)
    assert str(told).endswith("or put the provider's pooled address there, which has IPv4 too")


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
