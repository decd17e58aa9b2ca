from __future__ import annotations

import logging
import time

import httpx
import pytest

from app.clients import heartbeat
from app.domain.limits import PINGING
from tests.fakes.switch import Switch

SECRET = "5f0c1e7a-the-secret"


async def ping(url: str, *, failed: bool = False) -> None:
    async with httpx.AsyncClient(trust_env=False) as http:
        await heartbeat.ping(http, url, failed=failed)


@pytest.mark.parametrize(("failed", "path"), [(False, f"/{SECRET}"), (True, f"/{SECRET}/fail")])
async def test_it_tells_success_and_failure_once(caplog: pytest.LogCaptureFixture, path: str, *, failed: bool):
    async with Switch() as switch:
        await ping(f"{switch.url}/{SECRET}", failed=failed)

    assert switch.pinged == [("GET", path)]
    assert "heartbeat not taken" not in caplog.text


@pytest.mark.parametrize(
    ("does", "reason"),
    [
        (500, "it answered 500"),
        (404, "it answered 404"),
        (302, "it answered 302"),
        ("hang up", "RemoteProtocolError"),
        ("talk nonsense", "RemoteProtocolError"),
    ],
)
async def test_a_switch_that_does_not_take_it_is_a_line_in_the_log(
    caplog: pytest.LogCaptureFixture, does: int | str, reason: str
):
    async with Switch(does) as switch:
        await ping(f"{switch.url}/{SECRET}?key={SECRET}")

    assert len(switch.pinged) == 1
    [record] = [record for record in caplog.records if record.name == heartbeat.__name__]
    assert record.levelno == logging.WARNING
    assert vars(record)["host"] == "127.0.0.1"
    assert vars(record)["reason"] in {reason, "ReadError"}
    assert SECRET not in str(vars(record))


@pytest.mark.parametrize("does", ["hang", "hang amid the head"])
async def test_a_switch_that_hangs_costs_two_seconds(caplog: pytest.LogCaptureFixture, does: str):
    async with Switch(does) as switch:
        began = time.monotonic()
        await ping(f"{switch.url}/{SECRET}")
        took = time.monotonic() - began

    assert PINGING.total_seconds() == 2
    assert took >= 1.9
    assert took < 60  # an end, no measure: the stub would hang for ever
    assert "heartbeat not taken" in caplog.text


async def test_a_body_that_never_ends_is_not_waited_for(caplog: pytest.LogCaptureFixture):
    async with Switch("hang amid the body") as switch:
        await ping(f"{switch.url}/{SECRET}")

    assert "heartbeat not taken" not in caplog.text


@pytest.mark.parametrize(
    "url",
    [
        f"http://127.0.0.1:9/{SECRET}",
        f"http://{'a' * 64}.example/{SECRET}",
        f"http://\u2603{'a' * 80}.example/{SECRET}",
        f"http://[not-an-address]/{SECRET}",
        f"ftp://beats.example/{SECRET}",
        f"http:///{SECRET}",
    ],
)
async def test_an_address_that_leads_nowhere_raises_nothing(caplog: pytest.LogCaptureFixture, url: str):
    await ping(url)

    assert "heartbeat not taken" in caplog.text
    assert not [record for record in caplog.records if SECRET in str(vars(record)) and record.name != "httpx"]
