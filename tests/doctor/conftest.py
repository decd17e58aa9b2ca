"""A configuration for the doctor to look at."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from app import settings
from app.settings import Settings

Configured = Callable[..., Settings]

SECRET = "a1b2c3d4e5f6a7b8c9d0e1f2a3b4c5d6"


@pytest.fixture(autouse=True)
def direct(monkeypatch: pytest.MonkeyPatch) -> None:
    """No proxy of whoever runs the tests."""
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


@pytest.fixture
def environ(tmp_path: Path) -> Callable[..., dict[str, str]]:
    """The environment with such a file, and such variables besides."""

    def made(file: str = "", **more: str) -> dict[str, str]:
        (tmp_path / "wakebell.toml").write_text(file)
        return {"WAKEBELL_CONFIG": str(tmp_path / "wakebell.toml"), "CRON_SECRET": SECRET, **more}

    return made


@pytest.fixture
def configured(environ: Callable[..., dict[str, str]]) -> Configured:
    """The settings of it."""
    return lambda file="", **more: settings.load(environ(file, **more))
