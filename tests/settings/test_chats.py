from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from app import plugins
from app.domain import chatwords
from app.domain.errors import ConfigError
from app.settings.audience import names_in
from app.settings.chats import ChatSettings, read_chats, read_memory
from app.settings.kinds import read_channels
from app.settings.memory import MemorySettings
from app.settings.model import Service
from app.settings.problems import Problems
from app.settings.references import resolve
from app.settings.table import Table

KINDS, LOAD = plugins.kinds, plugins.load
"""The real ones, taken before a test puts others in their place."""

CHANNELS = """
[channels.line]
kind = "line"
token = "a-line-token"
[channels.bot]
kind = "telegram"
token = "123456789:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"
"""
LINE = f"""{CHANNELS}
[chats.line]
kind = "line"
secret = "a-channel-secret"
channel = "line"
"""
MODEL = f"""{LINE}
[chats.line.model]
url = "https://models.test/v1/"
model = "small"
"""
PAGE = """
[chats.page]
kind = "messenger"
secret = "an-app-secret"
verify_token = "a-word"
token = "EAAtoken"
"""

Read = Callable[..., dict[str, ChatSettings]]


@pytest.fixture(autouse=True)
def real_kinds(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plugins, "kinds", KINDS)
    monkeypatch.setattr(plugins, "load", LOAD)


def table(written: str, environ: Mapping[str, str], problems: Problems) -> Table:
    values: Any = resolve(tomllib.loads(written), environ, "wakebell.toml", (), problems)
    return Table("wakebell.toml", (), values, problems)


@pytest.fixture
def read(folder: Path) -> Read:
    """The chats of a configuration of this text."""

    def reading(written: str, environ: Mapping[str, str] | None = None, **service: Any) -> dict[str, ChatSettings]:
        problems = Problems()
        root = table(written, environ or {}, problems)
        channels, named = read_channels(root), names_in(root, "channels")
        chats = read_chats(root, channels, named, Service(handlers=folder, **service), folder)
        problems.finish()
        return chats

    return reading


@pytest.fixture
def refused(read: Read) -> Callable[..., list[str]]:
    def refusing(written: str, environ: Mapping[str, str] | None = None) -> list[str]:
        with pytest.raises(ConfigError) as caught:
            read(written, environ)
        return [problem.removeprefix("wakebell.toml: ") for problem in caught.value.problems]

    return refusing


def test_a_chat_answers_through_the_channel_it_names(read: Read):
    chat = read(LINE)["line"]

    assert (chat.name, chat.kind, chat.channel, chat.path) == ("line", "line", "line", "/api/webhooks/line")
    assert chat.account.token.get_secret_value() == "a-line-token"  # type: ignore[attr-defined]


def test_a_chat_of_its_own_account_names_no_channel(read: Read):
    chat = read(PAGE)["page"]

    assert chat.channel is None
    assert chat.account is chat.options


def test_what_is_not_said_has_sensible_defaults(read: Read):
    chat = read(LINE, language="th")["line"]

    assert (chat.job, chat.model, chat.allow, chat.invitation) == (None, None, None, None)
    assert chat.text == chatwords.words_of("th").polite
    assert chat.language == "th"
    assert chat.reply_budget == timedelta(seconds=15)
    assert chat.pause == timedelta(hours=12)
    assert {"เจ้าหน้าที่", "human"} <= set(chat.handover)


def test_everything_may_be_said(read: Read):
    written = LINE + (
        'job = "answer_person"\ntext = """Thank you.\nSee you."""\nlanguage = "vi"\nreply_budget_seconds = 30.5\n'
        'pause_hours = 0\nhandover = ["chef"]\nallow = ["env:ME", "U2"]\ninvitation = "env:CODE"\n'
    )

    chat = read(written, {"ME": "U1", "CODE": "open-sesame"})["line"]

    assert (chat.job, chat.text, chat.language) == ("answer_person", "Thank you.\nSee you.", "vi")
    assert (chat.reply_budget, chat.pause) == (timedelta(seconds=30.5), timedelta(0))
    assert (chat.handover, chat.allow, chat.invitation) == (("chef",), frozenset({"U1", "U2"}), "open-sesame")


def test_nobody_need_be_able_to_ask_for_a_person(read: Read):
    assert read(LINE + "handover = []\n")["line"].handover == ()


def test_a_model_has_defaults_that_are_bounded(read: Read):
    model = read(MODEL)["line"].model

    assert model is not None
    assert (model.url, model.model, model.token, model.system) == ("https://models.test/v1", "small", None, None)
    assert (model.timeout, model.max_tokens) == (timedelta(seconds=15), 600)
    assert (model.tokens_per_day, model.replies_per_day, model.temperature) == (100_000, 100, None)


def test_a_model_is_told_who_it_is_by_a_file_beside(read: Read, folder: Path):
    (folder / "assistant.txt").write_text("\ufeffYou sell tea. สวัสดี\n", encoding="utf-8")
    written = MODEL + (
        'token = "env:KEY"\nsystem_file = "assistant.txt"\ntimeout_seconds = 5\nmax_tokens = 200\n'
        "tokens_per_day = 1000\nreplies_per_day = 7\ntemperature = 0\n"
    )

    model = read(written, {"KEY": "sk-1"})["line"].model

    assert model is not None
    assert (model.token, model.system) == ("sk-1", "You sell tea. สวัสดี")
    assert (model.timeout, model.max_tokens) == (timedelta(seconds=5), 200)
    assert (model.tokens_per_day, model.replies_per_day, model.temperature) == (1000, 7, 0)


def test_nothing_secret_is_shown(read: Read, folder: Path):
    (folder / "assistant.txt").write_text("The discount code is TEA.", encoding="utf-8")
    written = MODEL.replace('channel = "line"', 'channel = "line"\ninvitation = "open-sesame"') + (
        'token = "sk-1"\nsystem_file = "assistant.txt"\n'
    )

    told = repr(read(written + PAGE))

    for secret in ("a-channel-secret", "a-line-token", "open-sesame", "sk-1", "TEA", "EAAtoken", "a-word"):
        assert secret not in told


@pytest.mark.parametrize(
    ("added", "told"),
    [
        ("nmae = 1\n", "chats.line.nmae: there is no such key"),
        ("job = 5\n", "chats.line.job: must be a text"),
        ('job = "send_message"\n', 'chats.line.job: "send_message" is one of the service\'s own; write a handler'),
        ('job = "wakebell.x"\n', "chats.line.job: "),
        ('text = ""\n', "chats.line.text: is empty"),
        (f'text = "{"x" * 1001}"\n', "chats.line.text: is longer than 1000 characters"),
        ('language = "de"\n', "chats.line.language: must be one of en, th, vi, my"),
        ("reply_budget_seconds = 61\n", "chats.line.reply_budget_seconds: must be a number from 1 to 60, not 61"),
        ('pause_hours = "12"\n', "chats.line.pause_hours: must be a number from 0 to 720"),
        ('handover = "human"\n', "chats.line.handover: must be a list of texts"),
        ("allow = []\n", "chats.line.allow: is empty, so that nobody could give commands"),
        ('invitation = "1234567"\n', "chats.line.invitation: could be guessed; write one of at least 8 characters"),
        ("model = 5\n", "chats.line.model: must be a table, not 5; write [model] above its keys"),
    ],
)
def test_a_wrong_key_is_told_by_its_name(refused: Callable[..., list[str]], added: str, told: str):
    [problem] = refused(LINE + added)

    assert problem.startswith(told)


@pytest.mark.parametrize(
    ("added", "told"),
    [
        ("tokn = 1\n", "chats.line.model.tokn: there is no such key"),
        ("timeout_seconds = 16\n", "chats.line.model.timeout_seconds: must be a number from 1 to 15, not 16"),
        ("max_tokens = 0\n", "chats.line.model.max_tokens: must be a whole number from 1"),
        ("tokens_per_day = 1.5\n", "chats.line.model.tokens_per_day: must be a whole number from 1"),
        ("replies_per_day = true\n", "chats.line.model.replies_per_day: must be a whole number from 1"),
        ("temperature = 3\n", "chats.line.model.temperature: must be a number from 0 to 2, not 3"),
        ('system_file = "nowhere.txt"\n', "chats.line.model.system_file: cannot be read (No such file or directory)"),
        ('system_file = "empty.txt"\n', "chats.line.model.system_file: is an empty file"),
        ('system_file = "large.txt"\n', "chats.line.model.system_file: is larger than 32 kB"),
        ('system_file = "latin.txt"\n', "chats.line.model.system_file: is no text in UTF-8"),
        ('system_file = "."\n', "chats.line.model.system_file: cannot be read (Is a directory)"),
    ],
)
def test_a_wrong_key_of_the_model_is_told(refused: Callable[..., list[str]], folder: Path, added: str, told: str):
    (folder / "empty.txt").write_text(" \n", encoding="utf-8")
    (folder / "large.txt").write_text("x" * 32_001, encoding="utf-8")
    (folder / "latin.txt").write_bytes(b"caf\xe9")

    [problem] = refused(MODEL + added)

    assert problem.startswith(told)


@pytest.mark.parametrize(
    ("written", "told"),
    [
        ('model = "m"', "chats.line.model.url: is missing; write where the model is asked"),
        ('url = "https://m.test"', "chats.line.model.model: is missing; write the model's name there"),
        ('url = "m.test"\nmodel = "m"', "chats.line.model.url: must be an http or https address"),
        (
            'url = "https://m.test/v1/chat/completions/"\nmodel = "m"',
            "chats.line.model.url: must end before /chat/completions, which is put behind it; remove that",
        ),
    ],
)
def test_a_model_that_cannot_be_asked_is_told(refused: Callable[..., list[str]], written: str, told: str):
    [problem] = refused(f"{LINE}[chats.line.model]\n{written}\n")

    assert problem.startswith(told)


def test_either_a_job_answers_or_a_model(refused: Callable[..., list[str]]):
    written = MODEL.replace('channel = "line"\n', 'channel = "line"\njob = "answer_person"\n')

    assert refused(written) == ["chats.line.job: stands beside a [model]; remove one of the two"]


def chat(**changes: str) -> str:
    """A chat of LINE with other keys."""
    keys = {"kind": '"line"', "secret": '"a-channel-secret"', "channel": '"line"'} | changes
    return "[chats.line]\n" + "".join(f"{key} = {value}\n" for key, value in keys.items() if value)


@pytest.mark.parametrize(
    ("written", "told"),
    [
        (chat(kind=""), "chats.line.kind: is missing; write one of the kinds there are: line, messenger, telegram"),
        (
            chat(kind='"lien"'),
            'chats.line.kind: there is no kind "lien"; did you mean "line"? (there are line, messenger, telegram)',
        ),
        (chat(channel=""), "chats.line.channel: is missing; write it"),
        (
            chat(channel='"lime"'),
            'chats.line.channel: there is no channel "lime"; did you mean "line"? (there is only line)',
        ),
        (
            chat(channel='"bot"'),
            'chats.line.channel: "bot" is a channel of another kind; there is only line',
        ),
        (chat(secret=""), "chats.line.secret: is missing; write it"),
        (chat(secret="5"), "chats.line.secret: must be a text; put it in quotes"),
        (chat(secret="[]"), "chats.line.secret: must be one text, or a list of 1 to 5 while you change it; change it"),
        (
            chat(secret='"env:NOWHERE"'),
            "chats.line.secret: the environment variable NOWHERE is not set; set it",
        ),
    ],
)
def test_a_chat_that_cannot_be_is_told(refused: Callable[..., list[str]], written: str, told: str):
    assert refused(CHANNELS + written) == [told]


def test_without_a_fitting_channel_it_is_told_to_write_one(refused: Callable[..., list[str]]):
    assert refused(chat()) == [
        'chats.line.channel: there is no channel "line"; write a [channels.line] with kind = "line" and name it here'
    ]


def test_a_channel_with_a_problem_of_its_own_is_told_once(refused: Callable[..., list[str]]):
    assert refused('[channels.line]\nkind = "line"\n' + chat()) == ["channels.line.token: is missing; write it"]


def test_a_chat_has_a_name_that_an_address_can_have(refused: Callable[..., list[str]]):
    [problem] = refused(CHANNELS + chat().replace("chats.line", 'chats."My chat"'))

    assert problem.startswith('chats."My chat": a name holds 1 to 64 of a-z')


def test_a_secret_that_is_being_changed_is_a_list(read: Read):
    written = CHANNELS + chat(secret='["env:NEW", "env:OLD"]')

    options: Any = read(written, {"NEW": "new-secret", "OLD": "old-secret"})["line"].options

    assert [secret.get_secret_value() for secret in options.secret] == ["new-secret", "old-secret"]


def test_all_problems_are_told_together(refused: Callable[..., list[str]]):
    assert len(refused(CHANNELS + chat(channel='"lime"', language='"de"', pause_hours="-1"))) == 3


def memory(written: str) -> MemorySettings:
    problems = Problems()
    read = read_memory(table(written, {}, problems).table("memory"))
    problems.finish()
    return read


def test_memory_has_defaults():
    assert memory("") == MemorySettings(turns=12, keep=timedelta(days=7))


def test_memory_may_be_longer_shorter_or_none():
    assert memory("[memory]\nturns = 0\nkeep_days = 0.5\n") == MemorySettings(turns=0, keep=timedelta(hours=12))


@pytest.mark.parametrize(
    ("written", "told"),
    [
        ("turns = 101", "memory.turns: must be a whole number from 0 to 100, not 101"),
        ("keep_days = 0", "memory.keep_days: must be a number of days, more than 0 and at most ten years, not 0"),
        ("keep = 7", "memory.keep: there is no such key"),
    ],
)
def test_a_wrong_key_of_the_memory_is_told(written: str, told: str):
    with pytest.raises(ConfigError, match=f"wakebell.toml: {told}"):
        memory(f"[memory]\n{written}\n")
