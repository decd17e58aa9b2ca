from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from app.domain import manners
from app.domain.manners import Answer

NOW = datetime(2026, 10, 21, 7, 0, tzinfo=UTC)
EVERY = timedelta(minutes=30)
MINUTE = timedelta(minutes=1)
DAY = timedelta(days=1)


def answered(status: int, url: str = "https://e.test/feed", **headers: str) -> Answer:
    return Answer(url=url, status=status, headers={name.replace("_", "-"): value for name, value in headers.items()})


def hop(status: int, url: str, location: str | None) -> Answer:
    return Answer(url=url, status=status, location=location)


@pytest.mark.parametrize(
    ("url", "key"),
    [
        ("https://Jobs.Example/feed.xml?key=hush", "jobs.example"),
        ("http://www.jobs.example:80/", "jobs.example"),
        ("https://name:hush@www.jobs.example./", "jobs.example"),
        ("http://jobs.example:8080/", "jobs.example:8080"),
        ("http://[2001:db8::1]:8080/", "2001:db8::1:8080"),
        ("http://127.0.0.1:5000/a", "127.0.0.1:5000"),
        ("http://[half", "?"),
        ("http://e.test:port/", "?"),
        ("", "?"),
    ],
)
def test_http_https_and_www_of_one_host_have_one_turn(url: str, key: str):
    assert manners.host_key(url) == key


@pytest.mark.parametrize(
    ("value", "wait"),
    [
        ("120", 2 * MINUTE),
        ("5", MINUTE),
        ("0", None),
        ("-3", None),
        ("soon", None),
        ("", None),
        ("1e3", None),
        ("99999999999999999999", DAY),
        ("Wed, 21 Oct 2026 07:28:00 GMT", 28 * MINUTE),
        ("Wed, 21 Oct 2026 06:00:00 GMT", None),
        ("Wed, 21 Oct 2099 06:00:00 GMT", DAY),
        ("Wed, 99 Oct 99999 06:00:00 GMT", None),
    ],
)
def test_how_long_a_host_asks_to_be_left_alone(value: str, wait: timedelta | None):
    assert manners.asked_wait(answered(429, retry_after=value), now=NOW, every=EVERY) == wait


def test_a_date_is_taken_by_the_servers_own_clock():
    """A machine that was suspended wakes with a wrong one."""
    refused = answered(503, retry_after="Wed, 21 Oct 2026 03:10:00 GMT", date="Wed, 21 Oct 2026 03:00:00 GMT")

    assert manners.asked_wait(refused, now=NOW, every=EVERY) == 10 * MINUTE


def test_a_source_that_is_read_more_often_than_every_minute_may_be_asked_to_wait_for_less():
    assert manners.asked_wait(answered(429, retry_after="3"), now=NOW, every=timedelta(seconds=2)) == timedelta(
        seconds=3
    )
    assert manners.asked_wait(answered(429, retry_after="1"), now=NOW, every=timedelta(seconds=2)) == timedelta(
        seconds=2
    )


@pytest.mark.parametrize("status", [429, 503])
def test_a_visit_that_ends_with_a_refusal_is_one(status: int):
    last = answered(status)

    assert manners.refusal([answered(302), last]) is last


@pytest.mark.parametrize("answers", [[], [answered(200)], [answered(429), answered(200)], [answered(500)]])
def test_others_are_none(answers: list[Answer]):
    assert manners.refusal(answers) is None


@pytest.mark.parametrize(
    ("statuses", "gone"),
    [([410], True), ([301, 410], True), ([302, 410], False), ([410, 200], False), ([404], False), ([], False)],
)
def test_an_address_is_gone_when_itself_says_so(statuses: list[int], gone: bool):  # noqa: FBT001
    assert manners.is_gone([answered(status) for status in statuses]) is gone


@pytest.mark.parametrize(
    ("answers", "target"),
    [
        ([hop(301, "http://a/", "http://b/"), hop(200, "http://b/", None)], "http://b/"),
        (
            [hop(308, "http://a/", "http://b/"), hop(301, "http://b/", "http://c/"), hop(200, "http://c/", None)],
            "http://c/",
        ),
        (
            [hop(301, "http://a/", "http://b/"), hop(302, "http://b/", "http://c/"), hop(200, "http://c/", None)],
            "http://b/",
        ),
        ([hop(302, "http://a/", "http://b/"), hop(301, "http://b/", "http://c/"), hop(200, "http://c/", None)], None),
        ([hop(307, "http://a/", "http://b/"), hop(200, "http://b/", None)], None),
        ([hop(301, "http://a/", None), hop(200, "http://a/", None)], None),
        ([hop(301, "http://a/", "http://b/"), hop(301, "http://b/", "http://a/"), hop(200, "http://a/", None)], None),
        ([hop(200, "http://a/", None)], None),
        ([], None),
    ],
)
def test_a_move_is_what_permanent_redirects_lead_to_before_any_other(answers: list[Answer], target: str | None):
    assert manners.moved_to(answers) == target


@pytest.mark.parametrize(
    ("old", "new", "upgrade"),
    [
        ("http://e.test/a?b", "https://e.test/a?b", True),
        ("http://e.test/a", "https://e.test/", False),
        ("http://e.test/a", "https://login.test/a", False),
        ("https://e.test/a", "http://e.test/a", False),
    ],
)
def test_https_for_http_and_nothing_else_needs_no_proof(old: str, new: str, upgrade: bool):  # noqa: FBT001
    assert manners.is_upgrade(old, new) is upgrade


@pytest.mark.parametrize(
    ("headers", "fresh"),
    [
        ({"cache_control": "max-age=3600"}, timedelta(hours=1)),
        ({"cache_control": 'public, MAX-AGE="3600"'}, timedelta(hours=1)),
        ({"cache_control": "max-age=3600", "age": "600"}, timedelta(minutes=50)),
        ({"cache_control": "max-age=60", "age": "600"}, None),
        ({"cache_control": "max-age=31536000"}, DAY),
        ({"cache_control": "max-age=99999999999999999999"}, DAY),
        ({"cache_control": "no-cache, max-age=3600"}, None),
        ({"cache_control": "no-store"}, None),
        ({"cache_control": "max-age=0", "expires": "Wed, 21 Oct 2026 09:00:00 GMT"}, None),
        ({"cache_control": "max-age=soon"}, None),
        ({"cache_control": "s-maxage=3600"}, None),
        ({"expires": "Wed, 21 Oct 2026 09:00:00 GMT"}, timedelta(hours=2)),
        ({"expires": "Wed, 21 Oct 2026 09:00:00 GMT", "date": "Wed, 21 Oct 2026 08:59:00 GMT"}, MINUTE),
        ({"expires": "0"}, None),
        ({"expires": "Wed, 21 Oct 2020 09:00:00 GMT"}, None),
        ({}, None),
    ],
)
def test_how_long_an_answer_stays_as_it_is(headers: dict[str, str], fresh: timedelta | None):
    assert manners.fresh_for(answered(200, **headers).headers, now=NOW) == fresh


@pytest.mark.parametrize(
    ("head", "ttl"),
    [
        ("<ttl>60</ttl>", timedelta(hours=1)),
        ("<ttl> 90\n</ttl>", timedelta(minutes=90)),
        ("<ttl>99999999999</ttl>", DAY),
        ("<ttl>0</ttl>", None),
        ("<ttl>soon</ttl>", None),
        ("<sy:updatePeriod>daily</sy:updatePeriod>", None),
        ("<item><ttl>60</ttl></item>", None),
        ("", None),
    ],
)
def test_what_a_feed_itself_asks_for(head: str, ttl: timedelta | None):
    assert manners.feed_ttl(f"<rss><channel><title>Jobs</title>{head}<item/></channel></rss>") == ttl


def test_a_long_feed_without_items_is_not_read_to_its_end():
    assert manners.feed_ttl("<rss>" + "<ttl" * 1_000_000 + "<ttl>60</ttl>") is None
