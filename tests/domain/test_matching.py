from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from app.domain.folding import contains
from app.domain.items import Item
from app.domain.matching import Folded, Verdict, judge, judge_all
from app.domain.patterns import Searches
from app.domain.subscriptions import Subscription

NOW = datetime(2026, 11, 30, 9, tzinfo=UTC)


def subscription(name: str = "gigs", *, to: tuple[str, ...] = ("me",), **conditions: Any) -> Subscription:
    return Subscription(name=name, to=to, **conditions)


def item(title: str = "Python developer", **more: Any) -> Item:
    return Item(key="k", title=title, **more)


def verdict(found: Item, asked: Subscription, *, source: str = "board") -> Verdict:
    return judge(Folded(found), source, asked, now=NOW, searches=Searches(time.thread_time))


def test_words_are_looked_for_in_title_text_and_fields_and_not_in_the_link():
    found = item("Title", text="Text", fields={"company": "Field", "budget": 5}, link="https://e.test/link")

    words = Folded(found).words

    assert [contains(words, word) for word in ("title", "text", "field", "link")] == [True, True, True, False]


def test_a_phrase_does_not_reach_from_the_title_into_the_text():
    assert not contains(Folded(item("Data", text="engineer")).words, "data engineer")


@pytest.mark.parametrize(
    ("conditions", "matched", "why"),
    [
        ({}, True, "it takes every item of the source"),
        ({"any": ("fastapi", "python")}, True, '"python" is in it'),
        ({"any": ("developer", "python")}, True, '"developer", "python" are in it'),
        ({"any": ("rust", "zig")}, False, 'none of "rust", "zig" is in it'),
        ({"any": ("rust",)}, False, '"rust" is not in it'),
        ({"all": ("python", "senior")}, False, '"senior" is not in it'),
        ({"all": ("rust", "zig")}, False, '"rust", "zig" are not in it'),
        ({"all": ("python", "developer")}, True, '"python", "developer" are in it'),
        ({"none": ("senior",)}, True, '"senior" is not in it'),
        ({"none": ("senior", "lead")}, True, 'none of "senior", "lead" is in it'),
        ({"any": ("python",), "none": ("Developer",)}, False, '"Developer" is in it and excluded'),
        ({"any": ("rust",), "none": ("python",)}, False, '"python" is in it and excluded; "rust" is not in it'),
        ({"min": {"budget": 500}}, False, "budget 300 is below 500"),
        ({"min": {"budget": 300}}, True, "budget 300 is at least 300"),
        ({"min": {"budget": 0.5}, "any": ("python",)}, True, '"python" is in it; budget 300 is at least 0.5'),
        ({"min": {"rate": 5}}, False, 'has no field "rate"'),
        ({"min": {"rate": 5}, "max": {"rate": 9}}, False, 'has no field "rate"'),
        ({"min": {"note": 5}}, False, 'its note, "soon", has no number'),
        ({"min": {"pay": 700}}, True, "pay 500 to 800 is at least 700"),
        ({"min": {"pay": 900}}, False, "pay 500 to 800 is below 900"),
        ({"max": {"budget": 300}}, True, "budget 300 is at most 300"),
        ({"max": {"budget": 299.5}}, False, "budget 300 is above 299.5"),
        ({"max": {"pay": 600}}, True, "pay 500 to 800 is at most 600"),
        ({"max": {"pay": 400}}, False, "pay 500 to 800 is above 400"),
        ({"fields": {"company": ("acme", "bolt")}}, True, '"acme" is in its company'),
        ({"fields": {"company": ("บริษัท",)}}, True, '"บริษัท" is in its company'),
        ({"fields": {"company": ("python",)}}, False, 'its company, "บริษัท ACME Ltd", is none of "python"'),
        ({"fields": {"company": ("acm",)}}, False, 'its company, "บริษัท ACME Ltd", is none of "acm"'),
        ({"fields": {"budget": ("300",)}}, True, '"300" is in its budget'),
        ({"fields": {"remote": ("true",)}}, True, '"true" is in its remote'),
        ({"fields": {"city": ("Yangon",)}}, False, 'has no field "city"'),
        ({"fields": {"company": ("acme",), "note": ("late",)}}, False, 'its note, "soon", is none of "late"'),
        ({"regex": (r"py(thon)?\d*\b",)}, True, r'the pattern py(thon)?\d*\b finds "Python"'),
        ({"regex": ("rust", "^DEV", r"o\w+er$")}, True, r'the pattern o\w+er$ finds "oper"'),
        ({"regex": ("rust",)}, False, "the pattern rust finds nothing in it"),
        ({"regex": ("rust", "(?-i:python)")}, False, "none of the patterns rust, (?-i:python) finds anything in it"),
        ({"regex": ("บริษัท acme",)}, True, 'the pattern บริษัท acme finds "บริษัท ACME"'),
        ({"sources": frozenset({"board"})}, True, "it takes every item of the source"),
        ({"sources": frozenset({"other"})}, False, "board is not one of its sources"),
        ({"sources": frozenset()}, False, "board is not one of its sources"),
    ],
)
def test_the_verdict_says_why(conditions: dict[str, Any], matched: bool, why: str):  # noqa: FBT001
    fields = {"budget": 300, "note": "soon", "pay": "$500-800", "company": "บริษัท ACME\nLtd", "remote": True}
    found = verdict(item(fields=fields), subscription(**conditions))

    assert (found.matched, found.why) == (matched, why)


@pytest.mark.parametrize(
    ("published_at", "matched", "why"),
    [
        (NOW - timedelta(days=7), True, "it is 7 days old, and may be 7 days"),
        (NOW - timedelta(days=7, hours=3), False, "it is 7.1 days old, and may be 7 days"),
        (NOW - timedelta(days=1), True, "it is 1 day old, and may be 7 days"),
        (NOW + timedelta(days=400), True, "it is 0 days old, and may be 7 days"),
        (datetime(1, 1, 1, tzinfo=UTC), False, "it is 739949.4 days old, and may be 7 days"),
        (None, True, "it has no date"),
    ],
)
def test_what_is_too_old_is_no_match_and_what_has_no_date_is_one(
    published_at: datetime | None,
    matched: bool,  # noqa: FBT001
    why: str,
):
    found = verdict(item(published_at=published_at), subscription(max_age=timedelta(days=7)))

    assert (found.matched, found.why) == (matched, why)


@pytest.mark.parametrize("value", [float("inf"), float("nan"), 10**400, "∞", [], {}])
def test_no_value_of_a_field_breaks_a_round(value: Any):
    found = verdict(
        item(fields={"pay": value}), subscription(min={"pay": 1}, max={"pay": 2}, fields={"pay": ("soon",)})
    )

    assert not found.matched


def test_a_long_text_of_an_item_is_shortened_in_the_reason():
    found = verdict(item(fields={"company": "x" * 5000}), subscription(fields={"company": ("acme",)}))

    assert len(found.why) < 120


def test_a_pattern_that_takes_too_long_counts_as_not_found_and_is_named():
    endless = item("a" * 60 + "b")

    alone = verdict(endless, subscription(regex=("(a|aa)+$",)))
    beside = verdict(endless, subscription(regex=("(a|aa)+$", "b$")))

    assert (alone.matched, alone.slow) == (False, True)
    assert alone.why == "the pattern (a|aa)+$ finds nothing in it ((a|aa)+$ took too long on it)"
    assert (beside.matched, beside.slow) == (True, True)


def test_a_recipient_of_several_subscriptions_hears_of_an_item_once_by_all_their_names():
    subscriptions = [
        subscription("python", any=("python",), to=("me", "team")),
        subscription("all", to=("me",)),
        subscription("rust", any=("rust",), to=("me", "other")),
    ]

    [judged] = judge_all([item()], "board", subscriptions, now=NOW, clock=time.thread_time)

    assert judged.recipients() == {"me": ("all", "python"), "team": ("python",)}
    assert [(asked.name, found.matched) for asked, found in judged.verdicts] == [
        ("python", True),
        ("all", True),
        ("rust", False),
    ]


def test_a_pattern_is_given_up_after_a_while_for_the_rest_of_the_round():
    items = [item("a" * 60 + "b" + str(number)) for number in range(40)]
    began = time.thread_time()

    judged = list(judge_all(items, "board", [subscription(regex=("(a|aa)+$",))], now=NOW, clock=time.thread_time))

    assert time.thread_time() - began < 3  # 40 items at 0.1 s each would be 4
    assert all(found.slow for one in judged for _, found in one.verdicts)
