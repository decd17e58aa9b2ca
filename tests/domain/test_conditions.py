from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from app.domain.conditions import doubts, told
from app.domain.feeds import FIELDS, named_fields
from app.domain.subscriptions import Subscription

SOURCES = {"api": frozenset({"budget"}), "feed": FIELDS, "own": None}


def subscription(**conditions: Any) -> Subscription:
    return Subscription(name="gigs", to=("me",), **conditions)


def test_every_condition_is_told():
    asked = subscription(
        sources=frozenset({"b", "a"}),
        any=("python", "บอท"),
        all=("remote",),
        none=("senior",),
        regex=(r"py\d",),
        fields={"company": ("Acme",)},
        min={"budget": 500},
        max={"budget": 900.5},
        max_age=timedelta(days=1.5),
    )

    assert told(asked) == [
        "of a, b",
        'with any of "python", "บอท"',
        'with all of "remote"',
        'with none of "senior"',
        r"where a pattern finds something: py\d",
        'company is any of "Acme"',
        "budget at least 500",
        "budget at most 900.5",
        "not older in days than 1.5",
    ]


def test_nothing_is_told_of_what_takes_everything():
    assert told(subscription()) == []
    assert doubts(subscription(), SOURCES) == []


@pytest.mark.parametrize(
    ("conditions", "doubt"),
    [
        ({"all": ("\u200b",)}, "has a word without a letter or a sign, which is found in nothing; remove it"),
        ({"all": ("Senior developer",), "none": ("senior",)}, 'it wants "Senior developer" and excludes "senior"'),
        ({"any": ("C#", "senior dev"), "none": ("c#", "senior")}, "it excludes every word of any"),
        ({"min": {"budget": 500}, "max": {"budget": 400}, "sources": {"api"}}, "no number is, only a range"),
        ({"min": {"rate": 5}, "sources": {"api", "feed"}}, 'can never match: no source of it has a field "rate"'),
        ({"fields": {"company": ("x",)}, "sources": {"feed"}}, 'no source of it has a field "company"'),
        ({"max": {"budget": 5}}, 'takes nothing of feed, which has no field "budget"'),
    ],
)
def test_what_can_never_be_is_told(conditions: dict[str, Any], doubt: str):
    [found] = doubts(subscription(**conditions), SOURCES)

    assert doubt in found


@pytest.mark.parametrize(
    "conditions",
    [
        {"any": ("senior", "junior"), "none": ("senior",)},
        {"all": ("go",), "none": ("django",)},
        {"min": {"budget": 500}, "max": {"budget": 500}, "sources": {"api"}},
        {"min": {"rate": 5}, "sources": {"own"}},
        {"fields": {"author": ("x",)}, "sources": {"feed", "own"}},
    ],
)
def test_what_may_be_is_left_alone(conditions: dict[str, Any]):
    assert doubts(subscription(**conditions), SOURCES) == []


def test_a_feed_has_no_other_fields_than_it_says():
    assert named_fields(categories=["a"], author="b").keys() == FIELDS
