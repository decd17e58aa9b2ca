"""Reads any provider's PostgreSQL URL as it stands.

libpq's keys mean what they mean there; keys of other drivers and poolers are dropped and named in the log; a key
that nobody knows is refused by name. Source of the forms: the providers' own connection pages.
"""

from __future__ import annotations

import ssl
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl, unquote, urlsplit

from app.domain.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from urllib.parse import SplitResult

SCHEMES = frozenset(
    {
        "postgres",
        "postgresql",
        "postgresql+asyncpg",
        "postgresql+psycopg",
        "postgresql+psycopg2",
    },
)

SSL_MODES = ("disable", "allow", "prefer", "require", "verify-ca", "verify-full")

DROPPED = frozenset(
    {
        "channel_binding",
        "client_encoding",
        "command_timeout",
        "connection_limit",
        "fallback_application_name",
        "gssencmode",
        "keepalives",
        "keepalives_count",
        "keepalives_idle",
        "keepalives_interval",
        "krbsrvname",
        "options",
        "pgbouncer",
        "pool_max_conns",
        "pool_max_conn_lifetime",
        "pool_mode",
        "pool_size",
        "pool_timeout",
        "prepared_statement_cache_size",
        "prepareThreshold",
        "schema",
        "socket_timeout",
        "sslcompression",
        "sslnegotiation",
        "statement_cache_size",
        "supa",
        "target_session_attrs",
        "tcp_user_timeout",
        "timeout",
        "uselibpqcompat",
        "workaround",
    },
)
"""Keys that mean something to other drivers or poolers and nothing to this service."""

CONNECT_SECONDS = 10.0
"""asyncpg's own default is 60 s, longer than any tick's budget."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    """Where a database is, as asyncpg takes it."""

    host: str | list[str]
    port: int | list[int]
    user: str | None
    password: str | None = field(repr=False)
    database: str | None
    ssl: ssl.SSLContext | str | bool
    connect_seconds: float
    application_name: str

    dropped: tuple[str, ...] = ()
    """Names of the keys that were ignored, sorted."""

    @property
    def shown(self) -> str:
        """Host and database for people; never the user or the password."""
        host = self.host if isinstance(self.host, str) else ",".join(self.host)
        return f"{host}/{self.database or ''}"


def parse(url: str, *, name: str = "DATABASE_URL") -> Address:
    """The parts of a database URL.

    Raises:
        ConfigError: everything in it that cannot be used, by name; `name` is the variable it came from.
    """
    problems: list[str] = []
    parts = _split(url, name)
    query = _query(parts, name, problems)
    hosts, ports = _hosts(parts, query, name, problems)
    ssl_mode = query.get("sslmode", query.get("ssl", "prefer" if _is_remote(hosts) else "disable"))
    ssl_mode = {"true": "require", "1": "require", "false": "disable", "0": "disable"}.get(ssl_mode, ssl_mode)
    security = _security(ssl_mode, query, name, problems)
    seconds = _seconds(query.get("connect_timeout"), name, problems)
    if problems:
        raise ConfigError(problems)
    return Address(
        host=hosts[0] if len(hosts) == 1 else hosts,
        port=ports[0] if len(ports) == 1 else ports,
        user=query.get("user") or _decoded(parts.username),
        password=query.get("password") or _decoded(parts.password),
        database=query.get("dbname") or unquote(parts.path.lstrip("/")) or None,
        ssl=security,
        connect_seconds=seconds,
        application_name=query.get("application_name", "wakebell"),
        dropped=tuple(sorted(DROPPED & query.keys())),
    )


def _split(url: str, name: str) -> SplitResult:
    if not url:
        raise ConfigError([f"{name}: is not set; give your PostgreSQL's address, postgresql://user:password@host/name"])
    try:
        parts = urlsplit(url)
    except ValueError:
        raise ConfigError([f"{name}: is not an address; it looks like postgresql://user:password@host/name"]) from None
    if parts.scheme not in SCHEMES:
        told = f'"{parts.scheme}://"' if "://" in url else "no scheme"
        raise ConfigError([f"{name}: begins with {told}; it must begin with postgresql:// or postgres://"])
    return parts


KNOWN = frozenset({"sslmode", "ssl", "sslrootcert", "sslcert", "sslkey", "connect_timeout", "application_name"})
PLACES = frozenset({"host", "port", "user", "password", "dbname"})


def _query(parts: SplitResult, name: str, problems: list[str]) -> dict[str, str]:
    query = dict(parse_qsl(parts.query, keep_blank_values=True))
    unknown = sorted(query.keys() - KNOWN - PLACES - DROPPED)
    problems += [f'{name}: the key "{key}" is not known; remove it' for key in unknown]
    return {key: value for key, value in query.items() if value}


def _hosts(parts: SplitResult, query: Mapping[str, str], name: str, problems: list[str]) -> tuple[list[str], list[int]]:
    """As libpq does: several hosts, a socket folder as `host=`, and one port for each host or for all."""
    netloc = parts.netloc.rpartition("@")[2]
    found = [_host_and_port(entry) for entry in netloc.split(",")] if netloc else []
    hosts = [unquote(host) for host, _ in found if host]
    if "host" in query:
        hosts = query["host"].split(",")
    ports = query["port"].split(",") if "port" in query else [port for _, port in found if port]
    if not hosts:
        problems.append(f"{name}: names no host; it looks like postgresql://user:password@host/name")
    numbers = [int(port) if port.isascii() and port.isdigit() else 0 for port in ports] or [5432]
    if any(not 1 <= number <= 65535 for number in numbers):  # noqa: PLR2004 - the range of TCP
        problems.append(f"{name}: the port must be a number from 1 to 65535")
    if len(numbers) == 1:
        numbers *= max(len(hosts), 1)
    elif len(numbers) != len(hosts):
        problems.append(f"{name}: has {len(hosts)} hosts and {len(numbers)} ports; give one port, or one for each host")
    return hosts, numbers


def _host_and_port(entry: str) -> tuple[str, str]:
    if entry.startswith("["):
        host, _, rest = entry[1:].partition("]")
        return host, rest.removeprefix(":")
    host, _, port = entry.partition(":")
    return host, port


def _is_remote(hosts: list[str]) -> bool:
    return not all(host.startswith("/") or host in {"localhost", "127.0.0.1", "::1"} for host in hosts)


def _decoded(value: str | None) -> str | None:
    return None if value is None else unquote(value)


def _seconds(value: str | None, name: str, problems: list[str]) -> float:
    if value is None:
        return CONNECT_SECONDS
    if not (value.isascii() and value.isdigit()):
        problems.append(f'{name}: connect_timeout must be a whole number of seconds, not "{value}"')
        return CONNECT_SECONDS
    return min(float(value), CONNECT_SECONDS) or CONNECT_SECONDS


def _security(mode: str, query: Mapping[str, str], name: str, problems: list[str]) -> ssl.SSLContext | str | bool:
    """By libpq's rules: `require` encrypts and verifies only against a given root; `verify-*` always verify."""
    if mode not in SSL_MODES:
        problems.append(f'{name}: sslmode "{mode}" is not known; it is one of {", ".join(SSL_MODES)}')
        return False
    if mode == "disable":
        return False
    root = query.get("sslrootcert")
    if mode in {"allow", "prefer"} or (mode == "require" and not root and "sslcert" not in query):
        return mode
    try:
        return _context(mode, root, query)
    except OSError as error:
        problems.append(f"{name}: a certificate file cannot be read: {error.strerror or error}")
        return False


def _context(mode: str, root: str | None, query: Mapping[str, str]) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=None if root in {None, "system"} else root)
    context.check_hostname = mode == "verify-full" or root == "system"
    if mode == "require" and not root:
        context.verify_mode = ssl.CERT_NONE
    if "sslcert" in query:
        context.load_cert_chain(query["sslcert"], query.get("sslkey"))
    return context
