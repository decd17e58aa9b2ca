from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Annotated, Any

import pytest
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, HttpUrl, SecretStr

from app import plugins
from app.domain.errors import ConfigError
from app.settings import ChannelSettings, Settings, SourceSettings, load

Load = Callable[..., Settings]
Problems = Callable[..., list[str]]

CRON_SECRET = "a-cron-secret-of-thirty-characters"


class FeedOptions(BaseModel):
    model_config = ConfigDict(extra="forbid")

    url: HttpUrl
    headers: dict[str, str] = {}
    limit: Annotated[int, Field(ge=1)] = 10
    strict: bool = False


def _refuse(token: SecretStr) -> SecretStr:
    if " " in token.get_secret_value():
        raise ValueError(f"holds a space: {token.get_secret_value()}")
    return token


class LineOptions(BaseModel):
    model_config = ConfigDict(extra="forbid")

    token: Annotated[SecretStr, AfterValidator(_refuse)]
    base_url: str = "https://api.line.me"


def _wrong(to: str) -> str | None:
    return None if to.startswith("U") else "is no id; write another"


class Nothing(BaseModel):
    model_config = ConfigDict(extra="forbid")


KINDS: dict[str, dict[str, Any]] = {
    "app.sources": {"feed": SimpleNamespace(Options=FeedOptions)},
    "app.channels": {
        "inbox": SimpleNamespace(Options=Nothing),
        "line": SimpleNamespace(Options=LineOptions, check_address=_wrong),
        "slack": SimpleNamespace(Options=Nothing, ADDRESSED=False),
    },
    "app.chats": {},
}


def options_of(configured: SourceSettings | ChannelSettings) -> dict[str, Any]:
    return configured.options.model_dump()


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty working directory, and kinds that do not change when a real one does."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(plugins, "kinds", lambda package: sorted(KINDS[package]))
    monkeypatch.setattr(plugins, "load", lambda package, kind: KINDS[package][kind])
    return tmp_path


@pytest.fixture
def load_text(folder: Path) -> Load:
    """The settings of a configuration file of this text."""

    def read(text: str, environ: Mapping[str, str] | None = None, **options: Any) -> Settings:
        (folder / "wakebell.toml").write_text(text, encoding="utf-8")
        return load(environ or {}, **options)

    return read


@pytest.fixture
def problems_of(load_text: Load) -> Problems:
    """The problems that a configuration file of this text has."""

    def read(text: str, environ: Mapping[str, str] | None = None, **options: Any) -> list[str]:
        with pytest.raises(ConfigError) as caught:
            load_text(text, environ, **options)
        return caught.value.problems

    return read
