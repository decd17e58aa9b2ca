from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from app import plugins, settings
from app.domain.watches import Listener, Watched
from app.settings import Settings, address_of, watched

KINDS, LOAD = plugins.kinds, plugins.load
"""The real ones, taken before a test puts others in their place."""

CONFIGURATION = """
[service]
timezone = "Asia/Bangkok"

[channels.bot]
kind = "telegram"
token = "123456:AAHtoken-of-the-telegram-bot-abcdefgh"

[chats.desk]
kind = "telegram"
secret = "the-secret-token"
channel = "bot"
language = "th"
allow = ["7"]
invitation = "open-sesame"

[chats.mute]
kind = "telegram"
secret = "the-secret-token"
channel = "bot"

[chats.page]
kind = "messenger"
secret = "an-app-secret"
verify_token = "a-word"
token = "EAAtoken"
allow = ["7"]
"""
UNTIL = datetime(2026, 12, 1, tzinfo=UTC)


@pytest.fixture
def configured(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    monkeypatch.setattr(plugins, "kinds", KINDS)
    monkeypatch.setattr(plugins, "load", LOAD)
    (folder / "wakebell.toml").write_text(CONFIGURATION)
    return settings.load({})


def _listener(chat: str = "desk", address: str | None = "7", *people: tuple[str, bool]) -> Listener:
    return Listener(chat=chat, conversation=1, address=address, muted_until=UNTIL, people=people or (("7", False),))


def test_only_chats_with_commands_and_a_channel_tell(configured: Settings):
    assert watched.chats_that_tell(configured) == ["desk"]


def test_whoever_watches_becomes_a_recipient(configured: Settings):
    recipient = watched.listener(configured, _listener(address="-1007/5"))

    assert recipient is not None
    assert (recipient.name, recipient.channel) == ("chats/desk/1", "bot")
    assert recipient.to == "-1007", "a topic is no address of the channel"
    assert (recipient.timezone, recipient.language, recipient.muted_until) == ("Asia/Bangkok", "th", UNTIL)


@pytest.mark.parametrize(
    "found",
    [
        None,
        _listener("gone"),
        _listener("mute"),
        _listener("page"),
        _listener("desk", None),
        _listener("desk", "not an address"),
        _listener("desk", "8", ("8", False)),
    ],
)
def test_nobody_else_is_one(configured: Settings, found: Listener | None):
    assert watched.listener(configured, found) is None


def test_whoever_may_give_no_commands_is_told_nothing(configured: Settings):
    given = [("7", False), ("8", True), ("8", False)]
    watches = [
        Watched(chat="desk", conversation=n, person=person, invited=invited, phrases=("x",))
        for n, (person, invited) in enumerate(given)
    ]
    elsewhere = Watched(chat="gone", conversation=9, person="7", invited=True, phrases=("x",))

    told = watched.may_be_told(configured, [*watches, elsewhere])

    assert [one.conversation for one in told] == [0, 1]


def test_where_nobody_can_be_written_to_unasked_nothing_is_watched(configured: Settings):
    assert watched.destination(configured, configured.chats["page"], "7") is None
    assert watched.destination(configured, configured.chats["desk"], "7") == "7"


def test_somebody_of_the_configuration_may_be_at_the_same_address(configured: Settings):
    inbox = configured.recipients["inbox"]

    assert watched.names_at(configured, address_of(configured, inbox)) == ["inbox"]
    assert watched.names_at(configured, "another") == []
