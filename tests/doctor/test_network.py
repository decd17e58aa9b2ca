"""What is told of names."""

from __future__ import annotations

import socket
from collections.abc import Callable

import pytest

from app.clients import reaching
from app.clients.reaching import Names
from app.doctor import network
from app.domain.findings import Finding
from app.settings import Settings
from tests.fakes.secured import proxy

FILE = """
[channels.line]
kind = "line"
token = "a-token"
[channels.mail]
kind = "email"
host = "mx.test"
sender = "bell@example.com"
[channels.numbered]
kind = "ntfy"
base_url = "http://127.0.0.1:9"
[channels.anything]
kind = "apprise"
url = "json://hooks.test/x"
[chats.page]
kind = "messenger"
secret = "an-app-secret"
verify_token = "a-word"
token = "EAAtoken"
[chats.page.model]
url = "https://models.test/v1"
model = "m"
"""

BOTH = Names(ipv4=("93.184.216.34",), ipv6=("2606:2800::1",))
NEW = Names(ipv4=(), ipv6=("2606:2800::1",))
INSIDE = Names(ipv4=("10.0.0.7",), ipv6=())
NOT_FOUND = socket.gaierror(socket.EAI_NONAME, "x")
NO_SERVER = socket.gaierror(socket.EAI_AGAIN, "x")


async def looked(
    settings: Settings, monkeypatch: pytest.MonkeyPatch, names: dict[str, Names | Exception], *, ipv6: bool = True
) -> dict[str, Finding]:
    async def resolve(host: str, port: int) -> Names:
        assert 0 < port < 65536
        found = names.get(host, BOTH)
        if isinstance(found, Exception):
            raise found
        return found

    monkeypatch.setattr(reaching, "names", resolve)
    monkeypatch.setattr(reaching, "speaks_ipv6", lambda: ipv6)
    return {look.name: (await look.work())[0] for look in network.looks(settings)}


@pytest.fixture
def everything(configured: Callable[..., Settings]) -> Settings:
    return configured(
        FILE,
        DATABASE_URL="postgresql://u:p@db.test,db2.test/x",
        MIGRATION_DATABASE_URL="postgresql://u:p@direct.test/x",
        PUBLIC_URL="https://bell.test",
        REDIS_URL="rediss://:p@redis.test:6379",
        HEARTBEAT_URL="https://hc.test/ping",
    )


async def test_each_host_is_looked_up_once(everything: Settings, monkeypatch: pytest.MonkeyPatch):
    found = await looked(everything, monkeypatch, {})

    hosts = ["db.test", "db2.test", "direct.test", "bell.test", "api.line.me", "mx.test", "graph.facebook.com"]
    hosts += ["models.test", "redis.test", "hc.test"]
    assert {name: one.sentence for name, one in found.items()} == {f"dns {host}": "IPv4 and IPv6" for host in hosts}


@pytest.mark.parametrize(
    ("host", "names", "words"),
    [
        ("db.test", NEW, "fail: it has an IPv6 address alone, and this machine has no way to IPv6; put the provider's"),
        ("direct.test", NEW, "pooled address into MIGRATION_DATABASE_URL, which has IPv4"),
        ("api.line.me", NEW, "this machine has no way to IPv6; give this machine IPv6"),
        ("bell.test", INSIDE, "warn: IPv4 alone, and all of it in a private network: nobody outside reaches it; set"),
        ("db.test", NOT_FOUND, "fail: its name is not found; check the name, and the host in DATABASE_URL"),
        ("mx.test", NO_SERVER, "fail: no name server answers; check the name servers of this machine"),
    ],
)
async def test_a_name_that_leads_nowhere_is_told(
    everything: Settings, monkeypatch: pytest.MonkeyPatch, host: str, names: Names | Exception, words: str
):
    found = (await looked(everything, monkeypatch, {host: names}, ipv6=False))[f"dns {host}"]

    assert words in f"{found.status}: {found.sentence}"


async def test_a_host_of_two_addresses_is_looked_up_for_the_first_of_them(
    configured: Callable[..., Settings], monkeypatch: pytest.MonkeyPatch
):
    url = "postgresql://u@db.test/x"

    settings = configured("", DATABASE_URL=url, MIGRATION_DATABASE_URL=url)

    found = await looked(settings, monkeypatch, {"db.test": NEW}, ipv6=False)

    assert "into DATABASE_URL" in found["dns db.test"].change


async def test_ipv6_alone_is_enough_where_there_is_a_way(everything: Settings, monkeypatch: pytest.MonkeyPatch):
    found = await looked(everything, monkeypatch, {"db.test": NEW})

    assert (found["dns db.test"].status, found["dns db.test"].found) == ("ok", "IPv6 alone")


async def test_what_a_proxy_looks_up_is_left_to_it_and_the_proxy_looked_at(
    everything: Settings, monkeypatch: pytest.MonkeyPatch
):
    async with proxy() as (port, _):
        monkeypatch.setenv("https_proxy", f"http://user:hunter2@127.0.0.1:{port}")
        found = await looked(everything, monkeypatch, {})

    again = await looked(everything, monkeypatch, {})
    where = f"proxy 127.0.0.1:{port}"
    assert found[where].status == "ok"
    assert again[where].status == "fail"
    assert again[where].found == "nobody listens there"
    assert found["dns api.line.me"].sentence == "the proxy 127.0.0.1 of the environment looks it up"
    assert {found[f"dns {host}"].status for host in ("db.test", "bell.test", "mx.test", "redis.test")} == {"ok"}
    assert "hunter2" not in repr(found)


async def test_an_address_of_the_database_that_cannot_be_read_is_left_to_others(
    configured: Callable[..., Settings], monkeypatch: pytest.MonkeyPatch
):
    settings = configured("", DATABASE_URL="postgresql://u@/x?host=/tmp", MIGRATION_DATABASE_URL="mysql://x")

    assert await looked(settings, monkeypatch, {}) == {}
