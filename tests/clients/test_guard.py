from __future__ import annotations

import asyncio
import ssl

import httpcore
import httpx
import pytest

from app.clients import guard
from app.clients.download import download
from app.clients.guard import PrivateAddress, PublicOnly, PublicTransport, is_public
from app.domain.errors import Failure, TemporaryFailure
from tests.fakes.http_server import HttpServer, Request, send

PUBLIC = ["8.8.8.8", "93.184.216.34", "2606:4700:4700::1111", "::ffff:8.8.8.8", "64:ff9b::808:808"]

PRIVATE = [
    *("127.0.0.1", "127.255.255.254", "0.0.0.0", "0.1.2.3", "10.0.0.1", "172.16.0.1", "192.168.1.1"),
    *("169.254.169.254", "100.64.0.1", "100.100.100.200", "168.63.129.16", "224.0.0.1", "255.255.255.255", "240.0.0.1"),
    *("192.0.2.1", "198.18.0.1", "192.0.0.8"),
    *("::", "::1", "fc00::1", "fd00:ec2::254", "fe80::1", "fe80::1%eth0", "fec0::1", "ff02::1", "2001:db8::1"),
    *("::ffff:127.0.0.1", "::ffff:169.254.169.254", "::7f00:1", "64:ff9b::7f00:1", "64:ff9b:1::808:808"),
    *("2002:7f00:1::", "2002:a9fe:a9fe::1", "2001:0:7f00:1::1"),
    *("not an address", "", "2130706433"),
]


@pytest.mark.parametrize("address", PUBLIC)
def test_what_anybody_can_reach_is_public(address: str):
    assert is_public(address)


@pytest.mark.parametrize("address", PRIVATE)
def test_everything_else_is_not(address: str):
    assert not is_public(address)


class Beyond(httpcore.AsyncMockBackend):
    """Where connections would go; answers HTTP, and takes only some addresses."""

    def __init__(self, *answers: bytes, refusing: tuple[str, ...] = ()) -> None:
        super().__init__([])
        self.connected: list[str] = []
        self._answers = list(answers)
        self._refusing = refusing

    async def connect_tcp(self, host: str, *more: object, **named: object) -> httpcore.AsyncNetworkStream:
        self.connected.append(host)
        if host in self._refusing:
            raise httpcore.ConnectError("refused")
        return httpcore.AsyncMockStream([self._answers.pop(0)])


OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


def names(**addresses: list[str]) -> guard.Resolve:
    async def resolve(host: str, port: int) -> list[str]:
        if host not in addresses:
            raise OSError("no such name")
        return addresses[host]

    return resolve


async def get(url: str, beyond: Beyond, resolve: guard.Resolve) -> bytes:
    transport = PublicTransport(verify=ssl.create_default_context(), backend=PublicOnly(resolve=resolve, beyond=beyond))
    async with httpx.AsyncClient(transport=transport) as http:
        got = await download(http, url, headers={})
    assert got is not None
    return got.body


async def test_the_address_that_was_looked_at_is_the_one_that_is_connected_to():
    beyond = Beyond(OK)

    assert await get("http://good/", beyond, names(good=["8.8.8.8"])) == b"ok"
    assert beyond.connected == ["8.8.8.8"]


async def test_a_name_that_changes_its_address_meanwhile_is_looked_at_each_time():
    answers = [["8.8.8.8"], ["127.0.0.1"]]

    async def resolve(host: str, port: int) -> list[str]:
        return answers.pop(0)

    beyond = Beyond(b"HTTP/1.1 302 Found\r\nConnection: close\r\nContent-Length: 0\r\nLocation: /again\r\n\r\n")
    with pytest.raises(PrivateAddress):
        await get("http://rebinding/", beyond, resolve)

    assert beyond.connected == ["8.8.8.8"]


async def test_a_redirect_inside_is_refused():
    beyond = Beyond(b"HTTP/1.1 302 Found\r\nContent-Length: 0\r\nLocation: http://inside/\r\n\r\n")

    with pytest.raises(PrivateAddress, match="inside is at a private address"):
        await get("http://good/", beyond, names(good=["8.8.8.8"], inside=["10.0.0.1"]))

    assert beyond.connected == ["8.8.8.8"]


async def test_one_private_address_among_public_ones_is_one_too_many():
    beyond = Beyond(OK)

    with pytest.raises(PrivateAddress):
        await get("http://mixed/", beyond, names(mixed=["8.8.8.8", "10.0.0.1"]))

    assert beyond.connected == []


async def test_the_next_address_is_tried_when_one_does_not_answer():
    beyond = Beyond(OK, refusing=("2606:4700:4700::1111",))

    assert await get("http://two/", beyond, names(two=["2606:4700:4700::1111", "8.8.8.8"])) == b"ok"
    assert beyond.connected == ["2606:4700:4700::1111", "8.8.8.8"]


async def test_a_name_without_an_address_is_a_host_that_could_not_be_reached():
    with pytest.raises(TemporaryFailure, match="nowhere could not be reached"):
        await get("http://nowhere/", Beyond(), names())


async def test_a_resolver_that_hangs_is_not_waited_for():
    async def hanging(host: str, port: int) -> list[str]:
        await asyncio.Event().wait()
        return []

    with pytest.raises(httpcore.ConnectTimeout):
        await PublicOnly(resolve=hanging).connect_tcp("slow", 80, timeout=0.01)


async def test_a_socket_of_this_machine_is_none_of_it():
    with pytest.raises(PrivateAddress):
        await PublicOnly().connect_unix_socket("/var/run/docker.sock")


class Inside(HttpServer):
    """What nobody outside may reach."""

    asked = 0

    async def answer(self, request: Request, wire: asyncio.StreamWriter) -> None:
        self.asked += 1
        await send(wire, 200, b"secret")


@pytest.mark.parametrize(
    "host",
    [
        *("127.0.0.1", "localhost", "127.1", "2130706433", "0x7f000001", "0177.0.0.1", "0.0.0.0"),
        *("[::1]", "[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "①②⑦.⓪.⓪.①", "localhost."),
    ],
)
async def test_no_form_of_an_address_leads_to_this_machine(host: str):
    """By the system's own resolver, and to a server that does listen there."""
    async with Inside() as inside:
        port = inside.url.rpartition(":")[2]
        transport = PublicTransport(verify=ssl.create_default_context())
        async with httpx.AsyncClient(transport=transport) as http:
            with pytest.raises(Failure) as caught:
                await download(http, f"http://{host}:{port}/", headers={})

    assert inside.asked == 0
    assert (
        isinstance(caught.value, PrivateAddress)
        or "could not be reached" in str(caught.value)
        or "address" in str(caught.value)
    )
