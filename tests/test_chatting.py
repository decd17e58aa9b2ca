from __future__ import annotations

from pathlib import Path

import pytest

from app import chatting, settings
from app.settings import Settings

CONFIGURATION = """
[channels.line]
kind = "line"
token = "a-token-of-line"

[channels.bot]
kind = "telegram"
token = "123456:AAHtoken-of-the-telegram-bot-abcdefgh"

[chats.clinic]
kind = "line"
secret = "the-channel-secret"
channel = "line"
job = "answer_person"

[chats.desk]
kind = "telegram"
secret = "the-secret-token"
channel = "bot"

[chats.desk.model]
url = "https://models.example/v1"
model = "small"
"""


def load(folder: Path, *, more: str = "", **environ: str) -> Settings:
    (folder / "wakebell.toml").write_text(CONFIGURATION + more)
    return settings.load({"WAKEBELL_CONFIG": str(folder / "wakebell.toml"), **environ})


@pytest.mark.parametrize(
    ("handlers", "told"), [({}, "there is none yet"), ({"mail": 1, "greet": 1}, "there are greet, mail")]
)
def test_a_chat_whose_job_nobody_does_is_named(tmp_path: Path, handlers: dict[str, int], told: str):
    configured = load(tmp_path)

    assert chatting.problems(configured, handlers) == [
        f'{tmp_path}/wakebell.toml: chats.clinic.job: no handler is named "answer_person"; {told}'
    ]
    assert chatting.problems(configured, {"answer_person": 1}) == []


def test_each_chat_is_told_with_its_address_and_what_to_think_of(tmp_path: Path):
    assert chatting.lines(load(tmp_path, PUBLIC_URL="https://gigs.example/")) == [
        "chat clinic: line, answered by the job answer_person; its webhook is https://gigs.example/api/webhooks/clinic",
        f"chat clinic: {chatting.COLD}",
        "chat desk: telegram, answered by the model small; its webhook is https://gigs.example/api/webhooks/desk",
    ]
    assert f"chat clinic: {chatting.SLOW}" in chatting.lines(load(tmp_path))


def test_who_may_give_commands_is_told_and_never_by_what(tmp_path: Path):
    more = '[chats.more]\nkind = "telegram"\nsecret = "the-secret-token"\nchannel = "bot"\nallow = ["7", "8"]\n'
    told = chatting.lines(load(tmp_path, more=more + 'invitation = "open-sesame"\n'))

    assert "chat more: commands may be given by 2 named in allow and whoever says the invitation" in told
    assert "open-sesame" not in "".join(told)


def test_what_people_are_told_may_hold_addresses_and_ids_and_no_secret(tmp_path: Path):
    more = """
[hooks.events]
kind = "github"
secret = "env:HOOK"
job = "anything"

[recipients.nurse]
channel = "line"
to = "env:NURSE"

[chats.more]
kind = "line"
secret = "secret-of-the-second-chat"
channel = "line"
invitation = "env:INVITATION"

[chats.more.model]
url = "https://models.example/v1"
model = "small"
token = "token-of-the-model"
"""
    told = {"NURSE": "U00000000000000000000000000000001", "INVITATION": "an-invitation"}
    secret = {"HOOK": "a-secret-of-a-hook-of-thirty-characters", "API_TOKEN": "an-api-token-of-thirty-characters"}
    found = load(tmp_path, more=more, **told, **secret).secrets

    for word in (*secret.values(), "token-of-the-model", "a-token-of-line", "secret-of-the-second-chat"):
        assert found(f"it is {word}") == "it is [secret]"
    for word in (*told.values(), "https://models.example/v1"):
        assert found(f"it is {word}") == f"it is {word}"
