"""The command `schedules`."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path

import asyncpg
import pytest

from app import cli
from tests.fakes import loggers

CONFIGURATION = """
[schedules.daily]
cron = "0 9 * * *"
timezone = "Asia/Yangon"
job = "report"

[schedules.often]
cron = "@every 1h"
job = "report"

[schedules.new]
cron = "@every 2d"
job = "report"
"""
STORED = """
INSERT INTO wakebell.schedules (name, fingerprint, anchor_at, next_at, fired_slot, missed_count)
VALUES ('daily', '0 9 * * * Asia/Yangon', '2026-01-01', now() + interval '1 hour', '2026-11-30 02:30Z', 2),
       ('often', '@every 3600s', '2026-01-01', now(), NULL, 0)
"""


@pytest.fixture(autouse=True)
def as_before() -> Iterator[None]:
    with loggers.kept():
        yield


@pytest.fixture(autouse=True)
def folder(database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DATABASE_URL", database_url)
    (tmp_path / "wakebell.toml").write_text(CONFIGURATION, "utf-8")
    return tmp_path


@pytest.fixture
def stored(database_url: str) -> None:
    async def run() -> None:
        connection = await asyncpg.connect(database_url)
        await connection.execute(STORED)
        await connection.close()

    asyncio.run(run())


@pytest.mark.usefixtures("stored")
def test_schedules_are_listed_in_words(capsys: pytest.CaptureFixture[str]):
    assert cli.main(["schedules"]) == 0

    heading, daily, often, new = capsys.readouterr().out.splitlines()
    assert heading.split() == ["schedule", "when", "job", "last", "slot", "next", "missed"]
    assert daily.startswith("daily     every day at 09:00 Asia/Yangon  report  2026-11-30 02:30:00Z  2")
    assert daily.endswith(" 02:30:00Z   2")
    assert (often.split()[-1], new.endswith("from the next tick on")) == ("now", True)


@pytest.mark.usefixtures("stored")
def test_programs_get_data(capsys: pytest.CaptureFixture[str]):
    assert cli.main(["schedules", "--json"]) == 0

    daily, often, new = json.loads(capsys.readouterr().out)
    assert (daily["missed"], len(daily["next"])) == (2, 3)
    assert (often["due"], new["next"]) == (True, [])


def test_none_is_said(capsys: pytest.CaptureFixture[str], folder: Path):
    (folder / "wakebell.toml").write_text("")

    assert cli.main(["schedules"]) == 0

    assert capsys.readouterr().out == "no schedule is configured\n"
