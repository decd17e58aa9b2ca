from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import asyncpg
import pytest

from app import __version__, cli, tick
from app.stores.schema import HEAD
from tests.fakes import loggers
from tests.flow.service import free_port

COMMANDS = ("serve", "dev", "tick", "migrate", "preview", "send-test", "check")
ROOT = Path(__file__).parent.parent

SECRET = "a-cron-secret-of-thirty-characters"


@pytest.fixture(autouse=True)
def as_before() -> Iterator[None]:
    with loggers.kept():
        yield


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory with a configuration in which everything is as usual."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CRON_SECRET", SECRET)
    (tmp_path / "wakebell.toml").write_text("")
    return tmp_path


@pytest.fixture
def with_database(database_url: str, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("DATABASE_URL", database_url)
    return database_url


@pytest.fixture
def with_empty_database(empty_database_url: str, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("DATABASE_URL", empty_database_url)
    return empty_database_url


@pytest.fixture
def without_database(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DATABASE_URL", "postgres://app:s3cr3t@127.0.0.1:1/name")


def refused(capsys: pytest.CaptureFixture[str], *argv: str) -> tuple[int, str]:
    """The exit status of a command that argparse refuses, and what it says."""
    with pytest.raises(SystemExit) as caught:
        cli.main(argv)
    return int(caught.value.code or 0), capsys.readouterr().err


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_explains_itself(capsys: pytest.CaptureFixture[str], command: str):
    with pytest.raises(SystemExit) as caught:
        cli.main([command, "--help"])

    told = capsys.readouterr().out
    assert caught.value.code == 0
    assert told.startswith(f"usage: wakebell {command}")
    assert len(told.splitlines()) > 3


def test_all_commands_are_listed(capsys: pytest.CaptureFixture[str]):
    with pytest.raises(SystemExit):
        cli.main(["--help"])

    told = capsys.readouterr().out
    assert [command for command in COMMANDS if f"    {command}" not in told] == []


def test_the_version_is_told(capsys: pytest.CaptureFixture[str]):
    with pytest.raises(SystemExit):
        cli.main(["--version"])

    assert capsys.readouterr().out == f"wakebell {__version__}\n"


@pytest.mark.parametrize(
    ("argv", "told"),
    [
        ([], "COMMAND"),
        (["nothing"], "nothing"),
        (["tick", "--budget", "0"], "must be a whole number from 1 to 300"),
        (["tick", "--budget", "301"], "must be a whole number from 1 to 300"),
        (["tick", "--budget", "2.5"], "must be a whole number from 1 to 300"),
        (["tick", "--budget", "-1"], "--budget"),
        (["tick", "--max-jobs", "1001"], "must be a whole number from 1 to 1000"),
        (["tick", "--max-jobs", "٣"], "must be a whole number from 1 to 1000"),
        (["tick", "--max-jobs"], "expected one argument"),
        (["send-test"], "RECIPIENT"),
        (["preview"], "SOURCE"),
    ],
)
def test_bad_arguments_are_refused(capsys: pytest.CaptureFixture[str], argv: list[str], told: str):
    status, words = refused(capsys, *argv)

    assert status == 2
    assert told in words
    assert "Traceback" not in words


@pytest.mark.usefixtures("with_database")
def test_a_tick_is_told_in_lines(capsys: pytest.CaptureFixture[str]):
    assert cli.main(["tick", "--budget", "10", "--max-jobs", "5"]) == 0

    captured = capsys.readouterr()
    assert captured.out.startswith("tick 1 ok in ")
    assert "tick ended" in captured.err


@pytest.mark.usefixtures("with_database")
def test_a_tick_as_data_is_alone_on_stdout(capsys: pytest.CaptureFixture[str]):
    assert cli.main(["tick", "--json"]) == 0

    captured = capsys.readouterr()
    assert json.loads(captured.out)["status"] == "ok"
    assert "tick ended" in captured.err


class Summaries:
    def __init__(self, status: str) -> None:
        self.status = status
        self.asked: dict[str, Any] = {}

    async def run(self, service: object, **bounds: Any) -> Mapping[str, Any]:
        self.asked = bounds
        return {
            "tick": 7,
            "status": self.status,
            "duration_ms": 1840,
            "sources": {"due": 3, "new_items": 4, "failed": 0},
            "jobs": {"claimed": 0},
            "errors": ["source board failed"],
        }


@pytest.mark.usefixtures("with_database")
@pytest.mark.parametrize(("status", "code"), [("ok", 0), ("partial", 0), ("failed", 1)])
def test_a_tick_that_failed_is_an_exit_status(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, status: str, code: int
):
    summaries = Summaries(status)
    monkeypatch.setattr(tick, "run", summaries.run)

    assert cli.main(["tick", "--budget", "7"]) == code

    assert capsys.readouterr().out.splitlines() == [
        f"tick 7 {status} in 1840 ms",
        "  sources: 3 due, 4 new items",
        "  source board failed",
    ]
    assert (summaries.asked["budget"].total_seconds(), summaries.asked["max_jobs"]) == (7, 100)
    assert summaries.asked["trigger"] == "cli"


@pytest.mark.usefixtures("with_empty_database")
def test_a_migration_says_what_it_did_and_twice_is_once(capsys: pytest.CaptureFixture[str]):
    assert cli.main(["migrate"]) == 0
    first = capsys.readouterr().out
    assert cli.main(["migrate"]) == 0
    second = capsys.readouterr().out
    assert cli.main(["migrate", "--json"]) == 0
    third = json.loads(capsys.readouterr().out)

    assert first == f"the schema went from nothing to {HEAD}\n"
    assert second == f"the schema is at {HEAD} already\n"
    assert third == {"before": HEAD, "after": HEAD}


@pytest.mark.usefixtures("with_empty_database")
def test_a_migration_needs_the_database_alone(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.delenv("CRON_SECRET")
    (folder / "wakebell.toml").write_text("this is no TOML")

    assert cli.main(["migrate"]) == 0


@pytest.mark.usefixtures("without_database")
def test_a_migration_goes_to_its_own_address(
    empty_database_url: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.setenv("MIGRATION_DATABASE_URL", empty_database_url)
    assert cli.main(["migrate"]) == 0

    monkeypatch.setenv("MIGRATION_DATABASE_URL", "mysql://x")
    assert cli.main(["migrate"]) == 1
    assert capsys.readouterr().err.startswith("MIGRATION_DATABASE_URL: ")


@pytest.mark.usefixtures("without_database")
@pytest.mark.parametrize("command", ["tick", "migrate"])
def test_a_database_that_is_away_is_told_in_one_sentence(capsys: pytest.CaptureFixture[str], command: str):
    assert cli.main([command]) == 1

    captured = capsys.readouterr()
    assert captured.err == "wakebell: the database 127.0.0.1/name could not be reached (Connect call failed)\n" or (
        captured.err.startswith("wakebell: the database 127.0.0.1/name could not be reached")
        and len(captured.err.splitlines()) == 1
    )
    assert "s3cr3t" not in captured.out + captured.err


@pytest.mark.usefixtures("with_empty_database")
def test_a_missing_schema_is_told_in_one_sentence(capsys: pytest.CaptureFixture[str]):
    assert cli.main(["tick"]) == 1

    assert capsys.readouterr().err == "wakebell: the database's schema is missing; run `wakebell migrate`\n"


@pytest.mark.usefixtures("with_database")
def test_all_problems_of_the_configuration_are_told_a_line_each(folder: Path, capsys: pytest.CaptureFixture[str]):
    (folder / "wakebell.toml").write_text("[service]\nnmae = 1\n[tick]\nmax_jobs = 0\n")

    assert cli.main(["tick"]) == 1

    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 2
    assert all(line.startswith("wakebell.toml") for line in lines)


def test_serving_without_a_secret_is_refused(
    with_database: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.delenv("CRON_SECRET")
    monkeypatch.setenv("PORT", str(free_port()))

    assert cli.main(["serve"]) == 1
    assert capsys.readouterr().err.startswith("CRON_SECRET: is not set")


@pytest.mark.usefixtures("with_database")
def test_serving_where_somebody_else_does_is_refused(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.setenv("HOST", "203.0.113.1")

    assert cli.main(["serve"]) == 1
    assert "cannot be listened on" in capsys.readouterr().err


@pytest.mark.usefixtures("with_database")
def test_an_interrupted_command_says_nothing(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    async def interrupted(*given: object, **more: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(tick, "run", interrupted)

    assert cli.main(["tick"]) == 130
    assert capsys.readouterr().err == ""


@pytest.mark.usefixtures("with_database")
def test_a_bug_is_told_in_one_sentence_and_logged_when_asked(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    async def buggy(*given: object, **more: object) -> None:
        raise KeyError("a\nbug")

    monkeypatch.setattr(tick, "run", buggy)

    assert cli.main(["tick"]) == 1
    quiet = capsys.readouterr()
    monkeypatch.setenv("LOG_LEVEL", "DEBUG")
    assert cli.main(["tick"]) == 1
    loud = capsys.readouterr()

    assert quiet.err.startswith("wakebell: a bug, or something that nobody thought of: KeyError: ")
    assert len(quiet.err.splitlines()) == 1
    assert "Traceback" not in quiet.out + quiet.err
    assert "Traceback" in loud.err


@pytest.mark.usefixtures("with_database")
async def test_what_the_database_forbids_is_told_in_one_sentence(database_url: str, capsys: pytest.CaptureFixture[str]):
    connection = await asyncpg.connect(database_url)
    await connection.execute("ALTER TABLE wakebell.alembic_version RENAME COLUMN version_num TO other")
    await connection.close()

    status = await _in_thread(["tick"])

    assert status == 1
    told = capsys.readouterr().err
    assert len(told.splitlines()) == 1


async def _in_thread(argv: list[str]) -> int:
    """A command has a loop of its own; outside the main thread it may not listen for signals, which none does here."""
    import asyncio

    return await asyncio.to_thread(cli.main, argv)


class Embedded:
    """In place of the embedded PostgreSQL: who starts it stops it."""

    def __init__(self, url: str, *, started: bool) -> None:
        self.url = url
        self.started = started
        self.stopped = 0

    def start(self) -> Embedded:
        return self

    def stop(self) -> None:
        self.stopped += 1


@pytest.mark.parametrize("started", [True, False])
def test_without_an_address_the_embedded_database_serves(
    empty_database_url: str,
    monkeypatch: pytest.MonkeyPatch,
    started: bool,  # noqa: FBT001
):
    from app.dev import postgres

    embedded = Embedded(empty_database_url, started=started)
    monkeypatch.setattr(postgres, "start", embedded.start)

    assert cli.main(["migrate"]) == 0
    assert cli.main(["tick"]) == 0
    assert embedded.stopped == (2 if started else 0), "one that ran before goes on"


def run(*argv: str, **options: Any) -> subprocess.CompletedProcess[str]:
    """A real process of its own."""
    environ = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.run(
        [sys.executable, "-m", "app", *argv], env=environ, text=True, capture_output=True, check=False, **options
    )


def test_help_comes_without_what_it_does_not_need():
    slow = ("fastapi", "sqlalchemy", "asyncpg", "uvicorn", "alembic", "feedparser")
    script = f"import sys, app.cli; print([name for name in {slow!r} if name in sys.modules])"

    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, text=True, capture_output=True, check=True)

    assert done.stdout == "[]\n"


def test_the_module_is_the_command(with_database: str):
    done = run("tick", "--json")

    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["status"] == "ok"


def test_who_has_read_enough_is_not_shown_a_traceback(with_database: str):
    reading, writing = os.pipe()
    os.close(reading)
    environ = {**os.environ, "PYTHONPATH": str(ROOT)}

    done = subprocess.run(
        [sys.executable, "-m", "app", "check"],
        env=environ,
        stdout=writing,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )
    os.close(writing)

    assert (done.returncode, done.stderr) == (1, "")


def test_the_log_goes_where_the_settings_say(
    with_database: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.setenv("LOG_FORMAT", "console")
    assert cli.main(["tick"]) == 0
    assert "tick ended  summary=" in capsys.readouterr().err

    monkeypatch.setenv("LOG_FORMAT", "json")
    assert cli.main(["tick"]) == 0
    first, *_ = capsys.readouterr().err.splitlines()
    assert json.loads(first)["message"] == "tick ended"
