"""The commands about alerts, and those that show how it stands."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import asyncpg
import pytest

from app import cli
from tests.fakes import loggers

COMMANDS = ("alerts", "ack", "mute", "unmute", "status", "sources", "messages")

CONFIGURATION = """
[sources.board]
kind = "feed"
url = "http://127.0.0.1:9/feed.xml"
"""


@pytest.fixture(autouse=True)
def as_before() -> Iterator[None]:
    with loggers.kept():
        yield


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "wakebell.toml").write_text(CONFIGURATION, encoding="utf-8")
    return tmp_path


@pytest.fixture
def database(database_url: str, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("DATABASE_URL", database_url)
    return database_url


def sql(url: str, statement: str) -> None:
    async def run() -> None:
        connection = await asyncpg.connect(url)
        await connection.execute(statement)
        await connection.close()

    asyncio.run(run())


def told(capsys: pytest.CaptureFixture[str], *argv: str) -> list[str]:
    assert cli.main(argv) == 0, capsys.readouterr().err
    return capsys.readouterr().out.splitlines()


def data(capsys: pytest.CaptureFixture[str], *argv: str) -> Any:
    [line] = told(capsys, *argv, "--json")
    return json.loads(line)


def refused(capsys: pytest.CaptureFixture[str], *argv: str) -> str:
    assert cli.main(argv) == 1
    captured = capsys.readouterr()
    assert captured.out == ""
    [line] = captured.err.splitlines()
    return line


OPEN = (
    "INSERT INTO wakebell.alerts (key, kind, subject, reason, failures, failed_at, told_at, opened_at) VALUES "
    "('source_failing:board', 'source_failing', 'board', E'no feed\\nat all', 4, now(), now(), '2026-11-30 09:00+00'), "
    "('job_failed:mail', 'job_failed', 'mail', NULL, 1, now(), now(), '2026-11-30 09:01+00'); "
    "INSERT INTO wakebell.alerts (key, kind, subject, failed_at, resolved_at) "
    "VALUES ('job_failed:old', 'job_failed', 'old', now(), '2026-11-30 08:00+00')"
)


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_explains_itself(capsys: pytest.CaptureFixture[str], command: str):
    with pytest.raises(SystemExit) as caught:
        cli.main([command, "--help"])

    assert caught.value.code == 0
    assert capsys.readouterr().out.startswith(f"usage: wakebell {command}")


def test_with_nothing_wrong_that_is_said(database: str, capsys: pytest.CaptureFixture[str]):
    assert told(capsys, "alerts") == ["nothing is wrong"]
    assert data(capsys, "alerts") == {"alerts": [], "mutes": [], "more": False}


def test_open_alerts_are_a_table_and_one_is_taken_on_by_its_key(database: str, capsys: pytest.CaptureFixture[str]):
    sql(database, OPEN)

    assert told(capsys, "ack", "source_failing:board") == ["source_failing:board is not told again while it is open"]
    lines = told(capsys, "alerts")

    assert [line.split() for line in lines] == [
        ["id", "alert", "count", "since", "state", "reason"],
        ["2", "job_failed:mail", "1", "2026-11-30", "09:01:00Z", "open"],
        ["1", "source_failing:board", "4", "2026-11-30", "09:00:00Z", "acknowledged", "no", "feed", "at", "all"],
    ]
    assert data(capsys, "ack", "2")["acknowledged_at"] is not None
    assert told(capsys, "alerts", "--all")[1].split()[-3:] == ["over", "2026-11-30", "08:00:00Z"]
    assert told(capsys, "alerts", "--limit", "1")[-1] == "older ones follow; raise --limit to see them"


def test_what_is_known_is_muted_for_a_while_and_told_again(database: str, capsys: pytest.CaptureFixture[str]):
    sql(database, OPEN)

    [muted] = told(capsys, "mute", "source_failing:board", "--for", "8h")
    lines = told(capsys, "alerts")

    assert muted.startswith("source_failing:board is recorded and not told until 20")
    assert "muted" in lines[2]
    assert lines[3].startswith("muted until 20")
    assert told(capsys, "unmute", "source_failing:board") == ["source_failing:board is told again"]
    assert data(capsys, "mute", "tick_overdue:*", "--until", "2099-01-01T00:00:00Z") == {
        "pattern": "tick_overdue:*",
        "until": "2099-01-01T00:00:00Z",
    }


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        (["ack", "job_failed:mail"], "no open alert with the key job_failed:mail"),
        (["ack", "99"], "no alert 99"),
        (["mute", "board", "--for", "8h"], "the kinds are job_failed"),
        (["mute", "job_failed:mail", "--for", "soon"], "is no span of time"),
        (["mute", "job_failed:mail", "--until", "2001-01-01T00:00:00Z"], "has passed already"),
        (["unmute", "job_failed:mail"], "nothing is muted by job_failed:mail"),
    ],
)
def test_what_cannot_be_is_told_in_one_sentence(
    database: str, capsys: pytest.CaptureFixture[str], argv: list[str], words: str
):
    assert words in refused(capsys, *argv)


def test_the_status_is_told_check_by_check(database: str, capsys: pytest.CaptureFixture[str]):
    sql(database, OPEN)
    sql(
        database,
        "INSERT INTO wakebell.ticks (trigger, status, started_at, finished_at) VALUES ('http','ok',now(),now())",
    )

    lines = told(capsys, "status")

    assert lines[0] == "status: warn"
    assert ["alerts:open", "warn", "source_failing:board,", "job_failed:mail"] in [line.split() for line in lines]
    assert data(capsys, "status")["status"] == "warn"
    sql(database, "UPDATE wakebell.ticks SET started_at = now() - interval '9 hours'")
    assert cli.main(["status"]) == 1
    assert "nobody rings: look at the scheduler" in capsys.readouterr().out


def test_sources_are_a_table(database: str, capsys: pytest.CaptureFixture[str]):
    lines = told(capsys, "sources")

    assert lines[0].split() == ["source", "status", "items", "last", "success", "next", "reason"]
    assert lines[1].split() == ["board", "new", "0"]
    [board] = data(capsys, "sources")
    assert (board["name"], board["kind"], board["status"]) == ("board", "feed", "new")


def test_messages_are_a_table_of_what_was_told_or_why_not(database: str, capsys: pytest.CaptureFixture[str]):
    assert told(capsys, "messages") == ["there are no such messages"]
    sql(
        database,
        "INSERT INTO wakebell.messages (recipient, channel, status, body, text, last_error, created_at) VALUES "
        "('me', 'line', 'sent', '', E'2 new\\nitems', NULL, '2026-11-30 09:00+00'), "
        "('boss', 'mail', 'failed', '', 'news', 'no such user', '2026-11-30 09:01+00')",
    )

    assert [line.split() for line in told(capsys, "messages")] == [
        ["id", "recipient", "channel", "kind", "status", "created", "text"],
        ["2", "boss", "mail", "items", "failed", "2026-11-30", "09:01:00Z", "no", "such", "user"],
        ["1", "me", "line", "items", "sent", "2026-11-30", "09:00:00Z", "2", "new", "items"],
    ]
    assert [message["id"] for message in data(capsys, "messages", "--recipient", "me")] == [1]
    assert told(capsys, "messages", "--limit", "1")[-1] == "older ones follow; raise --limit to see them"
