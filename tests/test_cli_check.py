"""`wakebell check`, as a command."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from app import check, cli
from app.dev import postgres
from app.domain.errors import ServiceError
from tests.fakes import loggers


@pytest.fixture(autouse=True)
def as_before() -> Iterator[None]:
    with loggers.kept():
        yield


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory with a configuration in which everything is as usual."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CRON_SECRET", "a-cron-secret-of-thirty-characters")
    (tmp_path / "wakebell.toml").write_text("")
    return tmp_path


def test_a_check_with_nothing_to_tell_says_so(
    database_url: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.setenv("DATABASE_URL", database_url)

    assert cli.main(["check"]) == 0

    captured = capsys.readouterr()
    assert captured.out.splitlines()[-1] == "everything is in order"
    assert captured.err == ""


def test_a_check_tells_ten_problems_at_once(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.setenv("DATABASE_URL", "postgres://127.0.0.1:0/name?sslmode=maybe&one=1")
    monkeypatch.setenv("MIGRATION_DATABASE_URL", "mysql://x")
    monkeypatch.setenv("CRON_SECRET", "short")
    monkeypatch.setenv("PORT", "zero")
    (folder / "wakebell.toml").write_text(
        '[tick]\nmax_jobs = 0\n[sources.a]\nkind = "fede"\n[sources.b]\nkind = "feed"\nurl = "ftp://x"\n'
        '[recipients.me]\nchannel = "nowhere"\n[subscriptions.all]\nto = ["you"]\n',
    )

    assert cli.main(["check"]) == 1

    problems = capsys.readouterr().err.splitlines()
    assert len(problems) >= 10
    for name in ("DATABASE_URL: ", "MIGRATION_DATABASE_URL: ", "CRON_SECRET: ", "PORT: "):
        assert any(problem.startswith(name) for problem in problems)
    for word in ("max_jobs", "fede", "sources.b", "nowhere", "you", "maybe", '"one"', "port"):
        assert any(word in problem for problem in problems), word
    assert len(problems) == len(set(problems))


def test_a_check_as_data(empty_database_url: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    monkeypatch.setenv("DATABASE_URL", empty_database_url)

    assert cli.main(["check", "--json"]) == 1

    captured = capsys.readouterr()
    assert json.loads(captured.out)["problems"] == [f"the database's schema is missing; {check.MIGRATE}"]
    assert captured.err == ""


def test_a_check_without_any_database_still_tells_the_rest(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    def missing() -> None:
        raise ServiceError("The embedded PostgreSQL is not installed: set DATABASE_URL.")

    monkeypatch.setattr(postgres, "start", missing)
    (folder / "handlers").mkdir()
    (folder / "handlers" / "broken.py").write_text("import nothing_of_the_kind")

    assert cli.main(["check"]) == 1

    told = capsys.readouterr().err
    assert "The embedded PostgreSQL is not installed" in told
    assert "handlers/broken.py: cannot be imported" in told


@pytest.mark.parametrize("command", ["check", "tick"])
def test_where_the_configuration_cannot_be_read_no_database_is_made(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], command: str
):
    (folder / "wakebell.toml").unlink()
    monkeypatch.setattr(postgres, "start", lambda: pytest.fail("a database was started"))

    assert cli.main([command]) == 1

    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("wakebell.toml: there is no such file")
    assert len(captured.err.splitlines()) == 1
