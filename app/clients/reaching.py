"""Whether a host can be found and spoken to: name, certificate, the proxy on the way. It is asked for nothing."""

from __future__ import annotations

import asyncio
import base64
import socket
import ssl
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit
from urllib.request import getproxies, proxy_bypass

from app.clients.reasons import ProxyRefused
from app.threads import in_thread

if TYPE_CHECKING:
    from urllib.parse import SplitResult

PORT_BY_SCHEME = {"https": 443, "http": 80}

FAR = ("2001:db8::1", 53)
"""RFC 3849, an address for documentation: whoever has a way to it has one to all of IPv6."""

HEAD_BYTES = 16 * 1024
"""Of a proxy's answer."""

TAKEN = b"200"


@dataclass(frozen=True, slots=True, kw_only=True)
class Names:
    """Where a host is."""

    ipv4: tuple[str, ...]
    ipv6: tuple[str, ...]

    @property
    def families(self) -> str:
        """`IPv4 and IPv6`, or the one there is."""
        told = [name for name, found in (("IPv4", self.ipv4), ("IPv6", self.ipv6)) if found]
        return " and ".join(told) + ("" if len(told) > 1 else " alone")


@dataclass(frozen=True, slots=True, kw_only=True)
class Secured:
    """What TLS came to."""

    version: str
    """Such as `TLSv1.3`."""

    until: datetime | None
    """When the certificate ends; None: it does not say."""


async def names(host: str, port: int) -> Names:
    """The addresses of a host, by this machine's resolver.

    Raises:
        OSError, UnicodeError: it has none, or nobody can be asked.
    """
    found = await in_thread(_addresses, host, port)
    return Names(
        ipv4=tuple(address for family, address in found if family == socket.AF_INET),
        ipv6=tuple(address for family, address in found if family == socket.AF_INET6),
    )


def speaks_ipv6() -> bool:
    """Whether this machine has a way to IPv6 addresses. Sends nothing: a datagram socket only looks its route up."""
    with suppress(OSError), socket.socket(socket.AF_INET6, socket.SOCK_DGRAM) as looking:
        looking.connect(FAR)
        return True
    return False


def proxy_of(url: str) -> SplitResult | None:
    """The proxy that the environment names for such an address."""
    parts = urlsplit(url)
    proxies = getproxies() if parts.scheme in PORT_BY_SCHEME else {}
    proxy = proxies.get(parts.scheme) or proxies.get("all")
    if not proxy or proxy_bypass(parts.hostname or ""):
        return None
    return urlsplit(proxy if "://" in proxy else f"http://{proxy}")


async def listens(host: str, port: int) -> None:
    """Connect, and hang up.

    Raises:
        OSError, ValueError: it does not come about.
    """
    _, writer = await asyncio.open_connection(host, port)
    writer.transport.abort()


async def secured(url: str) -> Secured:
    """Connect to an https address, by its proxy where there is one, and hang up once TLS stands.

    Raises:
        OSError, EOFError, ValueError: it does not come about; `reasons.why` says why.
    """
    parts = urlsplit(url)
    host, port = parts.hostname or "", parts.port or PORT_BY_SCHEME["https"]
    proxy = proxy_of(url)
    near = (host, port) if proxy is None else (proxy.hostname or "", proxy.port or PORT_BY_SCHEME["http"])
    reader, writer = await asyncio.open_connection(*near)
    try:
        if proxy is not None:
            await _let_through(proxy, reader, writer, f"{host}:{port}")
        await writer.start_tls(ssl.create_default_context(), server_hostname=host)
        return seen(writer.get_extra_info("ssl_object"))
    finally:
        writer.transport.abort()  # nothing was said that could be lost, and a farewell may take long


def seen(tls: ssl.SSLObject) -> Secured:
    """What a connection's TLS came to."""
    ends = (tls.getpeercert() or {}).get("notAfter")
    until = datetime.fromtimestamp(ssl.cert_time_to_seconds(ends), UTC) if isinstance(ends, str) else None
    return Secured(version=tls.version() or "TLS", until=until)


async def _let_through(
    proxy: SplitResult, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, target: str
) -> None:
    login = ""
    if proxy.username is not None:
        words = f"{unquote(proxy.username)}:{unquote(proxy.password or '')}"
        login = f"Proxy-Authorization: Basic {base64.b64encode(words.encode()).decode()}\r\n"
    writer.write(f"CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n{login}\r\n".encode())
    head = await reader.readuntil(b"\r\n\r\n")
    status = head[:HEAD_BYTES].split(b"\r\n", 1)[0].split(b" ", 2)
    if len(status) < len((b"HTTP/1.1", TAKEN)) or status[1] != TAKEN:
        raise ProxyRefused(b" ".join(status[1:]).decode("ascii", "replace")[:100] or "it is no proxy")


def _addresses(host: str, port: int) -> list[tuple[int, str]]:
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys((int(family), str(address[0])) for family, *_, address in found))
