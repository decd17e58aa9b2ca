from __future__ import annotations

import json
import logging
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from app import composing, settings
from app.composing import Composer
from app.domain import textcut
from app.domain.messages import Body, Owed, OwedItem
from app.settings import Settings

NOON = datetime(2026, 11, 30, 5, tzinfo=UTC)
"""In Bangkok."""

HOUR = timedelta(hours=1)

CONFIGURATION = """
[channels.line]
kind = "line"
token = "a-token-of-line"

[channels.telegram]
kind = "telegram"
token = "123456789:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"

[channels.hook]
kind = "webhook"
url = "https://hook.example/x"
secret = "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3"

[recipients.me]
channel = "{channel}"
to = "{to}"
timezone = "Asia/Bangkok"
language = "en"
{limits}

[recipients.you]
channel = "line"
to = "U00000000000000000000000000000002"
language = "th"
timezone = "Asia/Bangkok"

[subscriptions.zebra]
to = ["me"]
template = "z: {{{{ item.title }}}}"

[subscriptions.ant]
to = ["me"]
template = '''
* {{{{ item.title }}}} ({{{{ item.fields.pay + 1 }}}})
{{{{ item.published }}}}
'''

[subscriptions.plain]
to = ["me"]
"""
TO = {"line": "U00000000000000000000000000000001", "telegram": "12345", "hook": "", "inbox": ""}


def load(folder: Path, *, channel: str = "line", limits: str = "") -> Settings:
    to = TO[channel]
    text = CONFIGURATION.format(channel=channel, to=to or "nobody", limits=limits)
    (folder / "wakebell.toml").write_text(text, encoding="utf-8")
    return settings.load({"WAKEBELL_CONFIG": str(folder / "wakebell.toml")})


def items(count: int, *, by: tuple[str, ...] = ("plain",), **more: Any) -> tuple[OwedItem, ...]:
    return tuple(
        OwedItem(title=f"gig {number}", link=f"https://e.test/{number}", source="board", subscriptions=by, **more)
        for number in range(1, count + 1)
    )


def composed(configured: Settings, owed: Owed, **more: Any) -> list[Body]:
    return Composer(configured, configured.recipients["me"], **more)(owed)


def test_five_hundred_items_become_ten_and_the_number_of_the_others(tmp_path: Path):
    configured = load(tmp_path, limits="max_items_per_tick = 10")

    [body] = composed(configured, Owed(items=items(10), more=490, now=NOON))

    assert body.text.startswith("500 new items\n\ngig 1\n")
    assert body.text.endswith("gig 10\nhttps://e.test/10\n\nboard · plain\n\nand 490 more")
    assert body.items == tuple(range(10))


@pytest.mark.parametrize(
    ("channel", "limits", "most"),
    [
        ("line", "", 150),
        ("telegram", "", 150),
        ("hook", "", None),
        ("inbox", "", None),
        ("line", "max_items_per_tick = 7", 7),
        ("hook", "max_items_per_tick = 7", 7),
    ],
)
def test_people_are_told_so_many_at_once_and_programs_all(tmp_path: Path, channel: str, limits: str, most: int | None):
    configured = load(tmp_path, channel=channel, limits=limits)

    assert composing.most_items(configured, configured.recipients["me"]) == most


def test_nothing_is_composed_in_quiet_hours(tmp_path: Path):
    configured = load(tmp_path, limits='quiet_hours = "22:00-07:00"')

    assert composed(configured, Owed(items=items(1), now=NOON - 6 * HOUR)) == []
    assert len(composed(configured, Owed(items=items(1), now=NOON - 5 * HOUR))) == 1


def test_nothing_is_composed_on_a_day_that_has_had_its_messages(tmp_path: Path):
    configured = load(tmp_path, limits="max_messages_per_day = 2")

    def told(*hours_ago: int) -> int:
        told_at = tuple(NOON - hours * HOUR for hours in hours_ago)
        return len(composed(configured, Owed(items=items(1), now=NOON, told_at=told_at)))

    assert (told(), told(1), told(1, 2), told(1, 11), told(1, 13)) == (1, 1, 0, 0, 1)


def test_the_look_and_the_composer_agree_on_when_somebody_may_be_told(tmp_path: Path):
    configured = load(tmp_path, limits='quiet_hours = "22:00-07:00"\nmax_messages_per_day = 1')

    for hours in range(48):
        now, told_at = NOON + hours * HOUR, (NOON,)
        held = composing.held_until(configured, "me", now, told_at[0])
        assert (held is None) == bool(composed(configured, Owed(items=items(1), now=now, told_at=told_at)))
        assert held is None or held > now

    assert composing.most_a_day(configured) == {"me": 1}


def test_a_digest_is_no_more_messages_than_are_left_of_the_day(tmp_path: Path):
    configured = load(tmp_path, channel="telegram", limits="max_messages_per_day = 3\nmax_items_per_tick = 500")
    long = tuple(
        OwedItem(title=f"gig {n} " + "x" * 280, link=None, source="board", subscriptions=("plain",)) for n in range(100)
    )

    three = composed(configured, Owed(items=long, now=NOON))
    one = composed(configured, Owed(items=long, more=7, now=NOON, told_at=(NOON - HOUR, NOON - 2 * HOUR)))

    assert len(three) == 3
    assert three[0].text.startswith("100 new items")
    shown = sum(len(body.items) for body in three)
    assert three[-1].text.endswith(f"and {100 - shown} more")
    [body] = one
    assert body.text.startswith("107 new items")
    assert body.text.endswith(f"and {107 - len(body.items)} more")


def test_where_not_even_one_item_fits_the_number_is_told(tmp_path: Path):
    configured = load(tmp_path, channel="telegram", limits="max_messages_per_day = 1")
    owed = Owed(
        items=(OwedItem(title="t", link="https://e.test/" + "x" * 3000, source="s" * 3000, subscriptions=("plain",)),),
        now=NOON,
    )

    [body] = composed(configured, owed)

    assert body.text == "1 new item"
    assert body.items == ()


def test_of_two_templates_the_first_in_the_file_is_taken(tmp_path: Path):
    configured = load(tmp_path)

    [body] = composed(configured, Owed(items=items(1, by=("ant", "plain", "zebra")), now=NOON))

    assert body.text == "z: gig 1"


def test_a_template_is_filled_in_for_who_reads_it(tmp_path: Path):
    configured = load(tmp_path)
    owed = Owed(items=items(2, by=("ant",), fields={"pay": 500}, published_at=NOON), now=NOON)

    [mine] = composed(configured, owed)
    [yours] = Composer(configured, configured.recipients["me"], reader=configured.recipients["you"])(owed)

    assert mine.text == "2 new items\n\n* gig 1 (501)\ntoday 12:00\n\n* gig 2 (501)\ntoday 12:00"
    assert yours.text.endswith("* gig 2 (501)\nวันนี้ 12:00")
    assert json.loads(yours.body)["to"] == configured.recipients["you"].to


def test_an_item_that_a_template_cannot_tell_is_told_in_our_words(tmp_path: Path, caplog: pytest.LogCaptureFixture):
    configured = load(tmp_path)
    notes: list[str] = []
    owed = Owed(items=items(1, by=("ant",), fields={"pay": "much"}), now=NOON)

    with caplog.at_level(logging.WARNING):
        [body] = composed(configured, owed, note=notes.append)

    assert body.text == "gig 1\nhttps://e.test/1\nboard · ant"
    assert notes == ["template of subscription ant failed: items are told in the service's own words"]
    assert "much" not in str(notes)
    [record] = caplog.records
    assert (record.getMessage(), record.__dict__["subscription"]) == ("template failed", "ant")
    assert record.__dict__["reason"].startswith("line 1: ")  # the line break after ''' is none


def test_a_webhook_is_told_how_many_are_left_out(tmp_path: Path):
    configured = load(tmp_path, channel="hook", limits="max_items_per_tick = 200")
    long = tuple(
        OwedItem(title=f"gig {n} " + "x" * 280, link=None, source="board", subscriptions=("plain",)) for n in range(200)
    )

    bodies = composed(configured, Owed(items=long, more=5, now=NOON))

    told = [json.loads(body.body)["data"] for body in bodies]
    assert len(told) > 1
    assert [data.get("more") for data in told] == [None] * (len(told) - 1) + [5]
    assert [place for body in bodies for place in body.items] == list(range(200))


WORDS = st.sampled_from(
    ["ที่", "👩‍👩‍👧", "မြန်မာ", "dev", "https://e.test/a-long-address-of-a-gig", "𝒳", "مطور", "\u202e"]
)
TITLES = st.lists(WORDS, max_size=40).map(" ".join)


@hypothesis_settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(TITLES, min_size=1, max_size=60), st.integers(0, 100), st.sampled_from(["line", "telegram", "hook"]))
def test_every_item_is_in_one_body_and_no_part_is_too_long(tmp_path: Path, titles: list[str], more: int, channel: str):
    configured = load(tmp_path, channel=channel)
    owed = tuple(
        OwedItem(title=f"[{n}] {title}", link=f"https://e.test/{n}/" + "x" * 90, source="b", subscriptions=("plain",))
        for n, title in enumerate(titles)
    )

    bodies = composed(configured, Owed(items=owed, more=more, now=NOON))

    assert [place for body in bodies for place in body.items] == list(range(len(titles)))
    for body in bodies:
        for place in body.items:
            assert f"[{place}]" in body.text
        for part in body.parts:
            assert part.limit is None or part.length <= part.limit
    text = "\n".join(body.text for body in bodies)
    assert all(str(item.link) in text for item in owed)
    assert more == 0 or text.endswith(f"and {more} more")
    assert textcut.well_formed(text) == text
