"""What docs/guides/channels.md shows is a configuration as it stands there, and it shows every kind."""

from __future__ import annotations

import base64
import re
from pathlib import Path

import pytest

from app import plugins, settings

GUIDE = (Path(__file__).parents[2] / "docs/guides/channels.md").read_text("utf-8")
BLOCKS = re.findall(r"^```toml\n(.*?)^```", GUIDE, re.DOTALL | re.MULTILINE)

ENVIRON = {
    "APPRISE_URL": "pover://user@token",
    "DISCORD_WEBHOOK_URL": "https://discord.com/api/webhooks/123456789012345678/" + "t" * 68,
    "HOOK_SECRET": f"whsec_{base64.b64encode(b'x' * 32).decode()}",
    "LINE_CHANNEL_ACCESS_TOKEN": "token",
    "LINE_USER_ID": "U" + "0" * 32,
    "NTFY_TOKEN": "tk_abc",
    "NTFY_TOPIC": "a-topic-that-nobody-guesses",
    "SLACK_WEBHOOK_URL": "https://hooks.slack.com/services/T000/B000/secret",
    "SMTP_PASSWORD": "password",
    "TELEGRAM_BOT_TOKEN": "123456789:" + "A" * 35,
    "TELEGRAM_CHAT_ID": "42",
}


def kinds(written: str, folder: Path) -> set[str]:
    """Of the channels that a configuration has."""
    (folder / "wakebell.toml").write_text(written, "utf-8")
    loaded = settings.load(ENVIRON | {"WAKEBELL_CONFIG": str(folder / "wakebell.toml")})
    return {channel.kind for channel in loaded.channels.values()}


@pytest.mark.parametrize("block", BLOCKS)
def test_each_example_is_a_configuration_with_and_without_what_it_leaves_out(tmp_path: Path, block: str):
    whole = re.sub(r"^# (?=\w+ = )", "", block, flags=re.MULTILINE)

    assert kinds(block, tmp_path) == kinds(whole, tmp_path)


def test_every_kind_is_shown(tmp_path: Path):
    shown = set[str]().union(*(kinds(block, tmp_path) for block in BLOCKS))

    assert shown == set(plugins.kinds("app.channels"))
