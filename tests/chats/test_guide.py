"""What docs/guides/chats.md shows is a configuration as it stands there, it shows every kind, and its commands run."""

from __future__ import annotations

import re
import subprocess
import textwrap
import tomllib
from pathlib import Path
from typing import Any

import pytest

from app import plugins
from app.settings.audience import names_in
from app.settings.chats import read_chats
from app.settings.kinds import read_channels
from app.settings.model import Service
from app.settings.problems import Problems
from app.settings.references import resolve
from app.settings.table import Table

GUIDE = (Path(__file__).parents[2] / "docs/guides/chats.md").read_text("utf-8")
TOML = [textwrap.dedent(block) for block in re.findall(r"^ *```toml\n(.*?)^ *```", GUIDE, re.DOTALL | re.MULTILINE)]
SHELL = [textwrap.dedent(block) for block in re.findall(r"^ *```sh\n(.*?)^ *```", GUIDE, re.DOTALL | re.MULTILINE)]

ENVIRON = {
    "LINE_CHANNEL_ACCESS_TOKEN": "token",
    "LINE_CHANNEL_SECRET": "0f1e2d3c4b5a69788796a5b4c3d2e1f0",
    "MY_LINE_ID": "U" + "0" * 32,
    "INVITATION": "come-in-please",
    "MODEL_TOKEN": "sk-token",
    "MESSENGER_APP_SECRET": "a1b2c3d4e5f60718293a4b5c6d7e8f90",
    "MESSENGER_VERIFY_TOKEN": "a-word-of-ours",
    "MESSENGER_PAGE_TOKEN": "EAAtoken",
    "TELEGRAM_BOT_TOKEN": "123456789:" + "A" * 35,
    "TELEGRAM_WEBHOOK_SECRET": "a-secret-of-24-characters",
}


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where a configuration's own files are."""
    (tmp_path / "assistant.txt").write_text("You answer for a clinic.")
    monkeypatch.chdir(tmp_path)


def kinds(written: str) -> set[str]:
    """Of the chats that a configuration has. What stands for one table belongs to the chat of that name above it."""
    if written.startswith("[chats.line.model]"):
        written = f"{TOML[0]}\n{written}"
    elif written.startswith("[chats.line]"):
        written = f"{TOML[0]}\n{written.removeprefix('[chats.line]')}"
    problems = Problems()
    values: Any = resolve(tomllib.loads(written), ENVIRON, "wakebell.toml", (), problems)
    root = Table("wakebell.toml", (), values, problems)
    chats = read_chats(root, read_channels(root), names_in(root, "channels"), Service(handlers=Path()), Path())
    problems.finish()
    return {chat.kind for chat in chats.values()}


@pytest.mark.parametrize("block", TOML)
def test_each_example_is_a_configuration_with_and_without_what_it_leaves_out(block: str):
    whole = re.sub(r"^# (?=\w+ = )", "", block, flags=re.MULTILINE)

    assert whole.count("#") <= block.count("#")
    assert kinds(block) == kinds(whole) != set()


def test_every_kind_is_shown():
    assert set[str]().union(*map(kinds, TOML)) == set(plugins.kinds("app.chats"))


def test_no_command_has_a_secret_among_its_arguments(tmp_path: Path):
    """The commands run with a stand-in for curl, which writes down its arguments and what it reads."""
    (tmp_path / ".env").write_text(
        "".join(f"{name}={value}\n" for name, value in ENVIRON.items()) + "PUBLIC_URL=https://bot.test\n"
    )
    curl = tmp_path / "curl"
    curl.write_text('#!/bin/sh\necho "$@" >> arguments\ncat >> configuration\n')
    curl.chmod(0o755)

    subprocess.run(["sh", "-ec", "\n".join(SHELL)], cwd=tmp_path, env={"PATH": f"{tmp_path}:/usr/bin:/bin"}, check=True)

    asked = (tmp_path / "configuration").read_text()
    assert (tmp_path / "arguments").read_text().count("--config -") == len(SHELL)
    for name in ("TELEGRAM_BOT_TOKEN", "TELEGRAM_WEBHOOK_SECRET"):
        assert ENVIRON[name] in asked
        assert ENVIRON[name] not in (tmp_path / "arguments").read_text()
    assert 'data-urlencode = "url=https://bot.test/api/webhooks/telegram"\n' in asked
    assert r"allowed_updates=[\"message\",\"callback_query\",\"my_chat_member\"]" in asked
