"""The command `unblock`."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from app import cli, settings
from app.settings import address_of
from app.stores.database import connect
from app.stores.reach import Reach
from tests.fakes import loggers

CONFIGURATION = """
[recipients.me]
channel = "inbox"
"""


@pytest.fixture(autouse=True)
def as_before() -> Iterator[None]:
    with loggers.kept():
        yield


@pytest.fixture(autouse=True)
def blocked(database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody is at the address of `me`."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "wakebell.toml").write_text(CONFIGURATION, "utf-8")
    monkeypatch.setenv("DATABASE_URL", database_url)
    configured = settings.load(settings.from_process())
    address = address_of(configured, configured.recipients["me"])

    async def block() -> None:
        database = connect(database_url)
        async with database.held():
            await Reach(database).block(address=address, name="me", channel="inbox", reason="gone")

    asyncio.run(block())


def test_somebody_who_is_there_again_is_written_to_again(capsys: pytest.CaptureFixture[str]):
    assert cli.main(["unblock", "me"]) == 0
    assert capsys.readouterr().out == "me is written to again; the next tick tells what is owed\n"

    assert cli.main(["unblock", "me"]) == 0
    assert capsys.readouterr().out == "me was not blocked\n"


def test_it_says_so_as_data(capsys: pytest.CaptureFixture[str]):
    assert cli.main(["unblock", "me", "--json"]) == 0

    assert json.loads(capsys.readouterr().out) == {"recipient": "me", "unblocked": True}


def test_an_unknown_recipient_is_told_with_those_there_are(capsys: pytest.CaptureFixture[str]):
    assert cli.main(["unblock", "boss"]) == 1

    assert capsys.readouterr().err == 'wakebell: the configuration has no recipient "boss"; it has me, inbox\n'
