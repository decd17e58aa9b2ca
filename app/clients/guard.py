"""A way out that leads to public addresses only, whatever name or form an address comes in.

The check is of the very address that is connected to, at the moment of connecting: a name that has another address a
moment later (DNS rebinding), a number written as `0177.1` or `2130706433`, an IPv4 address inside an IPv6 one, a
redirect: all of them end up here. A proxy of the environment is passed by: nobody could tell where it connects to.
"""

from __future__ import annotations

import asyncio
import socket
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from typing import TYPE_CHECKING

import httpcore
import httpx

from app.domain.errors import PermanentFailure

if TYPE_CHECKING:
    import ssl
    from collections.abc import Awaitable, Callable, Iterable

    Resolve = Callable[[str, int], Awaitable[list[str]]]
    Address = IPv4Address | IPv6Address

LIMITS = httpx.Limits(max_connections=20, max_keepalive_connections=5)

REFUSED = tuple(
    ip_network(network)
    for network in (
        "100.64.0.0/10",  # carriers' and clouds' own, with Alibaba's metadata at 100.100.100.200
        "168.63.129.16/32",  # Azure's host agent: public by its number, and of every machine there
        "192.0.0.0/24",  # protocol assignments, some of them in use inside networks
        "192.88.99.0/24",  # 6to4 relays
        "64:ff9b:1::/48",  # RFC 8215, translation within a network
        "fec0::/10",  # site-local of old
    )
)
"""What `is_global` lets pass, in some version of Python, and must not."""

TRANSLATED = ip_network("64:ff9b::/96")
"""RFC 6052: the last 32 bits are an IPv4 address."""


class PrivateAddress(PermanentFailure):
    """The host is at an address that is nobody else's business."""


def is_public(address: str) -> bool:
    """Whether anybody on the internet could reach it: an address in its numeric form."""
    try:
        return _is_public(ip_address(address.partition("%")[0]))
    except ValueError:
        return False


def _is_public(address: Address) -> bool:
    if isinstance(address, IPv6Address):
        if address.ipv4_mapped is not None:
            return _is_public(address.ipv4_mapped)
        if address in TRANSLATED:
            return _is_public(IPv4Address(int(address) & 0xFFFFFFFF))
        if address.sixtofour is not None and not _is_public(address.sixtofour):
            return False
    if not address.is_global or address.is_multicast or address.is_reserved:
        return False
    return not any(address in network for network in REFUSED if network.version == address.version)


async def resolve(host: str, port: int) -> list[str]:
    """The addresses of a host in the resolver's order, each once."""
    found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(address[0]) for *_, address in found))


class PublicOnly(httpcore.AsyncNetworkBackend):
    """Connects to public addresses, the first of a host that takes it."""

    def __init__(self, *, resolve: Resolve = resolve, beyond: httpcore.AsyncNetworkBackend | None = None) -> None:
        self._resolve = resolve
        self._beyond = beyond or httpcore.AnyIOBackend()

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109 - httpcore's own
        local_address: str | None = None,
        socket_options: Iterable[httpcore.SOCKET_OPTION] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        """A connection. A host with a private address among public ones is refused: it is meant for harm.

        Raises:
            PrivateAddress: it would lead inside.
            httpcore.ConnectError, httpcore.ConnectTimeout: as without a guard.
        """
        try:
            async with asyncio.timeout(timeout):
                addresses = await self._resolve(host, port)
        except TimeoutError as error:
            raise httpcore.ConnectTimeout(f"{host} was not resolved in time") from error
        except (OSError, UnicodeError) as error:
            raise httpcore.ConnectError(f"{host} has no address") from error
        if not all(is_public(address) for address in addresses):
            raise PrivateAddress(f"{host} is at a private address, and private addresses are not allowed here")
        refused: Exception = httpcore.ConnectError(f"{host} has no address")
        for address in addresses:
            try:
                return await self._beyond.connect_tcp(address, port, timeout, local_address, socket_options)
            except (httpcore.ConnectError, httpcore.ConnectTimeout) as error:
                refused = error
        raise refused

    async def connect_unix_socket(self, *_: object, **__: object) -> httpcore.AsyncNetworkStream:
        """Never.

        Raises:
            PrivateAddress: always.
        """
        raise PrivateAddress("a socket of this machine is not a public address")

    async def sleep(self, seconds: float) -> None:
        """For httpcore's own tries."""
        await asyncio.sleep(seconds)


class PublicTransport(httpx.AsyncHTTPTransport):
    """httpx's own transport, on such a backend."""

    def __init__(self, *, verify: ssl.SSLContext, backend: PublicOnly | None = None) -> None:
        super().__init__(verify=verify, trust_env=False, limits=LIMITS)
        if not isinstance(getattr(self, "_pool", None), httpcore.AsyncConnectionPool):
            raise TypeError("this release of httpx keeps its connections elsewhere: nothing would be guarded")
        self._pool = httpcore.AsyncConnectionPool(
            ssl_context=verify,
            max_connections=LIMITS.max_connections,
            max_keepalive_connections=LIMITS.max_keepalive_connections,
            keepalive_expiry=LIMITS.keepalive_expiry,
            network_backend=backend or PublicOnly(),
        )
