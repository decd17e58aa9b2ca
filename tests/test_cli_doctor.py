"""`wakebell doctor`, as a command."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from app import cli
from app.commands_doctor import _Unwaited
from app.dev import postgres
from app.domain.errors import ServiceError
from tests.fakes import loggers


@pytest.fixture(autouse=True)
def as_before() -> Iterator[None]:
    with loggers.kept():
        yield


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CRON_SECRET", "a1b2c3d4e5f6a7b8c9d0e1f2a3b4c5d6")
    (tmp_path / "wakebell.toml").write_text("")
    return tmp_path


def test_it_tells_a_line_for_each_thing_and_fails_where_one_fails(
    empty_database_url: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.setenv("DATABASE_URL", empty_database_url)

    assert cli.main(["doctor"]) == 1

    captured = capsys.readouterr()
    assert captured.err == ""
    lines = captured.out.splitlines()
    assert {line.split()[0] for line in lines} <= {"ok", "warn", "fail", "skipped"}
    [schema] = [line for line in lines if " database schema " in line]
    assert schema.startswith("fail ")
    assert schema.endswith("there is none; run `wakebell migrate`")
    assert "a1b2c3d4" not in captured.out


def test_where_nothing_fails_it_succeeds_and_tells_so_as_data(
    database_url: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.setenv("DATABASE_URL", database_url)

    assert cli.main(["doctor", "--json"]) == 0

    told = json.loads(capsys.readouterr().out)
    assert told["status"] == "warn"  # nobody has rung, and nobody would notice
    assert {"status": "ok", "name": "database schema", "found": "it is this release's", "change": ""} in told["checks"]


def test_without_any_database_the_rest_is_still_told(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    def missing() -> None:
        raise ServiceError("The embedded PostgreSQL is not installed: set DATABASE_URL.")

    monkeypatch.setattr(postgres, "start", missing)

    assert cli.main(["doctor"]) == 1

    told = capsys.readouterr().out
    assert "The embedded PostgreSQL is not installed: set DATABASE_URL." in told
    assert "nobody notices when the rings stop" in told


def test_where_the_configuration_cannot_be_read_no_database_is_made(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    (folder / "wakebell.toml").unlink()
    monkeypatch.setattr(postgres, "start", lambda: pytest.fail("a database was started"))

    assert cli.main(["doctor"]) == 1

    assert "wakebell.toml: there is no such file" in capsys.readouterr().out


def test_a_resolver_that_does_not_answer_holds_nobody_back():
    hanging = threading.Event()

    async def looked() -> str:
        loop = asyncio.get_running_loop()
        loop.set_default_executor(_Unwaited())
        stuck = loop.run_in_executor(None, hanging.wait)
        assert await loop.run_in_executor(None, int, "7") == 7
        with pytest.raises(ValueError, match="invalid literal"):
            await loop.run_in_executor(None, int, "seven")
        stuck.cancel()
        return "done"

    assert asyncio.run(looked()) == "done"
    hanging.set()
