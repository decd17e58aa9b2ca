"""What the driver raises, in words: one place where asyncpg's and SQLAlchemy's errors become ours."""

from __future__ import annotations

import ssl
from typing import TYPE_CHECKING

import asyncpg
from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from app.domain.errors import DatabaseUnavailable

if TYPE_CHECKING:
    from app.stores.address import Address

SIGN_IN = (
    asyncpg.InvalidPasswordError,
    asyncpg.InvalidAuthorizationSpecificationError,
)

PASSING_STATES = frozenset({"57P01", "57P02", "57P03", "53300", "53400", "08000", "08003", "08006", "08P01", "55P03"})
"""The server stops or starts, is full, or the connection broke, or a lock was not to be had in time."""

BUSY_STATES = frozenset({"57014", "40P01", "40001", "55P03"})
"""A statement that waited too long for somebody else's lock, or lost a deadlock: trying again helps."""


def of_connecting(error: Exception, address: Address) -> tuple[DatabaseUnavailable, bool]:
    """What to tell of a connection that could not be made, and whether a further try may help."""
    cause = _cause(error)
    words = str(cause)
    if isinstance(cause, SIGN_IN) or "Tenant or user not found" in words:
        return _told(address, "refused the sign-in; check user and password in DATABASE_URL"), False
    if isinstance(cause, asyncpg.InvalidCatalogNameError):
        return _told(address, "has no database of that name; check the last part of DATABASE_URL"), False
    if isinstance(cause, ssl.SSLError) or "SSL" in words:
        return _told(address, "and this service do not agree on TLS; check sslmode in DATABASE_URL"), False
    if isinstance(cause, asyncpg.TooManyConnectionsError) or "no more connections allowed" in words:
        return _told(address, "has no free connection left"), True
    if isinstance(cause, asyncpg.CannotConnectNowError):
        return _told(address, "is starting up"), True
    if isinstance(cause, PoolTimeout):
        return DatabaseUnavailable("the database's connections were all in use for too long"), False
    if isinstance(cause, TimeoutError):
        return unanswered(address), True
    if isinstance(cause, OSError):
        return _told(address, f"could not be reached ({cause.strerror or type(cause).__name__})"), True
    if isinstance(cause, asyncpg.PostgresError | asyncpg.InterfaceError):
        return _told(address, f"refused the connection ({type(cause).__name__})"), True
    raise error


def unanswered(address: Address) -> DatabaseUnavailable:
    """Nothing came back in time."""
    return _told(address, "did not answer in time")


def translated(error: Exception, address: Address) -> Exception:
    """A statement's error: ours where the connection or somebody's lock was to blame, else as it is."""
    cause = _cause(error)
    state = getattr(cause, "sqlstate", None)
    if state in BUSY_STATES:
        return DatabaseUnavailable(f"the database was busy ({type(cause).__name__})")
    if isinstance(error, DBAPIError) and not error.connection_invalidated and state not in PASSING_STATES:
        passing = isinstance(cause, OSError | TimeoutError | asyncpg.InterfaceError)
        return _told(address, "broke the connection") if passing else error
    return _told(address, "broke the connection or did not answer in time")


def _cause(error: Exception) -> BaseException:
    """The driver's own exception, below SQLAlchemy's wrapping."""
    found: BaseException = error
    while isinstance(found, DBAPIError) and found.orig is not None:
        found = found.orig
    while type(found).__module__.startswith("sqlalchemy.") and found.__cause__ is not None:
        found = found.__cause__
    return found


def _told(address: Address, what: str) -> DatabaseUnavailable:
    return DatabaseUnavailable(f"the database {address.shown} {what}")
