"""A kind is a file name; a user's job type is a file in a folder of theirs."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from app import plugins
from app.domain.errors import ConfigError

HANDLER = """
from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from pydantic import BaseModel


class Payload(BaseModel):
    wait: timedelta


@dataclass(slots=True)
class Seen:
    count: int = 0
"""


def test_kinds_are_the_files_of_the_folder():
    found = plugins.kinds("app.channels")

    assert "inbox" in found
    assert found == sorted(found)
    assert not any(kind.startswith("_") for kind in found)


@pytest.mark.parametrize("kind", ["nothing", "__init__", "", "inbox.x", "../plugins"])
def test_a_kind_that_is_no_file_is_a_key_error(kind: str):
    with pytest.raises(KeyError):
        plugins.load("app.channels", kind)


def test_listing_the_kinds_imports_none_of_them():
    code = (
        "import sys; from app import plugins; plugins.kinds('app.channels'); print('app.channels.line' in sys.modules)"
    )

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout.strip() == "False"


def test_a_users_files_are_loaded_by_name(tmp_path: Path):
    (tmp_path / "send_report.py").write_text(HANDLER)
    (tmp_path / "say-hello.py").write_text("X = 1\n")
    (tmp_path / "_shared.py").write_text("X = 2\n")
    (tmp_path / "notes.txt").write_text("")

    modules = plugins.load_folder(tmp_path)

    assert list(modules) == ["say-hello", "send_report"]


def test_annotations_written_as_texts_are_understood(tmp_path: Path):
    (tmp_path / "send_report.py").write_text(HANDLER)

    module = plugins.load_folder(tmp_path)["send_report"]

    assert module.Payload(wait="PT5S").wait.total_seconds() == 5


def test_files_may_share_a_file_of_their_folder(tmp_path: Path):
    (tmp_path / "_shared.py").write_text("GREETING = 'hello'\n")
    (tmp_path / "greet.py").write_text("from ._shared import GREETING\n")

    assert plugins.load_folder(tmp_path)["greet"].GREETING == "hello"


def test_another_folder_brings_its_own_files(tmp_path: Path):
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "_shared.py").write_text(f"NAME = {name!r}\n")
        (tmp_path / name / "job.py").write_text("from ._shared import NAME\n")

    assert [plugins.load_folder(tmp_path / name)["job"].NAME for name in ("one", "two")] == ["one", "two"]


def test_a_missing_folder_holds_none(tmp_path: Path):
    assert plugins.load_folder(tmp_path / "nowhere") == {}


def test_every_file_that_does_not_import_is_named(tmp_path: Path):
    (tmp_path / "a.py").write_text("import nothing_of_that_name\n")
    (tmp_path / "b.py").write_text("def broken(:\n")
    (tmp_path / "c.py").write_text("X = 1\n")

    with pytest.raises(ConfigError) as caught:
        plugins.load_folder(tmp_path)

    first, second = caught.value.problems
    assert first.startswith(f"{tmp_path.name}/a.py: cannot be imported: ModuleNotFoundError: ")
    assert second.startswith(f"{tmp_path.name}/b.py: cannot be imported: SyntaxError: ")
