from __future__ import annotations

import asyncio
import logging
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from app import plugins, rounds, settings
from app.domain.errors import PermanentFailure, TemporaryFailure
from app.domain.items import Fetched, Item
from app.domain.subscriptions import Subscription
from app.settings import SourceSettings
from app.stores.items import Match

READING: Any = None

NOW = datetime(2026, 12, 1, 9, tzinfo=UTC)


def items(*titles: str) -> tuple[Item, ...]:
    return tuple(Item(key=title, title=title) for title in titles)


@pytest.fixture
def source(tmp_path: Path) -> SourceSettings:
    (tmp_path / "wakebell.toml").write_text(
        '[sources.board]\nkind = "feed"\nurl = "https://board.example/feed?key=in-the-query"\n'
        'headers = { Authorization = "in-the-header" }\n'
    )
    return settings.load({"WAKEBELL_CONFIG": str(tmp_path / "wakebell.toml")}).sources["board"]


def kind(monkeypatch: pytest.MonkeyPatch, fetch: Any) -> None:
    monkeypatch.setattr(plugins, "load", lambda package, kind: SimpleNamespace(fetch=fetch))


async def test_a_source_that_hangs_fails_when_its_time_is_over(monkeypatch: pytest.MonkeyPatch, source: SourceSettings):
    async def hang(*_: Any) -> Fetched:
        await asyncio.Event().wait()
        raise AssertionError

    kind(monkeypatch, hang)

    with pytest.raises(TemporaryFailure, match=r"did not finish its answer in the 0\.1 s that it had"):
        await rounds.read(source, READING, seconds=0.05)


@pytest.mark.parametrize("error", [TimeoutError(), KeyError("x"), ValueError("no")])
async def test_a_bug_of_a_kind_is_a_failure_and_logged(
    monkeypatch: pytest.MonkeyPatch, source: SourceSettings, caplog: pytest.LogCaptureFixture, error: Exception
):
    async def crash(*_: Any) -> Fetched:
        raise error

    kind(monkeypatch, crash)

    with pytest.raises(TemporaryFailure, match=type(error).__name__):
        await rounds.read(source, READING, seconds=5)

    [record] = caplog.records
    assert (record.getMessage(), record.exc_info is not None) == ("source crashed", True)


async def test_the_failure_of_a_bug_holds_no_secret(monkeypatch: pytest.MonkeyPatch, source: SourceSettings):
    async def crash(options: Any, _: Any) -> Fetched:
        raise ValueError(
            f"{options.url} and key=in-the-query with {options.headers['Authorization'].get_secret_value()}"
        )

    kind(monkeypatch, crash)

    with pytest.raises(TemporaryFailure) as caught:
        await rounds.read(source, READING, seconds=5)

    assert str(caught.value) == "ValueError: … and … with …"


async def test_a_failure_is_passed_on(monkeypatch: pytest.MonkeyPatch, source: SourceSettings):
    async def fail(*_: Any) -> Fetched:
        raise PermanentFailure("the address is none")

    kind(monkeypatch, fail)

    with pytest.raises(PermanentFailure, match="the address is none"):
        await rounds.read(source, READING, seconds=5)


def test_a_recipient_hears_of_an_item_once_by_all_names_of_their_subscriptions():
    subscriptions = [
        Subscription(name="python", any=("python",), to=("me", "team")),
        Subscription(name="all", to=("me",)),
        Subscription(name="other", sources=frozenset({"other"}), to=("me",)),
    ]

    assert rounds.match_all(items("python gig", "java gig"), "board", subscriptions, now=NOW) == [
        Match(key="python gig", recipient="me", subscriptions=("all", "python")),
        Match(key="python gig", recipient="team", subscriptions=("python",)),
        Match(key="java gig", recipient="me", subscriptions=("all",)),
    ]


def test_age_is_as_of_now():
    fresh = Item(key="fresh", title="a", published_at=NOW - timedelta(hours=1))
    old = Item(key="old", title="a", published_at=NOW - timedelta(days=8))
    asked = Subscription(name="week", max_age=timedelta(days=7), to=("me",))

    assert [match.key for match in rounds.match_all([fresh, old], "board", [asked], now=NOW)] == ["fresh"]


def test_a_pattern_that_takes_too_long_is_logged_by_its_subscription(caplog: pytest.LogCaptureFixture):
    asked = Subscription(name="endless", regex=("(a|aa)+$",), to=("me",))

    found = rounds.match_all(items("a" * 60 + "b", "aa"), "board", [asked], now=NOW)

    assert [match.key for match in found] == ["aa"]
    [record] = caplog.records
    assert (record.getMessage(), record.levelno) == ("pattern took too long", logging.WARNING)
    assert vars(record)["subscriptions"] == ["endless"]
