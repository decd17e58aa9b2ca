"""A look at a Redis or Valkey: what it is, and whether it keeps what it is given."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from app.clients.reasons import why
from app.domain.findings import Finding, clock, fail, ok, warn

if TYPE_CHECKING:
    from redis.asyncio import Redis

SECONDS = 5.0
"""Longer than a delivery waits: who sleeps is to be told from who is not there."""

KEEPS_ALL = "noeviction"

PASSWORD = "check user and password in REDIS_URL"  # noqa: S105 - how to, not what
SCHEME = "write rediss:// in place of redis:// in REDIS_URL where the server wants TLS, and the other way round"

MAYBE_TLS = ("TLS", "broke off", "in time")
"""In what is told of a connection: a server waits for ever for a greeting that it understands, or hangs up."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Server:
    """What it says of itself."""

    name: str
    version: str

    role: str
    """`master`, or `slave` for a copy."""

    policy: str
    """What it does with its keys when its memory is full; empty: it does not say."""

    memory_limit: int
    """Bytes; 0: none, or it does not say."""

    ahead_seconds: float
    """Its clock before this machine's."""

    round_trip_ms: float


async def look(url: str) -> list[Finding]:
    """Ask it for what it says of itself. No key is read or written."""
    from redis.asyncio import Redis  # noqa: PLC0415 - most services have none, and it takes a while to import
    from redis.exceptions import AuthenticationError, RedisError, ResponseError  # noqa: PLC0415 - the same

    client = Redis.from_url(
        url, decode_responses=True, socket_timeout=SECONDS, socket_connect_timeout=SECONDS, retry=None
    )
    try:
        return _told(await _asked(client))
    except (AuthenticationError, ResponseError) as error:
        return [fail(f"it refuses to talk ({type(error).__name__})", PASSWORD)]
    except (RedisError, OSError, EOFError, ValueError) as error:
        reason, change = why(error)
        return [fail(reason, f"{change}; {SCHEME}" if any(word in reason for word in MAYBE_TLS) else change)]
    finally:
        await client.aclose()


async def _asked(client: Redis) -> Server:
    about: dict[str, Any] = await client.info()
    begun, wall = time.perf_counter(), time.time()
    seconds, microseconds = await client.time()
    took = time.perf_counter() - begun
    return Server(
        name="Valkey" if "valkey_version" in about else "Redis",
        version=str(about.get("valkey_version") or about.get("redis_version") or "of no known version"),
        role=str(about.get("role", "master")),
        policy=str(about.get("maxmemory_policy", "")),
        memory_limit=_whole(about.get("maxmemory")),
        ahead_seconds=seconds + microseconds / 1e6 - wall - took / 2,
        round_trip_ms=took * 1000,
    )


def _told(server: Server) -> list[Finding]:
    return [
        ok(f"{server.name} {server.version}, {server.round_trip_ms:.1f} ms away")
        if server.role == "master"
        else fail(f"{server.name} {server.version} is a copy, which takes no writes", "name its primary in REDIS_URL"),
        _eviction(server),
        clock(server.ahead_seconds),
    ]


def _eviction(server: Server) -> Finding:
    if not server.policy:
        return ok("it does not say what it does when its memory is full", name="eviction")
    if server.policy == KEEPS_ALL:
        return ok(f"{server.policy}: it forgets nothing before its time", name="eviction")
    if not server.memory_limit and not server.policy.startswith("allkeys"):
        return ok(f"{server.policy}, and no limit to its memory", name="eviction")
    return warn(
        f"{server.policy}: once its memory is full it forgets conversations and answered events, and PostgreSQL is "
        "asked for them",
        f"set maxmemory-policy {KEEPS_ALL}, or give it a database of its own",
        name="eviction",
    )


def _whole(value: object) -> int:
    return value if isinstance(value, int) else 0
