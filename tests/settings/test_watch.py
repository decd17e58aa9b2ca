"""What every source may say of its keys, and of when it is blind."""

from __future__ import annotations

from datetime import timedelta

import pytest

from app.domain.identity import Identity
from app.domain.watching import Watch
from app.settings import SourceSettings
from tests.settings.conftest import Load, Problems

FEED = '[sources.jobs]\nkind = "feed"\nurl = "https://jobs.example/feed.xml"\n'


def source(load_text: Load, more: str = "") -> SourceSettings:
    found: SourceSettings = load_text(FEED + more).sources["jobs"]
    return found


def test_where_nothing_is_said_keys_are_their_kinds_and_the_third_empty_round_is_told(load_text: Load):
    found = source(load_text)

    assert (found.identity, found.watch) == (Identity(), Watch(zero_alert_after=3))
    assert not found.identity.chooses


def test_what_can_be_said(load_text: Load):
    found = source(
        load_text,
        'key = "title + date"\nid_regex = \'([0-9]+)$\'\nignore_params = ["V", "session"]\nzero_alert_after = 0\n'
        "expect_news_days = 14\nmax_age_days = 1.5\nmerge_days = 3\n",
    )

    assert found.identity == Identity(
        parts=("title", "date"), id_regex="([0-9]+)$", ignored=frozenset({"v", "session"})
    )
    assert found.watch == Watch(
        zero_alert_after=0,
        expect_news=timedelta(days=14),
        max_age=timedelta(days=1.5),
        merge_within=timedelta(days=3),
    )


@pytest.mark.parametrize("line", ['key = "title"', "id_regex = '[0-9]+'", 'ignore_params = ["v"]'])
def test_another_key_makes_it_another_source(load_text: Load, line: str):
    assert source(load_text, line).fingerprint != source(load_text).fingerprint


def test_when_it_is_blind_does_not(load_text: Load):
    more = "zero_alert_after = 9\nexpect_news_days = 9\nmax_age_days = 9\nmerge_days = 9\n"

    assert source(load_text, more).fingerprint == source(load_text).fingerprint


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ('key = "guid"', 'sources.jobs.key: is made of id, link, title, date, joined by +, and not of "guid"'),
        ('key = ""', "sources.jobs.key: is empty"),
        ("id_regex = '('", "sources.jobs.id_regex: is no regular expression"),
        ('ignore_params = "v"', 'sources.jobs.ignore_params: must be a list of texts, not "v"'),
        ("zero_alert_after = -1", "sources.jobs.zero_alert_after: must be a whole number from 0 to 1000"),
        ("expect_news_days = 0", "sources.jobs.expect_news_days: must be a number of days, more than 0"),
        ("max_age_days = 9999", "sources.jobs.max_age_days: must be a number of days"),
        ('merge_days = "3"', "sources.jobs.merge_days: must be a number of days"),
        ("ignore_param = []", 'sources.jobs.ignore_param: there is no such key; did you mean "ignore_params"?'),
    ],
)
def test_what_is_wrong_is_told_by_name(problems_of: Problems, line: str, problem: str):
    assert any(problem in told for told in problems_of(FEED + line)), problems_of(FEED + line)
