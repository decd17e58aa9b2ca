"""What the driver raises, in words: one place where asyncpg's and SQLAlchemy's errors become ours."""

from __future__ import annotations

import os
import re
import socket
import ssl
from contextlib import suppress
from dataclasses import dataclass
from ipaddress import ip_address
from typing import TYPE_CHECKING

import asyncpg

from app.domain.errors import DatabaseUnavailable

if TYPE_CHECKING:
    from app.stores.address import Address

PASSING_STATES = frozenset({"57P01", "57P02", "57P03", "53300", "53400", "08000", "08003", "08006", "08P01"})
"""The server stops or starts, is full, or the connection broke."""

READ_ONLY = "25006"
"""A write in a database or a role that is set to read only."""

BUSY_STATES = frozenset({"57014", "40P01", "40001", "55P03"})
"""A statement that waited too long for somebody else's lock, or lost a deadlock: trying again helps."""

LOSING_CLASSES = frozenset({"08", "57", "58", "XX"})
"""Of SQLSTATE: the connection is lost with the statement, or may be."""

SAID_LENGTH = 200
"""Characters of what a server says."""

FAILED_CALL = re.compile(r"(?:\[Errno (?P<errno>\d+)\] )?Connect call failed \('(?P<host>[^']+)'")
"""asyncio's words, one for each address of a name."""


class AllInUse(Exception):
    """Others of this process have every connection that it may have."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """One way in which a connection is not made, known by the error's kind or by words of the server or the pooler."""

    kinds: tuple[type[BaseException], ...] = ()
    words: tuple[str, ...] = ()
    told: str
    again: bool = False
    """Whether a further try within the same seconds may help."""


CONNECTING = (
    # PostgreSQL's and Neon's words for a missing TLS, to be looked at before the kind: a refused sign-in
    Refusal(
        words=("no encryption", "SSL off", "connection is insecure"),
        told="takes no unencrypted connection; set sslmode=require in {name}",
    ),
    Refusal(
        words=("no pg_hba.conf entry",),
        told="lets this user in from other places only; allow this host's address where the database is run",
    ),
    Refusal(
        words=("Tenant or user not found", "tenant/user"),  # Supavisor's
        told="refused the sign-in: its pooler knows no such project; take user (postgres.PROJECT) and host as the "
        "provider shows them into {name}, and see whether the project is paused",
    ),
    Refusal(
        kinds=(asyncpg.InvalidPasswordError, asyncpg.InvalidAuthorizationSpecificationError),
        words=("authentication failed", "no such user", "login rejected"),  # pgbouncer's
        told="refused the sign-in; check user and password in {name}",
    ),
    Refusal(
        kinds=(asyncpg.InvalidCatalogNameError,),
        words=("no such database",),  # pgbouncer's
        told="has no database of that name; check the last part of {name}",
    ),
    Refusal(
        words=("rejected SSL upgrade",),
        told="and this service do not agree on TLS: it offers none; where the way to it is private, set "
        "sslmode=disable in {name}",
    ),
    Refusal(
        words=("Hostname mismatch", "IP address mismatch"),
        told="and this service do not agree on TLS: its certificate is for another host; take the host in {name} from "
        "the certificate, or set sslmode=verify-ca",
    ),
    Refusal(
        kinds=(ssl.SSLCertVerificationError,),
        told="and this service do not agree on TLS: nothing that is trusted vouches for its certificate ({reason}); "
        "name its authority's file as sslrootcert in {name}",
    ),
    Refusal(
        kinds=(ssl.SSLError,),
        words=("SSL",),
        told="and this service do not agree on TLS; check sslmode in {name}",
    ),
    Refusal(
        words=("MaxClientsInSessionMode", "in Session mode", "EMAXCONNSESSION"),  # Supavisor's
        told="has no free connection left for sessions; put the pooler's port for transactions (6543) into {name}",
        again=True,
    ),
    Refusal(
        kinds=(asyncpg.TooManyConnectionsError,),
        words=("no more connections allowed", "Max client connections reached", "max clients reached"),  # poolers'
        told="has no free connection left; run fewer replicas, or put the provider's pooled address into {name}",
        again=True,
    ),
    Refusal(
        kinds=(asyncpg.CannotConnectNowError,),
        words=("the database system is", "connect to compute node"),  # the second is Neon's
        told="is starting up; ring again",
        again=True,
    ),
    Refusal(
        words=("cannot connect to server", "server login has been failing"),  # pgbouncer's
        told="is not reached by its own pooler; see whether the server runs",
        again=True,
    ),
    Refusal(
        kinds=(AllInUse,), told="has all of this process's connections in use; lower the concurrency, or ring again"
    ),
    Refusal(kinds=(socket.gaierror,), told="has a host that nobody knows ({reason}); check it in {name}", again=True),
    Refusal(kinds=(TimeoutError,), told="did not answer in time{at}", again=True),
    Refusal(kinds=(OSError,), told="could not be reached ({reason}){at}", again=True),
    Refusal(kinds=(asyncpg.PostgresError, asyncpg.InterfaceError), told="refused the connection ({said})", again=True),
)
"""What to tell. The first that fits counts."""


def of_connecting(error: Exception, address: Address) -> tuple[DatabaseUnavailable, bool]:
    """What to tell of a connection that could not be made, and whether a further try may help."""
    cause = _cause(error)
    words = str(cause)
    for refusal in CONNECTING:
        if isinstance(cause, refusal.kinds) or any(part in words for part in refusal.words):
            told = refusal.told.format(
                name=address.name, reason=_reason(cause), said=_said(cause), at=_place(address, words)
            )
            return _told(address, told), refusal.again
    raise error


def _reason(cause: BaseException) -> str:
    """Of the system or of TLS, in few words."""
    if isinstance(cause, ssl.SSLCertVerificationError):
        return getattr(cause, "verify_message", "it cannot be verified")  # set by the handshake alone
    called = FAILED_CALL.search(str(cause))
    if called is not None and called.group("errno"):
        return os.strerror(int(called.group("errno")))
    return getattr(cause, "strerror", None) or type(cause).__name__


def _said(cause: BaseException) -> str:
    """The server's own words, which hold no password; the driver's are told by their kind."""
    words = " ".join(str(cause).split())[:SAID_LENGTH]
    return words if words and isinstance(cause, asyncpg.PostgresError) else type(cause).__name__


def _place(address: Address, words: str = "") -> str:
    """By which kind of address it was tried, and what helps where this host has none of that kind."""
    hosts = [address.host] if isinstance(address.host, str) else address.host
    called = [found.group("host") for found in FAILED_CALL.finditer(words)]
    families = sorted({f"IPv{version}" for host in called or hosts if (version := _version(host))})
    told = f" by {' and '.join(families)}; check host and port in {address.name}"
    if not families:
        told = told.replace(" by ", "")
    if all(host.startswith("/") for host in hosts):
        return told
    return f"{told}, or put the provider's pooled address there" + ", which has IPv4 too" * (families != ["IPv4"])


def _version(host: str) -> int | None:
    """Of the Internet Protocol; None: a name, which may be of either, or a socket's folder."""
    with suppress(ValueError):
        return ip_address(host).version
    return None


def unanswered(address: Address) -> DatabaseUnavailable:
    """Nothing came back in time."""
    return _told(address, f"did not answer in time{_place(address)}")


def leaves_sound(error: Exception) -> bool:
    """Whether the connection of a statement that ended so may be used again: the server has refused the statement."""
    state = getattr(error, "sqlstate", None)
    return isinstance(error, asyncpg.PostgresError) and state is not None and state[:2] not in LOSING_CLASSES


def translated(error: Exception, address: Address) -> Exception:
    """A statement's error: ours where the connection or somebody's lock was to blame, else as it is."""
    cause = _cause(error)
    state = getattr(cause, "sqlstate", None)
    if state == READ_ONLY:
        return _told(address, "takes no writes now: it is read-only, as after a failover or on a full disk")
    if state in BUSY_STATES:
        return DatabaseUnavailable(f"the database was busy ({type(cause).__name__})")
    lost = isinstance(error, OSError | TimeoutError) or getattr(error, "connection_invalidated", False)  # SQLAlchemy's
    if lost or state in PASSING_STATES:
        return _told(address, "broke the connection or did not answer in time")
    passing = isinstance(cause, OSError | TimeoutError | asyncpg.InterfaceError | asyncpg.InternalClientError)
    return _told(address, "broke the connection") if passing and not isinstance(cause, ValueError) else error


def is_serialization(error: BaseException | None) -> bool:
    """A statement that lost to another one under a strict isolation, and was rolled back whole: repeat it."""
    return isinstance(error, Exception) and getattr(_cause(error), "sqlstate", None) in {"40001", "40P01"}


def _cause(error: Exception) -> BaseException:
    """The driver's own exception, below SQLAlchemy's wrapping."""
    found: BaseException = error
    while isinstance(inner := getattr(found, "orig", None), BaseException):
        found = inner
    while type(found).__module__.startswith("sqlalchemy.") and found.__cause__ is not None:
        found = found.__cause__
    return found


def _told(address: Address, what: str) -> DatabaseUnavailable:
    return DatabaseUnavailable(f"the database {address.shown} {what}")
