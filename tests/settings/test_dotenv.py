"""The file `.env`: what is read, what is refused, what is written."""

from __future__ import annotations

from pathlib import Path

import pytest

from app.domain.errors import ConfigError
from app.settings import read_dotenv, write_missing


@pytest.mark.parametrize(
    ("line", "value"),
    [
        ("KEY=value", "value"),
        ("  KEY = value  ", "value"),
        ("export KEY=value", "value"),
        ("KEY=", ""),
        ("KEY=value # a comment", "value"),
        ("KEY=# a comment", ""),
        ("KEY=a#b", "a#b"),
        ("KEY=a=b==", "a=b=="),
        ("KEY='a # b'", "a # b"),
        ("KEY='a\\nb'", "a\\nb"),
        ('KEY="a # b" # a comment', "a # b"),
        ('KEY="a\\nb \\"c\\" \\\\d"', 'a\nb "c" \\d'),
        ('KEY="it\'s"', "it's"),
        ("KEY=$HOME", "$HOME"),
        ("KEY=ระฆัง\r", "ระฆัง"),
        ("KEY=first\nKEY=second", "second"),
        ("\ufeffKEY=value", "value"),
        ("# a comment\n\nKEY=value\n", "value"),
    ],
)
def test_a_line_is_read_as_a_shell_would(line: str, value: str, folder: Path):
    (folder / ".env").write_text(line, encoding="utf-8", newline="")

    assert read_dotenv(folder / ".env") == {"KEY": value}


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("hidden", "line 2: is not KEY=value"),
        ("MY-KEY=hidden", "line 2: is not KEY=value"),
        ("1KEY=hidden", "line 2: is not KEY=value"),
        ("KEY='hidden", "line 2: the quotes do not match"),
        ('KEY="hidden', "line 2: the quotes do not match"),
        ('KEY="hidden"more', "line 2: the quotes do not match"),
    ],
)
def test_a_bad_line_is_told_by_its_number_and_not_repeated(line: str, sentence: str, folder: Path):
    (folder / ".env").write_text(f"GOOD=1\n{line}\n")

    with pytest.raises(ConfigError) as caught:
        read_dotenv(folder / ".env")

    assert len(caught.value.problems) == 1
    assert sentence in caught.value.problems[0]
    assert "hidden" not in str(caught.value)


def test_no_file_and_a_folder_of_that_name_hold_nothing(folder: Path):
    (folder / "venv").mkdir()

    assert read_dotenv(folder / ".env") == {}
    assert read_dotenv(folder / "venv") == {}


def test_a_file_that_is_not_utf8_is_told(folder: Path):
    (folder / ".env").write_bytes(b"A=caf\xe9")

    with pytest.raises(ConfigError, match="is not UTF-8"):
        read_dotenv(folder / ".env")


def test_only_what_is_missing_is_appended_and_the_rest_stays_byte_for_byte(folder: Path):
    old = b"\xef\xbb\xbf# mine\r\nAPI_TOKEN='kept'   \r\nCRON_SECRET=\r\nLAST=no line end"
    (folder / ".env").write_bytes(old)

    there = write_missing(folder / ".env", {"API_TOKEN": "new", "CRON_SECRET": "made", "SPACED": 'a "b" #c\n\\'})

    assert (folder / ".env").read_bytes() == old + b'\nCRON_SECRET=made\nSPACED="a \\"b\\" #c\\n\\\\"\n'
    assert there == read_dotenv(folder / ".env")
    assert there["API_TOKEN"] == "kept"
    assert there["SPACED"] == 'a "b" #c\n\\'


def test_what_is_written_is_for_its_owner_alone_and_leaves_nothing_else_behind(folder: Path):
    write_missing(folder / ".env", {"CRON_SECRET": "made"})

    assert (folder / ".env").stat().st_mode & 0o777 == 0o600
    assert [path.name for path in folder.iterdir()] == [".env"]


def test_a_file_that_has_all_is_not_touched(folder: Path):
    (folder / ".env").write_text("CRON_SECRET=mine\n")
    before = (folder / ".env").stat()

    assert write_missing(folder / ".env", {"CRON_SECRET": "made"}) == {"CRON_SECRET": "mine"}
    assert (folder / ".env").stat().st_ino == before.st_ino


def test_a_link_stays_a_link(folder: Path):
    (folder / "real").write_text("A=1\n")
    (folder / ".env").symlink_to("real")

    write_missing(folder / ".env", {"B": "2"})

    assert (folder / ".env").is_symlink()
    assert (folder / "real").read_text() == "A=1\nB=2\n"


def test_a_file_that_cannot_be_written_is_told_in_one_sentence(folder: Path):
    with pytest.raises(ConfigError, match=r"cannot be written .* or set CRON_SECRET"):
        write_missing(folder / "missing" / ".env", {"CRON_SECRET": "made"})
