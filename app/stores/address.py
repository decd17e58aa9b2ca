"""Reads any provider's PostgreSQL URL as it stands.

libpq's keys mean what they mean there; keys of other drivers and poolers are dropped and named in the log; a key
that nobody knows is refused by name. Source of the forms: the providers' own connection pages.
"""

from __future__ import annotations

import re
import ssl
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from urllib.parse import unquote

from app.domain.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Mapping

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

OTHER_SSL_MODES = {"true": "require", "1": "require", "no-verify": "require", "false": "disable", "0": "disable"}
"""What drivers of other languages write."""

SESSIONS = ("any", "primary", "standby", "read-write", "read-only", "prefer-standby")
"""Which of several hosts will do, as libpq names them."""

DROPPED = frozenset(
    {
        "channel_binding",
        "client_encoding",
        "command_timeout",
        "connection_limit",
        "currentSchema",
        "fallback_application_name",
        "gssencmode",
        "keepalives",
        "keepalives_count",
        "keepalives_idle",
        "keepalives_interval",
        "krbsrvname",
        "load_balance_hosts",
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

    session: str = "any"
    """What a host must offer to be taken, of several the first that does."""

    name: str = "DATABASE_URL"
    """The variable it came from."""

    dropped: tuple[str, ...] = ()
    """Names of the keys that were ignored, sorted."""

    @property
    def shown(self) -> str:
        """Host and database for people; never the user or the password."""
        host = self.host if isinstance(self.host, str) else ",".join(self.host)
        return f"{host}/{self.database or ''}"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Parts:
    """A URL cut up and not yet decoded. Not by `urlsplit`, which trips over `[`, `?` and `#` in a password."""

    user: str
    password: str
    hosts: str
    path: str
    query: str


def parse(url: str, *, name: str = "DATABASE_URL") -> Address:
    """The parts of a database URL.

    Raises:
        ConfigError: everything in it that cannot be used, by name; `name` is the variable it came from.
    """
    problems: list[str] = []
    parts = _split(url, name)
    query = _query(parts, name, problems)
    hosts, ports = _hosts(parts, query, name, problems)
    security = _security(_ssl_mode(query, hosts), query, name, problems)
    seconds = _seconds(query.get("connect_timeout"), name, problems)
    session = query.get("target_session_attrs", "any")
    if session not in SESSIONS:
        problems.append(f"{name}: target_session_attrs is not known; it is one of {', '.join(SESSIONS)}")
    if problems:
        raise ConfigError(problems)
    return Address(
        host=hosts[0] if len(hosts) == 1 else hosts,
        port=ports[0] if len(ports) == 1 else ports,
        user=query.get("user") or unquote(parts.user) or None,
        password=query.get("password") or unquote(parts.password) or None,
        database=query.get("dbname") or unquote(parts.path) or None,
        ssl=security,
        connect_seconds=seconds,
        application_name=query.get("application_name", "wakebell"),
        session=session,
        name=name,
        dropped=tuple(sorted(DROPPED & query.keys())),
    )


SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*")
EXAMPLE = "postgresql://user:password@host/name"


def _split(url: str, name: str) -> _Parts:
    """As libpq does: the user and the password end at an `@` before the first slash, whatever else is in them."""
    url = url.strip()
    if not url:
        raise ConfigError([f"{name}: is not set; give your PostgreSQL's address, {EXAMPLE}"])
    if url.startswith("psql "):
        raise ConfigError([f'{name}: begins with "psql"; give the address alone, without that word and the quotes'])
    scheme, separator, rest = url.partition("://")
    if not (separator and scheme.lower() in SCHEMES):
        told = f'"{scheme}://"' if separator and SCHEME.fullmatch(scheme) else "no scheme that is known"
        raise ConfigError([f"{name}: begins with {told}; it must begin with postgresql:// or postgres://"])
    if any(ord(letter) <= ord(" ") for letter in rest) or "%00" in rest:
        raise ConfigError([f"{name}: holds a space or a control character; write a space in it as %20"])
    login, slash, _ = rest.partition("/")
    secret, at, _ = login.rpartition("@") if slash else login.partition("?")[0].rpartition("@")
    after = rest[len(secret) + len(at) :]
    place, _, query = after.partition("?")
    if "@" in place or _holds_a_password(query):
        raise ConfigError([f"{name}: has a slash or a ? in its password; write / as %2F, ? as %3F and @ as %40"])
    user, _, password = secret.partition(":")
    hosts, _, path = place.partition("/")
    return _Parts(user=user, password=password, hosts=hosts, path=path, query=query)


def _holds_a_password(query: str) -> bool:
    """Whether an `@` stands where no value has one: then its keys are parts of a secret, and must not be told."""
    pairs = [pair.partition("=") for pair in query.split("&")]
    return any("@" in key or ("@" in value and key not in KNOWN | PLACES | DROPPED) for key, _, value in pairs)


KNOWN = frozenset(
    {
        "application_name",
        "connect_timeout",
        "ssl",
        "sslcert",
        "sslkey",
        "sslmode",
        "sslpassword",
        "sslrootcert",
        "target_session_attrs",
    },
)
PLACES = frozenset({"host", "port", "user", "password", "dbname"})


def _query(parts: _Parts, name: str, problems: list[str]) -> dict[str, str]:
    """The last of a repeated key counts, and a plus is a plus: both as in libpq."""
    pairs = [pair.partition("=") for pair in parts.query.split("&") if pair]
    query = {unquote(key): unquote(value) for key, _, value in pairs}
    unknown = sorted(query.keys() - KNOWN - PLACES - DROPPED)
    problems += [f'{name}: the key "{key[:60]}" is not known; remove it' for key in unknown]
    return {key: value for key, value in query.items() if value}


def _hosts(parts: _Parts, query: Mapping[str, str], name: str, problems: list[str]) -> tuple[list[str], list[int]]:
    """As libpq: several hosts, a socket folder as `host=`, and one port for each host or `port=` for all."""
    found = [_host_and_port(entry) for entry in parts.hosts.split(",")] if parts.hosts else []
    hosts = query["host"].split(",") if "host" in query else [unquote(host) for host, _ in found]
    ports = query["port"].split(",") if "port" in query else [port for _, port in found] or [""]
    if not all(hosts) or not hosts:
        problems.append(f"{name}: names no host; it looks like {EXAMPLE}")
    numbers = [_port(port) for port in ports]
    if 0 in numbers:
        problems.append(f"{name}: the port must be a number from 1 to 65535")
    if len(numbers) == 1:
        numbers *= max(len(hosts), 1)
    elif len(numbers) != len(hosts):
        problems.append(f"{name}: has {len(hosts)} hosts and {len(numbers)} ports; give one port, or one for each host")
    return hosts, numbers


def _port(text: str) -> int:
    """0 for what is none."""
    if not text:
        return 5432
    number = int(text) if text.isascii() and text.isdigit() and len(text) <= len("65535") else 0
    return number if number <= 65535 else 0  # noqa: PLR2004 - the range of TCP


def _host_and_port(entry: str) -> tuple[str, str]:
    if entry.startswith("["):
        host, _, rest = entry[1:].partition("]")
        return host, rest.removeprefix(":")
    host, _, port = entry.partition(":")
    return host, port


def _is_remote(hosts: list[str]) -> bool:
    return not all(host.startswith("/") or host in {"localhost", "127.0.0.1", "::1"} for host in hosts)


def _ssl_mode(query: Mapping[str, str], hosts: list[str]) -> str:
    """As libpq: by default `prefer`, and `verify-full` with the system's roots."""
    usual = "prefer" if _is_remote(hosts) else "disable"
    if query.get("sslrootcert") == "system":
        usual = "verify-full"
    given = query.get("sslmode", query.get("ssl", usual))
    return OTHER_SSL_MODES.get(given, given)


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
    root = query.get("sslrootcert")
    if root == "system" and mode in {"disable", "allow", "prefer"}:
        problems.append(f"{name}: sslrootcert=system needs sslmode=verify-full, not {mode}")
        return False
    if mode == "disable":
        return False
    wanted = "sslcert" in query or (root and mode not in {"allow", "prefer"})
    if mode in {"allow", "prefer", "require"} and not wanted:
        return mode
    try:
        return _context(mode, root, query)
    except OSError as error:
        reason = error.strerror or type(error).__name__
        problems.append(f"{name}: a certificate file of sslrootcert, sslcert or sslkey cannot be used: {reason}")
        return False


def _context(mode: str, root: str | None, query: Mapping[str, str]) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=None if root in {None, "system"} else root)
    context.check_hostname = mode == "verify-full" or root == "system"
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT  # Python 3.13's default; libpq takes roots that it refuses
    if mode in {"allow", "prefer"} or (mode == "require" and not root):
        context.verify_mode = ssl.CERT_NONE
    if "sslcert" in query:
        # A password even where none is given: OpenSSL would ask for it on the terminal.
        context.load_cert_chain(query["sslcert"], query.get("sslkey"), query.get("sslpassword", ""))
    return context
