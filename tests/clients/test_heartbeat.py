from __future__ import annotations

import asyncio
import logging
import random
import time

import httpx
import pytest

from app.clients.heartbeat import Heartbeat, tell_failure
from app.domain.limits import PINGING
from tests.fakes.switch import Switch
from tests.fakes.switches import BetterStack, Healthchecks, Sentry, Told, UptimeKuma

SECRET = "5f0c1e7a-the-secret"
NAME = "app.clients.heartbeat"
WORDS = "source board failed"


async def ping(url: str, *, failed: bool = False, words: str = "") -> None:
    """The whole of a tick."""
    async with httpx.AsyncClient(trust_env=False) as http:
        heartbeat = Heartbeat(http, url, random=random.Random(1))
        heartbeat.start()
        await heartbeat.end(failed=failed, words=words)


@pytest.mark.parametrize("failed", [False, True])
async def test_healthchecks_hears_the_start_and_the_end_of_one_run(*, failed: bool):
    async with Healthchecks() as switch:
        await ping(switch.heartbeat_url, failed=failed, words=WORDS)

    start, end = switch.told
    assert start == Told(what="start", run=end.run)
    assert end == Told(what="failure" if failed else "success", run=end.run, words=WORDS)
    assert end.run is not None


@pytest.mark.parametrize("failed", [False, True])
async def test_uptime_kuma_hears_the_end_alone(*, failed: bool):
    async with UptimeKuma() as switch:
        await ping(switch.heartbeat_url, failed=failed, words=WORDS)

    [end] = switch.told
    assert (end.what, end.words) == ("failure" if failed else "success", WORDS)
    assert end.took_ms is not None


@pytest.mark.parametrize("failed", [False, True])
async def test_better_stack_hears_the_end_alone(*, failed: bool):
    async with BetterStack() as switch:
        await ping(switch.heartbeat_url, failed=failed, words=WORDS)

    assert switch.told == [Told(what="failure" if failed else "success", words=WORDS)]


@pytest.mark.parametrize("failed", [False, True])
async def test_sentry_hears_both_ends_of_one_check_in(*, failed: bool):
    async with Sentry() as switch:
        await ping(switch.heartbeat_url, failed=failed, words=WORDS)

    start, end = switch.told
    assert (start.what, end.what) == ("start", "failure" if failed else "success")
    assert start.run == end.run is not None


@pytest.mark.parametrize("made", [Healthchecks, Sentry])
async def test_ticks_that_overlap_keep_their_runs_apart(made: type[Healthchecks | Sentry]):
    shared = random.Random(1)  # of one process
    async with made() as switch, httpx.AsyncClient(trust_env=False) as http:
        beats = [Heartbeat(http, switch.heartbeat_url, random=shared) for _ in range(4)]
        for each in beats:
            each.start()
        await asyncio.gather(*(each.end(failed=False, words="") for each in reversed(beats)))

    runs = {told.run for told in switch.told}
    assert len(runs) == 4
    for run in runs:
        assert [told.what for told in switch.told if told.run == run] == ["start", "success"]


async def test_a_service_that_does_not_start_says_so():
    async with Healthchecks() as switch:
        await tell_failure(switch.heartbeat_url, WORDS, random=random.Random(1))
        await tell_failure(None, WORDS, random=random.Random(1))

    assert [(told.what, told.words) for told in switch.told] == [("failure", WORDS)]


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

    assert len(switch.pinged) == 2
    records = [record for record in caplog.records if record.name == NAME]
    assert len(records) == 2
    for record in records:
        assert record.levelno == logging.WARNING
        assert vars(record)["host"] == "127.0.0.1"
        assert vars(record)["reason"] in {reason, "ReadError"}
        assert SECRET not in str(vars(record))


@pytest.mark.parametrize("does", ["hang", "hang amid the head"])
async def test_a_switch_that_hangs_costs_two_seconds_for_both(caplog: pytest.LogCaptureFixture, does: str):
    async with Switch(does) as switch:
        began = time.monotonic()
        await ping(f"{switch.url}/{SECRET}")
        took = time.monotonic() - began

    assert PINGING.total_seconds() == 2
    assert took >= 1.9
    assert took < 60  # an end, no measure: the stub would hang for ever
    assert len(switch.pinged) == 2, "what hung at the start is asked once more at the end"
    assert "heartbeat not taken" in caplog.text


async def test_the_work_does_not_wait_for_the_start():
    async with Switch("hang") as switch, httpx.AsyncClient(trust_env=False) as http:
        heartbeat = Heartbeat(http, f"{switch.url}/{SECRET}", random=random.Random(1))
        began = time.monotonic()
        heartbeat.start()
        took = time.monotonic() - began
        switch.does = 200
        while not switch.pinged:  # noqa: ASYNC110 - for a fact
            await asyncio.sleep(0.01)
        await heartbeat.end(failed=False, words="")

    assert took < 0.5, "no await is in it"
    assert len(switch.pinged) == 2


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
    await ping(url, failed=True, words=WORDS)

    assert "heartbeat not taken" in caplog.text
    assert not [record for record in caplog.records if SECRET in str(vars(record)) and record.name != "httpx"]
