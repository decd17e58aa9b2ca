"""Names: whether this machine finds every host that the service speaks to, and has a way to what it finds."""

from __future__ import annotations

from functools import partial
from ipaddress import ip_address
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from app import plugins
from app.clients import reaching
from app.clients.guard import is_public
from app.clients.reasons import why
from app.doctor.looks import Look
from app.domain.errors import ConfigError
from app.domain.findings import Finding, fail, ok, skipped, warn
from app.settings import INBOX
from app.stores.address import parse

if TYPE_CHECKING:
    from collections.abc import Iterator
    from urllib.parse import SplitResult

    from app.settings import Settings

POOLED = (
    "put the provider's pooled address into {name}, which has IPv4 (Supabase: Connect, Transaction pooler or Session "
    "pooler), or give this machine IPv6"
)
NO_IPV6 = "give this machine IPv6, or take an address that has IPv4"
HERE = "set PUBLIC_URL to the address by which people and providers reach this service"

USUAL_PORTS = {"https": 443, "http": 80, "smtp": 25}


def looks(settings: Settings) -> list[Look]:
    """One for each host, whoever speaks to it."""
    environment = settings.environment
    addresses = [
        *_databases(environment.database_url, "DATABASE_URL"),
        *_databases(environment.migration_database_url, "MIGRATION_DATABASE_URL"),
    ]
    by_host = {host: partial(_database, host, port, name) for host, port, name in reversed(addresses)}
    found = [Look(name=f"dns {host}", work=by_host[host]) for host in dict.fromkeys(host for host, *_ in addresses)]
    if environment.public_url is not None:
        found.append(_look(environment.public_url, public=True))
    known = {look.name for look in found}
    outside = dict.fromkeys(_outside(settings))
    proxies = {proxy.netloc.rpartition("@")[2]: proxy for url in outside if (proxy := reaching.proxy_of(url))}
    found += [Look(name=f"proxy {where}", work=partial(_proxy, proxy)) for where, proxy in proxies.items()]
    for url in outside:
        look = _look(url)
        if look.name not in known and not _is_number(urlsplit(url).hostname or ""):
            known.add(look.name)
            found.append(look)
    return found


def origin_of(module: Any, options: Any) -> str | None:
    """Scheme, host and port that a channel's messages go to; None: it does not say."""
    if hasattr(module, "origin"):
        return str(module.origin(options))
    base_url = getattr(options, "base_url", None)
    return None if base_url is None else str(base_url)


def _look(url: str, *, public: bool = False) -> Look:
    return Look(name=f"dns {urlsplit(url).hostname}", work=partial(_found, url, public=public))


def _databases(url: str | None, name: str) -> Iterator[tuple[str, int, str]]:
    try:
        address = parse(url or "", name=name)
    except ConfigError:  # told by the look at the database, or by none at all
        return
    hosts = [address.host] if isinstance(address.host, str) else address.host
    ports = [address.port] if isinstance(address.port, int) else address.port
    named = zip(hosts, ports, strict=True)
    yield from ((host, port, name) for host, port in named if not (host.startswith("/") or _is_number(host)))


def _is_number(host: str) -> bool:
    """An address, which nobody has to be asked for."""
    try:
        ip_address(host)
    except ValueError:
        return False
    return True


def _outside(settings: Settings) -> Iterator[str]:
    for channel in settings.channels.values():
        if channel.kind != INBOX:
            origin = origin_of(plugins.load("app.channels", channel.kind), channel.options)
            yield from () if origin is None else (origin,)
    for chat in settings.chats.values():
        yield str(chat.account.base_url)  # type: ignore[attr-defined]  # an Account has one
        yield from () if chat.model is None else (chat.model.url,)
    yield from filter(None, [settings.environment.redis_url, settings.environment.heartbeat_url])


async def _database(host: str, port: int, name: str) -> list[Finding]:
    try:
        found = await reaching.names(host, port)
    except (OSError, UnicodeError) as error:
        reason, change = why(error)
        return [fail(reason, f"{change}, and the host in {name}")]
    return [_ways(found, change=POOLED.format(name=name))]


async def _found(url: str, *, public: bool) -> list[Finding]:
    parts = urlsplit(url)
    proxy = None if public else reaching.proxy_of(url)
    if proxy is not None:
        return [skipped(f"the proxy {proxy.hostname} of the environment looks it up")]
    try:
        found = await reaching.names(parts.hostname or "", parts.port or USUAL_PORTS.get(parts.scheme, 0))
    except (OSError, UnicodeError) as error:
        return [fail(*why(error))]
    if public and not any(is_public(one) for one in (*found.ipv4, *found.ipv6)):
        return [warn(f"{found.families}, and all of it in a private network: nobody outside reaches it", HERE)]
    return [_ways(found, change=NO_IPV6)]


async def _proxy(proxy: SplitResult) -> list[Finding]:
    try:
        await reaching.listens(proxy.hostname or "", proxy.port or reaching.PORT_BY_SCHEME["http"])
    except (OSError, ValueError) as error:
        reason, change = why(error)
        return [fail(reason, f"{change}, and HTTPS_PROXY, HTTP_PROXY, ALL_PROXY and NO_PROXY")]
    return [ok("it is reached; the environment sends requests by it")]


def _ways(found: reaching.Names, *, change: str) -> Finding:
    if found.ipv6 and not found.ipv4 and not reaching.speaks_ipv6():
        return fail("it has an IPv6 address alone, and this machine has no way to IPv6", change)
    return ok(found.families)
