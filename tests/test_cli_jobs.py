"""The commands about jobs."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import asyncpg
import pytest

from app import cli
from tests.fakes import loggers

GREET = """
from pydantic import BaseModel

class Payload(BaseModel):
    user_id: int

async def handle(payload, ctx):
    pass
"""
COMMANDS = ("jobs", "enqueue", "retry", "cancel", "work")


@pytest.fixture(autouse=True)
def as_before() -> Iterator[None]:
    with loggers.kept():
        yield


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory with two job types."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "wakebell.toml").write_text("")
    (tmp_path / "handlers").mkdir()
    for name in ("greet", "mail"):
        (tmp_path / "handlers" / f"{name}.py").write_text(GREET)
    return tmp_path


@pytest.fixture
def database(database_url: str, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("DATABASE_URL", database_url)
    return database_url


@pytest.fixture
def nowhere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DATABASE_URL", "postgres://app:s3cr3t@127.0.0.1:1/name")


def sql(url: str, statement: str, *given: Any) -> list[Any]:
    async def asked() -> list[Any]:
        connection = await asyncpg.connect(url)
        try:
            rows: list[Any] = await connection.fetch(statement, *given)
            return rows
        finally:
            await connection.close()

    return asyncio.run(asked())


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

    told = capsys.readouterr().out
    assert caught.value.code == 0
    assert told.startswith(f"usage: wakebell {command}")


@pytest.mark.usefixtures("database")
def test_a_job_is_put_in_with_all_its_sides(said: Said):
    sides = ["--queue", "people", "--priority", "5", "--run-after", "2027-01-02T09:00:00+07:00"]
    keys = ["--unique-key", "seven", "--serial-key", "line"]

    job = said.data("enqueue", "greet", '{"user_id": 7}', *sides, *keys)

    assert job["created"] is True
    assert {name: job[name] for name in ("type", "payload", "queue", "priority", "run_after")} == {
        "type": "greet",
        "payload": {"user_id": 7},
        "queue": "people",
        "priority": 5,
        "run_after": "2027-01-02T02:00:00Z",
    }
    assert (job["unique_key"], job["serial_key"]) == ("seven", "line")


@pytest.mark.usefixtures("database")
def test_what_was_put_in_is_told_in_a_sentence(said: Said):
    asked = ["enqueue", "greet", '{"user_id": 7}', "--unique-key", "seven", "--run-after", "2027-01-02T09:00:00Z"]

    first, again = said.out(*asked), said.out(*asked)

    assert first == "job 1 is put in: greet, due 2027-01-02 09:00:00Z\n"
    assert again == "job 1 has that unique_key already; it is pending, and no other was put in\n"


@pytest.mark.parametrize(
    ("argv", "told"),
    [
        (["gret", "{}"], 'wakebell: type: there is no handler "gret"; the types are: greet, mail'),
        (["send_message", "{}"], 'wakebell: type: "send_message" is one of the service\'s own, which it queues itself'),
        (["greet", "{}"], "wakebell: payload.user_id: Field required"),
        (["greet", '{"user_id": '], "wakebell: the payload is not JSON: Expecting value at line 1, column 13"),
        (["greet", '{"user_id": NaN}'], "wakebell: the payload is not JSON"),
        (["greet", "[" * 100_000], "wakebell: the payload is nested too deeply"),
        (
            ["greet", '{"user_id":' + "[" * 200 + "]" * 200 + "}"],
            "wakebell: payload: is nested too deeply; it may have",
        ),
        (["greet", "[1]"], "wakebell: payload: Input should be a valid dictionary"),
        (["greet", "null"], "wakebell: payload: Field required"),
        (["greet", '{"user_id": 1}', "--queue", "wakebell.send"], 'wakebell: queue: names that begin with "wakebell."'),
        (["greet", '{"user_id": 1}', "--priority", "101"], "wakebell: priority: Input should be less than or equal"),
        (["greet", '{"user_id": 1}', "--run-after", "noon"], "wakebell: run_after: must be an instant in ISO 8601"),
        (["greet", '{"user_id": 1}', "--serial-key", "\udcff"], "wakebell: serial_key: holds half of a surrogate pair"),
    ],
)
@pytest.mark.usefixtures("nowhere")
def test_what_cannot_be_run_is_refused_in_a_sentence_and_wakes_no_database(said: Said, argv: list[str], told: str):
    assert said.failure("enqueue", *argv).startswith(told)


@pytest.mark.usefixtures("database")
def test_what_the_database_refuses_is_told_in_its_words(said: Said):
    assert said.failure("enqueue", "greet", '{"user_id": 1}', "--queue", "") == "wakebell: queue must not be empty"


@pytest.mark.usefixtures("database")
def test_a_handler_that_cannot_be_read_is_told(said: Said, folder: Path):
    (folder / "handlers" / "mail.py").write_text("this is no Python")

    assert "mail.py" in said.failure("enqueue", "greet", '{"user_id": 1}')


def test_jobs_are_listed_in_columns_the_newest_first(said: Said, database: str):
    said.out("enqueue", "greet", '{"user_id": 7}', "--run-after", "2027-01-02T09:00:00Z")
    said.out("enqueue", "mail", '{"user_id": 7}', "--run-after", "2027-01-02T09:00:00Z")
    error = "no\x1b[2J paper " + "and no ink " * 20
    sql(database, "UPDATE wakebell.jobs SET status = 'failed', attempts = 4, last_error = $1 WHERE id = 1", error)

    lines = said.out("jobs").splitlines()

    assert lines[0] == "id  type   status   attempts  run_after             last error"
    assert lines[1] == "2   mail   pending  0/4       2027-01-02 09:00:00Z"
    assert lines[2].startswith("1   greet  failed   4/4       2027-01-02 09:00:00Z  no [2J paper and no ink")
    assert lines[2].endswith("…")
    assert len(lines) == 3


def test_jobs_that_stand_in_line_or_of_an_unknown_type_are_shown_as_such(said: Said, database: str):
    for _ in range(2):
        said.out("enqueue", "greet", '{"user_id": 7}', "--serial-key", "line")
    sql(database, "INSERT INTO wakebell.jobs (type, queue, held) VALUES ('from_tomorrow', 'default', true)")

    lines = said.out("jobs").splitlines()

    assert [re.split(" {2,}", line)[2] for line in lines[1:]] == [
        "pending (type unknown)",
        "pending (in line)",
        "pending",
    ]


def test_filters_narrow_the_list(said: Said, database: str):
    for type_, queue in (("greet", "a"), ("greet", "b"), ("mail", "a")):
        said.out("enqueue", type_, '{"user_id": 7}', "--queue", queue)
    sql(database, "UPDATE wakebell.jobs SET status = 'failed' WHERE id = 2")
    sql(database, "INSERT INTO wakebell.jobs (type, queue) VALUES ('send_message', 'wakebell.send')")

    def ids(*argv: str) -> list[int]:
        return [job["id"] for job in said.data("jobs", *argv)]

    assert ids() == [3, 2, 1]
    assert ids("--type", "greet") == [2, 1]
    assert ids("--queue", "a") == [3, 1]
    assert ids("--status", "failed") == [2]
    assert ids("--limit", "1") == [3]
    assert ids("--own") == [4, 3, 2, 1]
    assert ids("--type", "send_message") == ids("--queue", "wakebell.send") == [4]


def test_a_list_that_ends_early_says_so(said: Said, database: str):
    sql(
        database,
        "INSERT INTO wakebell.jobs (type, queue, payload) "
        "SELECT 'greet', 'default', jsonb_build_object('text', repeat('x', 200000)) FROM generate_series(1, 9)",
    )

    assert len(said.data("jobs", "--limit", "8")) == 8
    assert said.out("jobs", "--limit", "8").splitlines()[-1] == "older ones follow; raise --limit to see them"
    assert len(said.out("jobs").splitlines()) == 10


@pytest.mark.usefixtures("database")
def test_nothing_to_list_is_said(said: Said):
    assert said.out("jobs") == "there are no such jobs\n"
    assert said.data("jobs") == []


def test_one_job_is_shown_with_its_failures(said: Said, database: str):
    said.out("enqueue", "greet", '{"user_id": 7}')
    failures = [
        {"attempt": 1, "at": "2026-11-30T09:00:00.25Z", "error": "no paper", "traceback": "Traceback\n  line 1\x1b"},
        {"attempt": 2, "at": "2026-11-30T09:01:00Z", "error": "no ink", "traceback": None},
    ]
    sql(database, "UPDATE wakebell.jobs SET failures = CAST($1 AS jsonb)", json.dumps(failures))

    lines = said.out("jobs", "1").splitlines()

    assert lines[:3] == ["id            1", "type          greet", 'payload       {"user_id": 7}']
    assert lines[-6:] == [
        "",
        "attempt 2 failed at 2026-11-30 09:01:00Z: no ink",
        "",
        "attempt 1 failed at 2026-11-30 09:00:00Z: no paper",
        "    Traceback",
        "      line 1 ",
    ]
    assert [failure["error"] for failure in said.data("jobs", "1")["failures"]] == ["no paper", "no ink"]


@pytest.mark.usefixtures("database")
def test_a_job_that_is_not_there_is_told(said: Said):
    gone = "wakebell: there is no such job; one that ended is deleted after [retention] jobs_days"

    for command in (["jobs", "7"], ["retry", "7"], ["cancel", "7"], ["cancel", "9" * 40]):
        assert said.failure(*command) == gone


def test_a_failed_job_is_run_again(said: Said, database: str):
    said.out("enqueue", "greet", '{"user_id": 7}')
    sql(database, "UPDATE wakebell.jobs SET status = 'failed', attempts = 4")

    assert said.out("retry", "1") == "job 1 will run with the next tick\n"
    assert said.data("retry", "1")["status"] == "pending"

    sql(database, "UPDATE wakebell.jobs SET status = 'done'")
    assert said.failure("retry", "1").startswith("wakebell: job 1 is done; ")


def test_all_failed_ones_of_a_type_are_run_again(said: Said, database: str):
    for type_ in ("greet", "greet", "mail"):
        said.out("enqueue", type_, '{"user_id": 7}')
    sql(database, "UPDATE wakebell.jobs SET status = 'failed', attempts = 4")

    assert said.out("retry", "--type", "mail") == "1 failed job of the type mail will run again with the next tick\n"
    assert said.data("retry", "--type", "greet") == {"retried": 2}
    assert said.out("retry", "--type", "x").startswith("0 failed jobs of the type x will")


def test_a_job_is_cancelled(said: Said, database: str):
    said.out("enqueue", "greet", '{"user_id": 7}')

    assert said.out("cancel", "1") == "job 1 is cancelled\n"
    assert said.data("cancel", "1")["status"] == "cancelled"

    sql(database, "UPDATE wakebell.jobs SET status = 'done'")
    assert said.failure("cancel", "1") == "wakebell: job 1 is done already; only one that waits can be cancelled"


@pytest.mark.parametrize(
    ("argv", "told"),
    [
        (["jobs", "one"], "must be the number of a job"),
        (["jobs", "--status", "retrying"], "invalid choice"),
        (["jobs", "--limit", "0"], "must be a whole number from 1 to 1000"),
        (["enqueue", "greet"], "JSON"),
        (["enqueue", "greet", "{}", "--priority", "high"], "invalid int value"),
        (["retry"], "one of the arguments"),
        (["retry", "1", "--type", "greet"], "not allowed with"),
        (["cancel"], "ID"),
        (["work", "--poll", "0"], "must be a number of seconds from 0.1 to 60"),
        (["work", "--every", "nan"], "must be a number of seconds from 1 to 86400"),
    ],
)
@pytest.mark.usefixtures("nowhere")
def test_bad_arguments_are_refused(said: Said, argv: list[str], told: str):
    assert told in said.refusal(*argv)


@pytest.mark.usefixtures("nowhere")
def test_an_id_goes_with_no_filter(said: Said):
    assert said.failure("jobs", "1", "--status", "failed").startswith("wakebell: a job's ID goes with no filter")


@pytest.mark.usefixtures("nowhere")
@pytest.mark.parametrize("argv", [["jobs"], ["retry", "1"], ["cancel", "1"], ["enqueue", "greet", '{"user_id": 1}']])
def test_a_database_that_is_away_is_told_in_one_sentence(said: Said, argv: list[str]):
    told = said.failure(*argv)

    assert told.startswith("wakebell: the database 127.0.0.1/name could not be reached")
    assert "s3cr3t" not in told


@pytest.mark.usefixtures("database")
def test_looking_at_jobs_needs_the_database_alone(said: Said, folder: Path):
    (folder / "wakebell.toml").write_text("this is no TOML")

    assert said.data("jobs") == []


def test_a_missing_schema_is_told_in_one_sentence(said: Said, database: str):
    sql(database, "DROP SCHEMA wakebell CASCADE")

    assert said.failure("jobs") == "wakebell: the database's schema is missing; run `wakebell migrate`"


def test_without_a_database_and_a_configuration_none_is_made(said: Said, folder: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("DATABASE_URL", raising=False)
    (folder / "wakebell.toml").write_text("this is no TOML")

    assert said.failure("jobs").startswith("wakebell.toml")
    assert not (folder / ".wakebell").exists()
