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

PASSING_STATES = frozenset({"57P01", "57P02", "57P03", "53300", "53400", "08000", "08003", "08006", "08P01"})
"""The server stops or starts, is full, or the connection broke."""

READ_ONLY = "25006"
"""A write in a database or a role that is set to read only."""

BUSY_STATES = frozenset({"57014", "40P01", "40001", "55P03"})
"""A statement that waited too long for somebody else's lock, or lost a deadlock: trying again helps."""


CONNECTING: tuple[tuple[tuple[type[BaseException], ...], tuple[str, ...], str, bool], ...] = (
    # PostgreSQL's words when its pg_hba.conf wants TLS, to be looked at before its kind: a refused sign-in
    ((), ("no encryption", "SSL off"), "takes no unencrypted connection; set sslmode=require in {name}", False),
    (SIGN_IN, ("Tenant or user not found",), "refused the sign-in; check user and password in {name}", False),
    ((asyncpg.InvalidCatalogNameError,), (), "has no database of that name; check the last part of {name}", False),
    ((ssl.SSLError,), ("SSL",), "and this service do not agree on TLS; check sslmode in {name}", False),
    (
        (asyncpg.TooManyConnectionsError,),
        ("no more connections allowed",),  # pgbouncer's
        "has no free connection left",
        True,
    ),
    ((asyncpg.CannotConnectNowError,), (), "is starting up", True),
    ((PoolTimeout,), (), "has all of this process's connections in use", False),
    ((TimeoutError,), (), "did not answer in time", True),
    ((OSError,), (), "could not be reached ({reason})", True),
    ((asyncpg.PostgresError, asyncpg.InterfaceError), (), "refused the connection ({kind})", True),
)
"""By the error's kind or its words: what to tell, and whether a further try may help. The first that fits counts."""


def of_connecting(error: Exception, address: Address) -> tuple[DatabaseUnavailable, bool]:
    """What to tell of a connection that could not be made, and whether a further try may help."""
    cause = _cause(error)
    words, kind = str(cause), type(cause).__name__
    for kinds, said, told, again in CONNECTING:
        if isinstance(cause, kinds) or any(part in words for part in said):
            reason = getattr(cause, "strerror", None) or kind
            return _told(address, told.format(name=address.name, kind=kind, reason=reason)), again
    raise error


def unanswered(address: Address) -> DatabaseUnavailable:
    """Nothing came back in time."""
    return _told(address, "did not answer in time")


def translated(error: Exception, address: Address) -> Exception:
    """A statement's error: ours where the connection or somebody's lock was to blame, else as it is."""
    cause = _cause(error)
    state = getattr(cause, "sqlstate", None)
    if state == READ_ONLY:
        return _told(address, "takes no writes now: it is read-only, as after a failover or on a full disk")
    if state in BUSY_STATES:
        return DatabaseUnavailable(f"the database was busy ({type(cause).__name__})")
    if isinstance(error, DBAPIError) and not error.connection_invalidated and state not in PASSING_STATES:
        passing = isinstance(cause, OSError | TimeoutError | asyncpg.InterfaceError)
        return _told(address, "broke the connection") if passing else error
    return _told(address, "broke the connection or did not answer in time")


def is_serialization(error: BaseException | None) -> bool:
    """A statement that lost to another one under a strict isolation, and was rolled back whole: repeat it."""
    return isinstance(error, Exception) and getattr(_cause(error), "sqlstate", None) in {"40001", "40P01"}


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
