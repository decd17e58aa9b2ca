"""`wakebell preview`, as a command."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
import respx

from app import cli
from app.dev import postgres
from tests.fakes import loggers

URL = "https://gigs.example/api"
CONFIGURATION = f"""
[sources.gigs]
kind = "json"
url = "{URL}"
key = "id"
title = "name"
link = "url"
published = "at"
text = "body"
fields = {{ budget = "pay" }}

[sources.other]
kind = "feed"
url = "https://other.example"

[subscriptions.bots]
any = ["python"]
none = ["senior"]

[subscriptions.others]
sources = ["other"]
"""
GIGS = [
    {
        "id": 1,
        "name": "Python \x1b[31mbot",
        "url": "https://gigs.example/1",
        "at": "2026-11-30T09:00:00Z",
        "body": "Remote.\nNow.",
        "pay": 0,
    },
    {"id": 2, "name": "Go", "url": "https://gigs.example/2", "at": "2026-11-30T09:00:00Z"},
]


@pytest.fixture(autouse=True)
def as_before() -> Iterator[None]:
    with loggers.kept():
        yield


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory with a configuration, no secret and no database."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(postgres, "start", lambda: pytest.fail("a database was started"))
    (tmp_path / "wakebell.toml").write_text(CONFIGURATION)
    return tmp_path


@respx.mock
def test_items_verdicts_and_messages_are_shown(capsys: pytest.CaptureFixture[str]):
    respx.get(URL).respond(json=GIGS)

    assert cli.main(["preview", "gigs"]) == 0

    captured = capsys.readouterr()
    assert captured.out == (
        "source gigs: 2 items, 1 of them for somebody\n"
        "\n"
        "Python [31mbot\n"
        "  key        1\n"
        "  link       https://gigs.example/1\n"
        "  published  2026-11-30T09:00:00Z\n"
        "  text       Remote. Now.\n"
        "  budget     0\n"
        '  yes  bots  "python" is in it; "senior" is not in it\n'
        "\n"
        "Go\n"
        "  key        2\n"
        "  link       https://gigs.example/2\n"
        "  published  2026-11-30T09:00:00Z\n"
        '  no  bots  "python" is not in it\n'
        "\n"
        "Were all of it new, one tick would send:\n"
        "\n"
        "to inbox by inbox; length 49, no limit\n"
        "  | Python [31mbot\n"
        "  | https://gigs.example/1\n"
        "  | gigs · bots\n"
    )
    assert captured.err == ""


@respx.mock
def test_a_long_message_is_shown_in_its_parts(folder: Path, capsys: pytest.CaptureFixture[str]):
    line = '[channels.line]\nkind = "line"\ntoken = "x"\n[recipients.me]\nchannel = "line"\nto = "U' + "0" * 32 + '"\n'
    (folder / "wakebell.toml").write_text(
        CONFIGURATION.replace("[subs", f"{line}[subs", 1).replace("any", 'to = ["me"]\nany')
    )
    respx.get(URL).respond(json=[{"id": n, "name": f"python {n} {'x' * 280}"} for n in range(30)])

    assert cli.main(["preview", "gigs"]) == 0

    told = capsys.readouterr().out
    assert "to me by line, part 1 of 2; length " in told
    assert "to me by line, part 2 of 2; length " in told
    assert ", at most 5,000\n" in told
    assert "  odd: link finds nothing in any of the 30 items\n" in told


@respx.mock
def test_a_preview_as_data(capsys: pytest.CaptureFixture[str]):
    respx.get(URL).respond(json=GIGS)

    assert cli.main(["preview", "gigs", "--json"]) == 0

    told = json.loads(capsys.readouterr().out)
    assert told["status"] == "ok"
    assert [match["why"] for match in told["items"][1]["matches"]] == [
        '"python" is not in it',
        "gigs is not one of its sources",
    ]


@respx.mock
def test_a_source_that_fails_is_one_sentence(capsys: pytest.CaptureFixture[str]):
    respx.get(URL).respond(503)

    assert cli.main(["preview", "gigs"]) == 1
    plain = capsys.readouterr()
    assert cli.main(["preview", "gigs", "--json"]) == 1
    data = capsys.readouterr()

    sentence = "wakebell: source gigs: gigs.example answered 503: Service Unavailable\n"
    assert (plain.out, plain.err) == ("", sentence)
    assert (json.loads(data.out)["status"], data.err) == ("failed", sentence)


def test_a_bug_of_a_kind_is_one_sentence_too(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    async def crash(*_: object) -> None:
        raise KeyError("x")

    monkeypatch.setattr("app.sources.json.fetch", crash)

    assert cli.main(["preview", "gigs"]) == 1

    assert capsys.readouterr().err == "wakebell: source gigs: KeyError: 'x'\n"


def test_a_name_that_is_none_is_one_sentence(capsys: pytest.CaptureFixture[str]):
    assert cli.main(["preview", "nope"]) == 1

    assert capsys.readouterr().err == 'wakebell: the configuration has no source "nope"; it has gigs, other\n'


@respx.mock
def test_a_source_that_nobody_asks_for_is_said_to_be(folder: Path, capsys: pytest.CaptureFixture[str]):
    (folder / "wakebell.toml").write_text(CONFIGURATION.replace("any", 'sources = ["other"]\nany'))
    respx.get(URL).respond(json=GIGS)

    assert cli.main(["preview", "gigs"]) == 0

    told = capsys.readouterr().out
    assert "\n  no subscription is to this source\n" in told
    assert "Were all of it new" not in told
