"""What the environment says: the one place that reads it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, cast
from urllib.parse import urlsplit

from app.settings.dotenv import read_dotenv

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from app.settings.model import DatabaseAddress, Environment, LogFormat
    from app.settings.problems import Problems

DOTENV = Path(".env")

SECRET_LENGTH = 16
"""Characters that a bearer token has at least; shorter ones can be guessed."""

MAKE_SECRET = "make one with: openssl rand -hex 32"  # noqa: S105 - how to, not what
COPY_KEY = "copy it from the QStash console"

QSTASH_KEYS = ("QSTASH_CURRENT_SIGNING_KEY", "QSTASH_NEXT_SIGNING_KEY")

PLACEHOLDERS = frozenset({"none", "null", "undefined", "nil", "nan", "false", "true"})
"""What programs write into a variable that they have no value for."""

ON = ("1", "true", "yes", "on")
OFF = ("0", "false", "no", "off")
LOG_FORMATS = ("json", "console")
LOG_LEVELS = ("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL")
REDIS_SCHEMES = ("redis", "rediss")
PORTS = range(1, 65536)
QUOTES = ("'", '"')


def from_process(dotenv: Path = DOTENV) -> dict[str, str]:
    """This process's environment, over what the file `.env` in the working directory adds to it.

    Raises:
        ConfigError: the file cannot be read.
    """
    return {**read_dotenv(dotenv), **os.environ}


def load_database(environ: Mapping[str, str]) -> DatabaseAddress:
    """The database's addresses and nothing else: no configuration file and no secret need be there."""
    from app.settings.model import DatabaseAddress  # noqa: PLC0415 - here and below: who binds a port waits for none

    return DatabaseAddress(
        url=_unquoted(_get(environ, "DATABASE_URL")),
        migration_url=_unquoted(_get(environ, "MIGRATION_DATABASE_URL")),
        auto_migrate=(_get(environ, "AUTO_MIGRATE") or "").lower() in ON,
    )


def read_environment(
    environ: Mapping[str, str], config_path: Path, problems: Problems, *, need: Collection[str]
) -> Environment:
    """`need` names the variables that the caller cannot do without. Problems are told, not raised."""
    from app.settings.model import Environment  # noqa: PLC0415

    for name in sorted(need):
        if not _get(environ, name):
            remedy = MAKE_SECRET if name in {"CRON_SECRET", "API_TOKEN"} else "set it"
            problems.add(name, f"is {'empty' if name in environ else 'not set'}; {remedy}")
    database = load_database(environ)
    secrets = [_secret(environ, name, problems) for name in ("CRON_SECRET", "CRON_SECRET_PREVIOUS")]
    cron_secrets = tuple(dict.fromkeys(secret for secret in secrets if secret))
    api_token = _secret(environ, "API_TOKEN", problems)
    if api_token and api_token in cron_secrets:
        problems.add("API_TOKEN", f"is the same as the cron secret, which the scheduler knows; {MAKE_SECRET}")
    return Environment(
        database_url=database.url,
        migration_database_url=database.migration_url,
        auto_migrate=_choice(environ, "AUTO_MIGRATE", (*ON, *OFF), "0", problems) in ON,
        cron_secrets=cron_secrets,
        api_token=api_token,
        qstash_keys=_qstash_keys(environ, problems),
        config_path=config_path,
        port=_port(environ, problems),
        host=_host(environ),
        public_url=_address(environ, "PUBLIC_URL", problems),
        log_format=cast("LogFormat", _choice(environ, "LOG_FORMAT", LOG_FORMATS, "json", problems)),
        log_level=_choice(environ, "LOG_LEVEL", LOG_LEVELS, "INFO", problems),
        heartbeat_url=_address(environ, "HEARTBEAT_URL", problems),
        redis_url=_redis(environ, problems),
    )


def config_path_of(environ: Mapping[str, str]) -> Path:
    """Where the configuration file is, as it was given: relative to the working directory."""
    return Path(_get(environ, "WAKEBELL_CONFIG") or "wakebell.toml")


def listening(environ: Mapping[str, str]) -> tuple[str, int] | None:
    """Host and port, for who listens before the rest is read; None: the port is none."""
    port = _port_of(_get(environ, "PORT") or "8080")
    return None if port is None else (_host(environ), port)


def heartbeat_url_of(environ: Mapping[str, str]) -> str | None:
    """The switch's address where it can be used, whatever else is wrong."""
    url = _get(environ, "HEARTBEAT_URL")
    return url if url and is_address(url) else None


def _get(environ: Mapping[str, str], name: str) -> str | None:
    """None for an empty variable: hosts' forms and `PORT=` leave such behind."""
    return environ.get(name, "").strip() or None


def _unquoted(url: str | None) -> str | None:
    """Without the quotes that were pasted along, and that `docker --env-file` keeps."""
    if url and len(url) > 1 and url[0] in QUOTES and url[-1] == url[0]:
        return url[1:-1].strip() or None
    return url


def _qstash_keys(environ: Mapping[str, str], problems: Problems) -> tuple[bytes, ...]:
    """Those that sign QStash's rings; the console shows them in quotes, which some hosts keep."""
    unquoted = {name: _unquoted(_get(environ, name)) or "" for name in QSTASH_KEYS}
    keys = [_secret(unquoted, name, problems, remedy=COPY_KEY) for name in QSTASH_KEYS]
    named = next((name for name in QSTASH_KEYS if unquoted[name]), None)
    if named is not None and _get(environ, "PUBLIC_URL") is None:
        remedy = "set it to the address that QStash rings, which it signs, or remove the key"
        problems.add("PUBLIC_URL", f"is not set, and {named} is; {remedy}")
    return tuple(dict.fromkeys(key for key in keys if key))


def _secret(environ: Mapping[str, str], name: str, problems: Problems, *, remedy: str = MAKE_SECRET) -> bytes | None:
    """A secret as bytes, which may be any but control characters; None where it is not set or is refused."""
    from app.settings.table import has_control  # noqa: PLC0415

    secret = _get(environ, name)
    if secret is None:
        return None
    if secret.lower() in PLACEHOLDERS:
        problems.add(name, f"holds a placeholder, as programs write it for a missing value; {remedy}")
    elif len(secret) < SECRET_LENGTH:
        problems.add(name, f"is shorter than {SECRET_LENGTH} characters and could be guessed; {remedy}")
    elif has_control(secret):
        problems.add(name, f"holds a line end or another control character, which no header can carry; {remedy}")
    else:
        return secret.encode("utf-8", "surrogateescape")  # the very bytes of the environment, UTF-8 or not
    return None


def _host(environ: Mapping[str, str]) -> str:
    return _get(environ, "HOST") or "0.0.0.0"  # noqa: S104 - a container is reached from outside


def _port(environ: Mapping[str, str], problems: Problems) -> int:
    from app.settings.problems import shown  # noqa: PLC0415

    text = _get(environ, "PORT") or "8080"
    if (port := _port_of(text)) is not None:
        return port
    problems.add("PORT", f"must be a whole number from 1 to {PORTS[-1]}, not {shown(text)}; set PORT=8080 or remove it")
    return 8080


def _port_of(text: str) -> int | None:
    if text.isascii() and text.isdigit() and len(text) <= len("65535") and int(text) in PORTS:
        return int(text)
    return None


def _choice(environ: Mapping[str, str], name: str, choices: tuple[str, ...], default: str, problems: Problems) -> str:
    from app.settings.problems import shown  # noqa: PLC0415

    text = _get(environ, name) or default
    for choice in choices:
        if text.lower() == choice.lower():
            return choice
    problems.add(name, f"must be one of {', '.join(choices)}, not {shown(text)}; set {name}={default} or remove it")
    return default


def _address(environ: Mapping[str, str], name: str, problems: Problems) -> str | None:
    """An http or https address without a slash at its end. It is never repeated in a problem: it may be a secret."""
    text = _get(environ, name)
    if text is None or is_address(text):
        return text.rstrip("/") if text and name == "PUBLIC_URL" else text
    problems.add(name, "must be an http or https address; write it like https://wakebell.example")
    return None


def _redis(environ: Mapping[str, str], problems: Problems) -> str | None:
    """Where conversations are remembered. It is never repeated in a problem: it mostly holds a password."""
    text = _unquoted(_get(environ, "REDIS_URL"))
    if text is None:
        return None
    try:
        parts = urlsplit(text)
        fits = parts.scheme in REDIS_SCHEMES and bool(parts.hostname) and (parts.port is None or parts.port > 0)
    except ValueError:
        fits = False
    if not fits:
        remedy = "write it like rediss://default:PASSWORD@host:6379, or remove it: PostgreSQL does without"
        problems.add("REDIS_URL", f"must be a redis:// or rediss:// address; {remedy}")
        return None
    return text


def is_address(text: str) -> bool:
    """Whether it is an absolute http or https address with a host."""
    try:
        parts = urlsplit(text)
        return (
            parts.scheme in {"http", "https"}
            and bool(parts.hostname)
            and parts.port != 0
            and not any(c.isspace() for c in text)
        )
    except ValueError:  # a port that is no number, a bracket that is not closed
        return False
