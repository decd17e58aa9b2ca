from __future__ import annotations

from datetime import UTC, time
from pathlib import Path
from types import SimpleNamespace
from zoneinfo import ZoneInfo

import pytest
from pydantic import BaseModel

from app.domain.quiet import QuietHours
from tests.settings.conftest import KINDS, Load, Problems

ME = '[recipients.me]\nchannel = "inbox"\n'
FEED = '[sources.jobs]\nkind = "feed"\nurl = "https://jobs.example/feed"\n'


class JsonOptions(BaseModel):
    url: str = ""
    fields: dict[str, str] = {}


@pytest.fixture(autouse=True)
def json(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(KINDS["app.sources"], "json", SimpleNamespace(Options=JsonOptions))


GIGS = """
[sources.gigs]
kind = "json"
url = "https://gigs.example/api"
fields = { budget = "price.max" }
"""


def test_a_recipient_says_when_and_how_much_it_is_told(load_text: Load):
    limits = 'quiet_hours = "22:00-07:00"\nquiet_alerts = true\nmax_items_per_tick = 10\nmax_messages_per_day = 3\n'

    settings = load_text(f'{ME}timezone = "Asia/Yangon"\n{limits}')

    me, inbox = settings.recipients["me"], settings.recipients["inbox"]
    assert me.quiet_hours == QuietHours(time(22), time(7))
    assert (me.quiet_alerts, me.max_items_per_tick, me.max_messages_per_day) == (True, 10, 3)
    assert me.zone == ZoneInfo("Asia/Yangon")
    assert (inbox.quiet_hours, inbox.max_items_per_tick, inbox.max_messages_per_day) == (None, None, None)
    assert inbox.zone == UTC


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ('quiet_hours = "22-07"', 'me.quiet_hours: "22-07" is no span of hours; write it as in "22:00-07:00"'),
        (
            'quiet_hours = "07:00-07:00"',
            'me.quiet_hours: "07:00-07:00" begins when it ends, so that it would be always',
        ),
        ("quiet_hours = 22", 'me.quiet_hours: must be a text in quotes, not 22; write quiet_hours = "22:00-07:00"'),
        ("quiet_alerts = true", 'me.quiet_alerts: says nothing without quiet hours; write quiet_hours = "22:00-07:00"'),
        (
            "max_items_per_tick = 0",
            "me.max_items_per_tick: must be a whole number from 1 to 500, not 0; write max_items",
        ),
        (
            "max_messages_per_day = 0",
            "me.max_messages_per_day: must be a whole number from 1 to 1000, not 0; write max",
        ),
        ("max_items_per_day = 9", 'me.max_items_per_day: there is no such key; did you mean "max_items_per_tick"?'),
    ],
)
def test_what_is_wrong_with_it_is_told(problems_of: Problems, line: str, told: str):
    [problem] = problems_of(f"{ME}{line}\n")

    assert told in problem


def test_a_subscription_has_words_of_its_own(load_text: Load):
    settings = load_text(f'{FEED}[subscriptions.x]\ntemplate = """\n{{{{ item.title }}}}\n{{{{ item.link }}}}\n"""\n')

    assert settings.subscriptions[0].template is not None


def test_its_words_may_stand_in_a_file_beside(load_text: Load, folder: Path):
    (folder / "words").mkdir()
    (folder / "words" / "x.txt").write_text("\ufeff{{ item.fields.budget }}\n", encoding="utf-8")

    settings = load_text(f'{GIGS}[subscriptions.x]\ntemplate_file = "words/x.txt"\n')

    template = settings.subscriptions[0].template
    assert template is not None
    assert template.fields == {"budget": 1}


@pytest.mark.parametrize(
    ("lines", "told"),
    [
        ('template = "{{ item.titel }}"', 'x.template: line 1: an item has no "titel"; it has title'),
        ('template = """a\n{{ item.title"""', "x.template: line 2: "),
        ('template = ""', "x.template: is empty; write template ="),
        ("template = 3", "x.template: must be a text in quotes, not 3"),
        (
            'template = "{{ item.fields.bugdet }}"',
            'line 1: none of its sources has a field "bugdet"; did you mean "bud',
        ),
        ('template_file = "gone.txt"', "x.template_file: cannot be read (No such file or directory); name a file"),
        ('template_file = "bytes.txt"', "x.template_file: is no text in UTF-8"),
        ('template_file = "blank.txt"', "x.template_file: is an empty file"),
        ('template_file = "wrong.txt"', "x.template_file: line 2: "),
        (
            'template = "a"\ntemplate_file = "wrong.txt"',
            "x.template_file: stands beside template; remove one of the two",
        ),
    ],
)
def test_words_that_cannot_be_used_are_told_with_their_line(problems_of: Problems, folder: Path, lines: str, told: str):
    (folder / "bytes.txt").write_bytes(b"\xff\xfe\x00")
    (folder / "blank.txt").write_text(" \n", encoding="utf-8")
    (folder / "wrong.txt").write_text("a\n{{ item.__init__ }}", encoding="utf-8")

    [problem] = problems_of(f"{GIGS}[subscriptions.x]\n{lines}\n")

    assert told in problem


def test_fields_are_any_where_a_source_may_have_any(load_text: Load):
    settings = load_text(f'{GIGS}{FEED}[subscriptions.x]\ntemplate = "{{{{ item.fields.author }}}}"\n')

    assert settings.subscriptions[0].template is not None
