"""The commands `conversations`, `resume-conversation` and `forget-conversation`."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path

import asyncpg
import pytest

from app import cli
from tests.fakes import loggers

ADDED = """
WITH talk AS (
    INSERT INTO wakebell.conversations (chat, key, address, paused_until)
    VALUES ('clinic', 'bot:U1', 'U1', '2999-01-01T00:00:00Z'), ('desk', '7', '7', NULL) RETURNING id
)
INSERT INTO wakebell.turns (conversation_id, mark, side, text) SELECT id, 'm', 'person', 'what was said' FROM talk
"""


@pytest.fixture(autouse=True)
def as_before() -> Iterator[None]:
    with loggers.kept():
        yield


@pytest.fixture(autouse=True)
def talks(database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two of them, of which the first is paused."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "wakebell.toml").write_text("", "utf-8")
    monkeypatch.setenv("DATABASE_URL", database_url)

    async def add() -> None:
        connection = await asyncpg.connect(database_url)
        await connection.execute(ADDED)
        await connection.close()

    asyncio.run(add())


def run(*args: str, capsys: pytest.CaptureFixture[str]) -> str:
    status = cli.main(list(args))
    told = capsys.readouterr()
    assert status == 0, told.err
    return told.out


def test_they_are_listed_resumed_and_forgotten(capsys: pytest.CaptureFixture[str]):
    heading, desk, clinic = run("conversations", capsys=capsys).splitlines()
    assert heading.split() == ["id", "chat", "person", "turns", "last", "paused", "until"]
    assert desk.split()[1:4] == ["desk", "7", "1"]
    assert clinic.split()[1:4] == ["clinic", "U1", "1"]
    assert clinic.endswith("2999-01-01 00:00:00Z")

    [one] = json.loads(run("conversations", "--paused", "--json", capsys=capsys))["conversations"]
    told = run("resume-conversation", str(one["id"]), capsys=capsys)
    assert told == f"the service answers in conversation {one['id']} again\n"
    assert run("conversations", "--paused", capsys=capsys) == "there is no conversation\n"

    told = run("forget-conversation", str(one["id"]), "--json", capsys=capsys)
    assert json.loads(told) == {"id": one["id"], "forgotten": True}
    assert len(json.loads(run("conversations", "--json", capsys=capsys))["conversations"]) == 1
    assert "older ones" not in run("conversations", "--chat", "desk", "--limit", "1", capsys=capsys)


@pytest.mark.parametrize("command", ["resume-conversation", "forget-conversation"])
def test_one_that_is_not_there_is_told(command: str, capsys: pytest.CaptureFixture[str]):
    assert cli.main([command, "999999"]) == 1

    told = "wakebell: there is no conversation 999999; `wakebell conversations` lists them\n"
    assert capsys.readouterr().err == told


@pytest.mark.parametrize("given", ["one", "-1", "9" * 19, "٣"])
def test_what_is_no_number_is_refused(given: str, capsys: pytest.CaptureFixture[str]):
    with pytest.raises(SystemExit):
        cli.main(["forget-conversation", given])
    assert "must be a number" in capsys.readouterr().err or given == "-1"
