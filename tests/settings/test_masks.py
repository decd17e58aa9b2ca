from __future__ import annotations

import base64
from pathlib import Path

import pytest

from app import settings

FILE = """
[sources.board]
kind = "feed"
url = "https://board.example/feed.xml"
headers = { Authorization = "env:BOARD_TOKEN" }

[channels.line]
kind = "line"
token = "line-token-in-the-file"

[recipients.me]
channel = "line"
to = "env:LINE_USER"
"""
ENVIRON = {
    "DATABASE_URL": "postgres://user:p%40ss-of-db@db.example/name",
    "CRON_SECRET": "a-cron-secret-of-thirty-characters",
    "CRON_SECRET_PREVIOUS": "the-cron-secret-before-this-one",
    "API_TOKEN": "an-api-token-of-thirty-characters",
    "HEARTBEAT_URL": "https://hc-ping.com/5f0c1e7a-0000-4000-8000-000000000000",
    "BOARD_TOKEN": "Bearer token-of-the-board",
    "LINE_USER": "U00000000000000000000000000000001",
}
SECRETS = [
    *ENVIRON.values(),
    "p%40ss-of-db",
    "p@ss-of-db",
    "line-token-in-the-file",
]


@pytest.mark.parametrize("secret", SECRETS)
def test_every_secret_that_the_service_is_told_is_masked(tmp_path: Path, secret: str):
    (tmp_path / "wakebell.toml").write_text(FILE, encoding="utf-8")
    mask = settings.load({**ENVIRON, "WAKEBELL_CONFIG": str(tmp_path / "wakebell.toml")}).mask

    assert mask(f"it said {secret}.") == "it said [secret]."
    assert mask("board.example answered 500") == "board.example answered 500"


@pytest.mark.parametrize("shown", ["token-of-the-board", "someone:pa/ssword", "someone", "pa/ssword", r"pa\/ssword"])
def test_what_stands_behind_a_scheme_is_masked_too(tmp_path: Path, shown: str):
    written = FILE.replace('"env:BOARD_TOKEN"', '"env:BOARD_TOKEN", X-More = "env:BASIC"')
    (tmp_path / "wakebell.toml").write_text(written, encoding="utf-8")
    basic = "Basic " + base64.b64encode(b"someone:pa/ssword").decode()
    given = {**ENVIRON, "BASIC": basic, "WAKEBELL_CONFIG": str(tmp_path / "wakebell.toml")}

    assert settings.load(given).mask(f"it said {shown}.") == "it said [secret]."
