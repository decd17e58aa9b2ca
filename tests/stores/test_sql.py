from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from app.stores import sql

SCRIPT = """
-- name: first
-- What it is for.
SELECT :one AS one,  -- a comment; with a semicolon
    2 AS two;

-- name: second
DELETE FROM wakebell.nothing WHERE it = :it;
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setattr(sql, "__file__", str(tmp_path / "sql.py"))
    sql.load.cache_clear()
    yield tmp_path
    sql.load.cache_clear()


def test_statements_are_found_by_name(folder: Path):
    (folder / "things.sql").write_text(SCRIPT)

    loaded = sql.load("things")

    assert list(loaded) == ["first", "second"]
    assert loaded["first"].text.endswith("2 AS two")
    assert loaded["second"].text == "DELETE FROM wakebell.nothing WHERE it = :it"
    assert loaded["first"].driver == (loaded["first"].text.replace(":one", "$1"), ("one",))


def test_a_file_is_read_once(folder: Path):
    (folder / "things.sql").write_text(SCRIPT)

    assert sql.load("things") is sql.load("things")


def test_a_store_without_a_file_is_told(folder: Path):
    with pytest.raises(FileNotFoundError):
        sql.load("nothing")
