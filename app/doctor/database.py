"""The database: whether it is reached and how, what stands between, and whether this role may use what is in it."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING

from app import settings
from app.doctor import ticks
from app.doctor.looks import Look
from app.domain import findings
from app.domain.errors import ConfigError, ServiceError
from app.domain.findings import Finding, fail, ok, skipped, warn
from app.stores import over
from app.stores.database import connect
from app.stores.examination import Examination
from app.stores.schema import OLDEST_SERVER, schema_state, unfit

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from app.settings import Settings
    from app.stores.database import Database
    from app.stores.examination import Between, Rights, Server
    from app.stores.schema import SchemaState

SECONDS = 45.0
"""A database that sleeps is waited for, and there is much to be asked."""

NEWEST_SERVER = 18
"""The last one that the tests have seen."""

FAR_MS = 100.0
"""A tick asks some dozens of times."""

FULL_SHARE = 0.8
"""Of the connections; a replica may want six."""

BETWEEN: dict[Between, str] = {
    "nothing": "none: every connection is the server's own",
    "session": "one that lends a connection for a session, or a proxy that acts like one; any will do",
    "transaction": "one that lends connections for a transaction; it will do, for no state is kept in a session",
}

POOLERS_NAMES = ("-pooler.", ".pooler.", "pgbouncer.")
"""In the hosts of Neon, Supabase and Fly."""

SHOWN = 3
"""Tables that are named."""


def looks(environ: Mapping[str, str], configured: Settings | None, known: Sequence[str]) -> list[Look]:
    """At the database, and at the direct address for migrations where there is one."""
    address = settings.load_database(environ)
    look = partial(_database, address.url, configured, known, auto=address.auto_migrate)
    found = [Look(name="database", work=look, seconds=SECONDS)]
    if address.migration_url is not None:
        found.append(Look(name="migrations", work=partial(_migrations, address.migration_url), seconds=SECONDS))
    return found


async def _database(
    url: str | None, configured: Settings | None, known: Sequence[str], *, auto: bool = False
) -> list[Finding]:
    if url is None:
        return [fail(known[0] if known else "DATABASE_URL is not set", "" if known else "set it to your PostgreSQL's")]
    try:
        database = connect(url)
    except ConfigError as error:
        return [fail(problem) for problem in error.problems]
    async with database.held():
        try:
            server = await Examination(database).server()
        except ServiceError as error:  # its sentence says what to change
            return [fail(str(error))]
        found = [*_server(server, database), await _pooler(database)]
        return found + await _inside(database, configured, auto=auto)


async def _inside(database: Database, configured: Settings | None, *, auto: bool) -> list[Finding]:
    """What needs the schema."""
    try:
        state = await schema_state(database)
    except ServiceError as error:
        return [fail(str(error), name="schema")]
    if state == "missing":
        return [_schema(state, auto=auto), skipped("there is no schema yet", name="rings")]
    rights = await Examination(database).rights()
    found = [_schema(state, auto=auto), *([] if rights is None else [_rights(rights)])]
    if state == "behind" or any(one.status == "fail" for one in found) or configured is None:
        return [*found, skipped("they cannot be read yet", name="rings")]
    return [*found, *await ticks.look(over(database), configured)]


async def _migrations(url: str) -> list[Finding]:
    try:
        database = connect(url, name="MIGRATION_DATABASE_URL")
    except ConfigError as error:
        return [fail(problem) for problem in error.problems]
    async with database.held():
        try:
            between = await Examination(database).between()
        except ServiceError as error:
            return [fail(str(error))]
    told = "MIGRATION_DATABASE_URL is reached"
    return [ok(told if between == "nothing" else f"{told}, through a pooler, which will do")]


def _server(server: Server, database: Database) -> list[Finding]:
    major, far = server.version_number // 10000, server.round_trip_ms > FAR_MS
    where = f"PostgreSQL {server.version.split()[0]} at {database.address.shown}, {server.round_trip_ms:.1f} ms away"
    taken = f"connected in {server.connect_ms:.0f} ms"
    found = [ok(f"{where}, {taken}")]
    if far:
        found = [
            warn(f"{where}, {taken}", "run the service in the database's region: a tick asks some dozens of times")
        ]
    if (unusable := unfit(server.encoding, server.version_number)) is not None:
        found = [fail(unusable)]
    elif major > NEWEST_SERVER:
        found.append(
            warn(
                f"PostgreSQL {major} is newer than this release knows",
                f"{OLDEST_SERVER} to {NEWEST_SERVER} are tested; look for a newer release of Wakebell",
                name="version",
            )
        )
    return [
        *found,
        _tls(server, database),
        findings.clock(server.ahead_seconds, doubt_seconds=server.doubt_seconds),
        _connections(server),
        *_ways_of_writing(server),
    ]


def _tls(server: Server, database: Database) -> Finding:
    hosts = [database.address.host] if isinstance(database.address.host, str) else database.address.host
    near = all(host.startswith("/") or host in {"localhost", "127.0.0.1", "::1"} for host in hosts)
    if server.tls is None and near:
        return ok("none, and none is needed: the server is on this machine", name="tls")
    if server.tls is None:
        return warn(
            "none: whoever is between reads all of it, the password too where it is asked for in the clear",
            f"set sslmode=require in {database.address.name}, unless the way is a private network",
            name="tls",
        )
    if server.tls.verified:
        return ok(f"{server.tls.version}, and the certificate is verified", name="tls")
    more = "; sslmode=verify-full with sslrootcert=system, or the provider's file, verifies it too"
    return ok(f"{server.tls.version}, and the certificate is not verified{more}", name="tls")


def _connections(server: Server) -> Finding:
    told = f"{server.connections} of {server.most_connections} are in use"
    if server.connections <= FULL_SHARE * server.most_connections:
        return ok(told, name="connections")
    return warn(told, "take the provider's pooled address, or end what holds the others", name="connections")


def _ways_of_writing(server: Server) -> list[Finding]:
    found = []
    if server.read_only:
        found.append(
            fail(
                "it takes no writes: it is a copy, or set to read-only",
                "name the primary, and look at default_transaction_read_only and at the disk",
                name="writing",
            )
        )
    if server.isolation != "read committed":
        found.append(
            warn(
                f"transactions are {server.isolation} where nothing else is said: statements that meet are repeated",
                "ALTER ROLE ... SET default_transaction_isolation = 'read committed'",
                name="isolation",
            )
        )
    return found


async def _pooler(database: Database) -> Finding:
    try:
        async with asyncio.timeout(SECONDS / 3):
            between = await Examination(database).between()
    except (ServiceError, TimeoutError):
        return warn("a second connection was not to be had", "look at the limits of pooler and server", name="pooler")
    hosts = database.address.host if isinstance(database.address.host, list) else [database.address.host]
    if between == "nothing" and any(part in host for host in hosts for part in POOLERS_NAMES):
        return ok("the host's name says that there is one, and it does nothing that could be seen", name="pooler")
    return ok(BETWEEN[between], name="pooler")


def _schema(state: SchemaState, *, auto: bool = False) -> Finding:
    if state == "current":
        return ok("it is this release's", name="schema")
    if state == "ahead":
        return ok("it is a newer release's, which serves this one too", name="schema")
    found = "it is an older release's" if state == "behind" else "there is none"
    if auto:
        return warn(found, "AUTO_MIGRATE brings it up when the service starts, or with the next request", name="schema")
    return fail(found, "run `wakebell migrate`", name="schema")


def _rights(rights: Rights) -> Finding:
    who = f"the role {rights.role}"
    owner = "use the role that ran `wakebell migrate`"
    if not rights.enters:
        return fail(f"{who} may not use the schema wakebell", owner, name="rights")
    if rights.closed:
        return fail(f"{who} may not read and write {_some(rights.closed)}", owner, name="rights")
    if rights.hidden:
        return fail(
            f"{who} does not own {_some(rights.hidden)}, and row level security hides all rows from it",
            f"{owner}, or make this one a member of it",
            name="rights",
        )
    return ok(f"{who} may read and write all tables", name="rights")


def _some(tables: Sequence[str]) -> str:
    more = f" and {len(tables) - SHOWN} more tables" if len(tables) > SHOWN else ""
    return ", ".join(tables[:SHOWN]) + more
