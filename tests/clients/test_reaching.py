from __future__ import annotations

import socket
import ssl
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from app.clients import reaching
from app.clients.reaching import Names
from app.clients.reasons import ProxyRefused, why
from tests.fakes.secured import certificate, listening, proxy

Certificate = tuple[ssl.SSLContext, Path]

PROXIES = ("http_proxy", "https_proxy", "all_proxy", "no_proxy")


@pytest.fixture(autouse=True)
def direct(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in PROXIES:
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


@pytest.fixture(scope="module")
def trusted(tmp_path_factory: pytest.TempPathFactory) -> Certificate:
    return certificate(tmp_path_factory.mktemp("tls"))


@pytest.mark.parametrize(
    ("names", "told"),
    [
        (Names(ipv4=("192.0.2.1",), ipv6=("2001:db8::1",)), "IPv4 and IPv6"),
        (Names(ipv4=("192.0.2.1",), ipv6=()), "IPv4 alone"),
        (Names(ipv4=(), ipv6=("2001:db8::1",)), "IPv6 alone"),
    ],
)
def test_the_families_of_a_host_are_told(names: Names, told: str):
    assert names.families == told


async def test_a_name_is_looked_up_and_one_that_is_not_there_says_so():
    assert "127.0.0.1" in (await reaching.names("localhost", 80)).ipv4

    with pytest.raises(socket.gaierror) as caught:
        await reaching.names("nowhere.invalid", 443)

    assert why(caught.value)[0] in {"its name is not found", "no name server answers"}


async def test_tls_stands_and_nothing_is_said(trusted: Certificate, monkeypatch: pytest.MonkeyPatch):
    context, cert = trusted
    monkeypatch.setenv("SSL_CERT_FILE", str(cert))

    async with listening(tls=context) as (port, heard):
        met = await reaching.secured(f"https://127.0.0.1:{port}/secret/path")

    assert met.version.startswith("TLSv1")
    assert met.until is not None
    assert timedelta(days=28) < met.until - datetime.now(UTC) < timedelta(days=31)
    assert heard == []


async def test_a_certificate_that_nobody_vouches_for_is_told(trusted: Certificate):
    async with listening(tls=trusted[0]) as (port, _):
        with pytest.raises(ssl.SSLCertVerificationError) as caught:
            await reaching.secured(f"https://127.0.0.1:{port}")

    assert why(caught.value)[0] == "its certificate is signed by itself"


async def test_a_certificate_for_another_name_is_told(trusted: Certificate, monkeypatch: pytest.MonkeyPatch):
    context, cert = trusted
    monkeypatch.setenv("SSL_CERT_FILE", str(cert))

    async with listening(tls=context) as (port, _):
        with pytest.raises(ssl.SSLCertVerificationError) as caught:
            await reaching.secured(f"https://localhost:{port}")

    assert why(caught.value)[0] == "its certificate is for another name"


async def test_a_port_without_tls_is_told():
    async with listening(b"HTTP/1.1 400 Bad Request\r\n\r\n") as (port, _):
        with pytest.raises(ssl.SSLError) as caught:
            await reaching.secured(f"https://127.0.0.1:{port}")

    assert why(caught.value)[0] == "it does not speak TLS at this port"


async def test_a_proxy_of_the_environment_is_gone_by(trusted: Certificate, monkeypatch: pytest.MonkeyPatch):
    context, cert = trusted
    monkeypatch.setenv("SSL_CERT_FILE", str(cert))

    async with listening(tls=context) as (port, _), proxy() as (near, asked):
        monkeypatch.setenv("https_proxy", f"http://user:p%40ss@127.0.0.1:{near}")
        met = await reaching.secured(f"https://127.0.0.1:{port}")

    assert met.version.startswith("TLSv1")
    assert asked[0].startswith(f"CONNECT 127.0.0.1:{port} HTTP/1.1\r\n".encode())
    assert b"Proxy-Authorization: Basic dXNlcjpwQHNz\r\n" in asked[0]  # user:p@ss


async def test_a_proxy_that_refuses_is_told(monkeypatch: pytest.MonkeyPatch):
    refusal = b"HTTP/1.1 407 Proxy Authentication Required\r\n\r\n"
    async with proxy(refuses=refusal) as (near, _):
        monkeypatch.setenv("https_proxy", f"127.0.0.1:{near}")
        with pytest.raises(ProxyRefused) as caught:
            await reaching.secured("https://hooks.test")

    assert why(caught.value)[0] == "the proxy of the environment refused it (407 Proxy Authentication Required)"


def test_which_addresses_go_by_a_proxy(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("all_proxy", "http://proxy.test:3128")
    monkeypatch.setenv("no_proxy", "near.test")

    assert reaching.proxy_of("https://far.test") is not None
    assert reaching.proxy_of("https://near.test") is None
    assert reaching.proxy_of("smtp://far.test:587") is None  # mail and Redis know no such proxy
    assert reaching.proxy_of("rediss://far.test") is None


def test_looking_for_a_way_to_ipv6_needs_none(monkeypatch: pytest.MonkeyPatch):
    def without(*_: object) -> None:
        raise OSError("no such family")

    monkeypatch.setattr(socket, "socket", without)

    assert reaching.speaks_ipv6() is False
