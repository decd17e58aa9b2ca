from __future__ import annotations

import dataclasses
import time
from pathlib import Path

import pytest

from app import config_watch, settings
from app.settings import Settings

BROKEN = '[alerts]\nto = ["an-api-token-of-thirty"]\nrepeat = 1\n'


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(config_watch, "_BROKEN_AT", {})
    path = tmp_path / "wakebell.toml"
    path.write_text("", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("WAKEBELL_CONFIG", str(path))
    monkeypatch.setenv("API_TOKEN", "an-api-token-of-thirty")
    return path


@pytest.fixture
def configured(path: Path) -> Settings:
    read = settings.load(settings.from_process())
    return dataclasses.replace(read, read_at=time.monotonic() - 1000)


def test_a_file_that_is_as_it_was_read_is_well_since_then(configured: Settings):
    found = config_watch.look(configured)

    assert found.sign is None
    assert found.well is not None
    assert found.well.key == "config_broken:wakebell.toml"
    assert 999 < found.well.seconds < 1060


def test_a_file_that_no_start_could_use_is_told_with_its_first_problem_and_no_secret(path: Path, configured: Settings):
    path.write_text(BROKEN, encoding="utf-8")

    found = config_watch.look(configured)

    assert found.well is None
    assert found.sign is not None
    assert (found.sign.kind, found.sign.subject) == ("config_broken", "wakebell.toml")
    assert found.sign.reason is not None
    assert found.sign.reason.endswith("(and 1 more)")
    assert "an-api-token-of-thirty" not in found.sign.reason


@pytest.mark.parametrize("text", ["", "# another one\n"])
def test_a_file_that_was_mended_is_well_from_now_on(path: Path, configured: Settings, text: str):
    path.write_text(BROKEN, encoding="utf-8")
    config_watch.look(configured)
    path.write_text(text, encoding="utf-8")

    found = config_watch.look(configured)

    assert found.well is not None
    assert found.well.seconds == 0


def test_a_file_that_is_away_says_nothing(path: Path, configured: Settings):
    path.unlink()

    assert config_watch.look(configured) == config_watch.Found()
