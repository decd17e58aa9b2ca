"""The commands about queues."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import asyncpg
import pytest

from app import cli
from tests.fakes import loggers

COMMANDS = ("queues", "pause", "resume", "limit")


@pytest.fixture(autouse=True)
def as_before() -> Iterator[None]:
    with loggers.kept():
        yield


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def database(database_url: str, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("DATABASE_URL", database_url)
    return database_url


@pytest.fixture
def nowhere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DATABASE_URL", "postgres://app:s3cr3t@127.0.0.1:1/name")


def sql(url: str, statement: str) -> None:
    async def run() -> None:
        connection = await asyncpg.connect(url)
        try:
            await connection.execute(statement)
        finally:
            await connection.close()

    asyncio.run(run())


class Said:
    """What commands print."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys

    def out(self, *argv: str) -> str:
        status = cli.main(argv)
        captured = self._capsys.readouterr()
        assert (status, captured.err) == (0, "")
        return captured.out

    def data(self, *argv: str) -> Any:
        return json.loads(self.out(*argv, "--json"))

    def failure(self, *argv: str) -> str:
        """The one sentence on stderr."""
        status = cli.main(argv)
        captured = self._capsys.readouterr()
        assert (status, captured.out) == (1, "")
        [line] = captured.err.splitlines()
        return line

    def refusal(self, *argv: str) -> str:
        """What argparse says."""
        with pytest.raises(SystemExit) as caught:
            cli.main(argv)
        assert caught.value.code == 2
        return self._capsys.readouterr().err


@pytest.fixture
def said(capsys: pytest.CaptureFixture[str]) -> Said:
    return Said(capsys)


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_explains_itself(capsys: pytest.CaptureFixture[str], command: str):
    with pytest.raises(SystemExit) as caught:
        cli.main([command, "--help"])

    assert caught.value.code == 0
    assert capsys.readouterr().out.startswith(f"usage: wakebell {command}")


@pytest.mark.usefixtures("database")
def test_nothing_to_list_is_said(said: Said):
    assert said.out("queues") == "no queue has jobs, limits or a pause\n"
    assert said.data("queues") == []


def test_queues_are_listed_in_columns(said: Said, database: str):
    sql(database, "INSERT INTO wakebell.jobs (type, queue) SELECT 'greet', 'mail' FROM generate_series(1, 3)")
    sql(database, "INSERT INTO wakebell.jobs (type, queue) VALUES ('send_message', 'wakebell.send')")
    said.out("pause", "mail", "--until", "2099-01-01T07:00:00+07:00", "--reason", "no\x1b[2J paper " + "ink " * 20)
    said.out("pause", "shop", "--reason", "tired")
    said.out("limit", "slow", "--max-running", "3", "--max-starts", "10", "--per", "1m")

    lines = [re.split(" {2,}", line) for line in said.out("queues").splitlines()]

    assert lines[0] == ["queue", "due", "running", "limits", "paused until", "reason"]
    assert lines[1][:4] == ["mail", "3", "0", "2099-01-01 00:00:00Z"]
    assert lines[1][4].startswith("no [2J paper ink")
    assert lines[1][4].endswith("…")
    assert lines[2] == ["shop", "0", "0", "forever", "tired"]
    assert lines[3] == ["slow", "0", "0", "at most 3 at once, 10 in any 60 s"]
    assert [queue["name"] for queue in said.data("queues", "--own")] == ["mail", "shop", "slow", "wakebell.send"]


def test_a_queue_is_paused_for_a_while_or_until_it_is_resumed(said: Said, database: str):
    sql(database, "INSERT INTO wakebell.jobs (type, queue) VALUES ('greet', 'mail')")

    for_ever = said.out("pause", "mail", "--reason", "the provider is down")
    until = said.out("pause", "mail", "--until", "2099-01-01T00:00:00Z", "--reason", "the provider is down")
    for_a_while = said.data("pause", "mail", "--for", "2h", "--reason", "maintenance")
    resumed = said.out("resume", "mail")

    assert for_ever == "queue mail is paused until it is resumed; 1 job is due in it\n"
    assert until == "queue mail is paused until 2099-01-01 00:00:00Z; 1 job is due in it\n"
    ends = datetime.fromisoformat(for_a_while["paused_until"])
    assert abs(ends - datetime.now(UTC) - timedelta(hours=2)) < timedelta(minutes=10)
    assert resumed == "queue mail is not paused; 1 job is due in it\n"
    assert said.data("resume", "never_paused")["paused_until"] is None


@pytest.mark.usefixtures("database")
def test_a_queue_is_limited_and_freed(said: Said):
    first = said.out("limit", "mail", "--max-running", "3")
    second = said.data("limit", "mail", "--max-starts", "10", "--per", "1.5s")
    freed = said.out("limit", "mail", "--none")

    assert first == "queue mail has at most 3 at once\n"
    assert (second["max_running"], second["max_starts"], second["period_seconds"]) == (3, 10, 1.5)
    assert freed == "queue mail has no limits\n"


@pytest.mark.parametrize(
    ("argv", "told"),
    [
        (["pause", "wakebell.send", "--reason", "x"], 'queues named "wakebell.…" are the service\'s own'),
        (["limit", "wakebell.send", "--max-running", "1"], 'queues named "wakebell.…" are the service\'s own'),
        (["resume", ""], "the queue's name must be from 1 to 200 bytes long"),
        (["pause", "mail", "--reason", " "], "reason: is missing"),
        (["pause", "mail", "--until", "noon", "--reason", "x"], "paused_until: must be an instant in ISO 8601"),
        (["limit", "mail"], "give --max-running, --max-starts with --per, or --none alone"),
        (["limit", "mail", "--none", "--max-running", "1"], "give --max-running, --max-starts with --per, or --none"),
        (["limit", "mail", "--max-starts", "1"], "period_seconds: is missing"),
        (["limit", "mail", "--max-running", "0"], "max_running: Input should be greater than or equal to 1"),
    ],
)
@pytest.mark.usefixtures("nowhere")
def test_what_means_nothing_is_refused_in_a_sentence_and_wakes_no_database(said: Said, argv: list[str], told: str):
    assert said.failure(*argv).startswith(f"wakebell: {told}")


@pytest.mark.usefixtures("database")
def test_a_pause_that_would_be_over_already_is_refused(said: Said):
    told = said.failure("pause", "mail", "--until", "2020-01-01T00:00:00Z", "--reason", "late")

    assert told.startswith("wakebell: paused_until: has passed already")


@pytest.mark.parametrize(
    ("argv", "told"),
    [
        (["pause", "mail"], "--reason"),
        (["pause", "mail", "--for", "2 hours", "--reason", "x"], "must be a length of time such as 30s"),
        (["pause", "mail", "--for", "0s", "--reason", "x"], "must be a length of time such as 30s"),
        (["pause", "mail", "--for", "1h", "--until", "2099-01-01T00:00:00Z", "--reason", "x"], "not allowed with"),
        (["pause", "mail", "--for", "3651d", "--reason", "x"], "at most 3650d"),
        (["limit", "mail", "--max-running", "few"], "invalid int value"),
        (["resume"], "QUEUE"),
    ],
)
@pytest.mark.usefixtures("nowhere")
def test_bad_arguments_are_refused(said: Said, argv: list[str], told: str):
    assert told in said.refusal(*argv)


@pytest.mark.usefixtures("nowhere")
@pytest.mark.parametrize("argv", [["queues"], ["resume", "mail"], ["pause", "mail", "--reason", "x"]])
def test_a_database_that_is_away_is_told_in_one_sentence(said: Said, argv: list[str]):
    told = said.failure(*argv)

    assert told.startswith("wakebell: the database 127.0.0.1/name could not be reached")
    assert "s3cr3t" not in told
