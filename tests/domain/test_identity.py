from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.domain.errors import TemporaryFailure
from app.domain.feeds import Entry, items_of
from app.domain.identity import UNSAID, Identity, Rule, degraded, deserved, is_home, is_old, keys, marked, rekeyed
from app.domain.items import Item

DAY = timedelta(days=1)
NOW = datetime(2026, 11, 30, 9, tzinfo=UTC)


def item(title: str = "T", *, id: str | None = "", link: str | None = None, key: str = "k", **more: Any) -> Item:  # noqa: A002
    return Item(key=key, title=title, id=id, link=link, **more)


def rule_of(*items: Item) -> Rule:
    return deserved(marked(items, UNSAID))


def keys_of(rule: Rule, *items: Item) -> list[str]:
    return keys(marked(items, UNSAID), rule)


ENTRIES = st.lists(
    st.builds(
        Entry,
        id=st.sampled_from(["", "a", "b"]),
        link=st.sampled_from([None, "https://e.test/1?utm_source=x", "https://e.test/2"]),
        title=st.sampled_from(["T", "U"]),
    ),
    max_size=6,
)


@given(ENTRIES)
def test_every_rule_gives_each_item_a_key_and_the_first_of_them_is_its_kinds_own(entries: list[Entry]):
    items, warnings = items_of(entries)
    found = marked(items, UNSAID)

    assert all(len(keys(found, rule)) == len(items) and all(keys(found, rule)) for rule in ("id", "link", "link_title"))
    if not warnings:
        assert keys(found, "id") == [item.key for item in items]


def test_ids_are_believed_though_all_have_one_link():
    assert rule_of(*(item(f"T{n}", id=f"g{n}", link="https://e.test/") for n in range(5))) == "id"


def test_an_item_in_twenty_that_shares_an_id_is_everyday_life():
    items = [item(f"T{n}", id=f"g{max(n, 1)}", link=f"https://e.test/{n}") for n in range(20)]

    assert rule_of(*items) == "id"
    assert len(set(keys_of("id", *items))) == 20


def test_ids_that_repeat_give_way_to_links_and_links_that_repeat_to_titles():
    repeated = [item(f"T{n}", id="0", link=f"https://e.test/{n}") for n in range(5)]
    alone = [item(f"T{n}", link="https://e.test/list") for n in range(5)]

    assert rule_of(*repeated) == "link"
    assert keys_of("link", *repeated) == [f"https://e.test/{n}" for n in range(5)]
    assert rule_of(*alone) == "link_title"
    assert len(set(keys_of("link_title", *alone))) == 5


def test_of_rules_that_are_all_useless_the_best_is_taken():
    items = [item(f"T{n % 2}", id=f"g{n % 8}", link="https://e.test/", text=str(n)) for n in range(16)]

    assert rule_of(*items) == "id"


def test_the_same_entry_many_times_says_nothing_about_its_id():
    assert rule_of(*([item(id="g")] * 9)) == "id"


def test_a_rule_is_never_gone_back_to():
    assert degraded("link", "id") == degraded("id", "link") == "link"
    assert degraded("link_title", "link") == "link_title"


@pytest.mark.parametrize("identity", [UNSAID, Identity(decided=True)])
def test_a_key_that_a_kind_or_a_person_has_decided_is_the_items_whatever_it_shares(identity: Identity):
    items = [item(f"T{n}", id="7" if identity.decided else None, key="7") for n in range(3)]
    found = marked(items, identity)

    assert deserved(found) == "id"
    assert set(keys(found, "link_title")) == {"7"}


def test_tracking_and_what_is_to_be_ignored_is_no_part_of_a_key_and_stays_in_the_link():
    links = [f"https://e.test/p?id=7&V={n}&utm_source=m" for n in range(3)]

    found = rekeyed([item(link=link, key=link) for link in links], Identity(ignored=frozenset({"v"})))

    assert [(one.key, one.link) for one in found] == [("https://e.test/p?id=7", links[0])]


@pytest.mark.parametrize(
    ("pattern", "ids"),
    [
        (r"(\d+)$", {"4455"}),
        (r"/jobs/view/(?:.*-)?(\d+)", {"4455"}),
        (r"\d+", {"4455"}),
        (r"never", {"https://th.host.test/jobs/view/web-dev-4455", "https://www.host.test/jobs/view/4455"}),
    ],
)
def test_an_id_is_found_in_two_shapes_of_a_link(pattern: str, ids: set[str]):
    links = ["https://th.host.test/jobs/view/web-dev-4455?utm_source=x", "https://www.host.test/jobs/view/4455"]

    found = rekeyed([item(link=link, key=link) for link in links], Identity(id_regex=pattern))

    assert {one.key for one in found} == ids


def test_a_pattern_that_takes_too_long_fails_the_round_and_makes_nothing_new(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("app.domain.identity.REGEX_SECONDS", 0.05)
    slow = Identity(id_regex="(a|aa)+$")

    with pytest.raises(TemporaryFailure, match="id_regex takes too long"):
        rekeyed([item(link=f"https://e.test/{'a' * 200}b")], slow)


def test_a_key_of_a_title_and_a_day_is_the_same_at_another_hour_and_with_another_link():
    identity = Identity(parts=("title", "date"))
    items = [
        item("T", link="https://e.test/1", published_at=NOW),
        item("T", link="https://e.test/2", published_at=NOW + timedelta(hours=1)),
        item("T", link="https://e.test/3", published_at=NOW + DAY),
        item("U"),
    ]

    assert [one.key for one in rekeyed(items, identity)] == ["T 2026-11-30", "T 2026-12-01", "U"]


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        (item("Dev, Acme"), item("DEV - Acme"), True),
        (item("Dev, Acme"), item("Dev", fields={"company": "Acme"}), True),
        (item("Dev", fields={"company": "Bolt"}), item("Dev", fields={"company": "Acme"}), False),
        (item("Dev (m/f)"), item("Dev"), False),
        (item("C++"), item("C#"), False),
        (item("หมา"), item("หม่า"), False),
        (item("!!!"), item("???"), False),
    ],
)
def test_titles_are_alike_whatever_their_signs_and_capitals(one: Item, other: Item, same: bool):  # noqa: FBT001
    first, second = marked([one, other], UNSAID)

    assert (first.title_mark == second.title_mark) is same


@pytest.mark.parametrize(
    ("published_at", "oldest_at", "max_age", "old"),
    [
        (None, NOW, DAY, False),
        (NOW, None, None, False),
        (NOW - 400 * DAY, None, None, False),
        (NOW - 400 * DAY, NOW - 7 * DAY, None, True),
        (NOW - 7 * DAY - timedelta(hours=1), NOW - 7 * DAY, None, False),  # of that day
        (NOW - 8 * DAY, NOW - 7 * DAY, None, True),
        (NOW - 8 * DAY, None, 7 * DAY, True),
        (NOW - 6 * DAY, None, 7 * DAY, False),
        (NOW + 99 * DAY, NOW, DAY, False),
    ],
)
def test_what_is_older_than_the_first_round_or_than_is_asked_for_is_no_news(
    published_at: datetime | None, oldest_at: datetime | None, max_age: timedelta | None, *, old: bool
):
    assert is_old(item(published_at=published_at), now=NOW, oldest_at=oldest_at, max_age=max_age) is old


@pytest.mark.parametrize(
    ("link", "home"),
    [
        ("https://e.test", True),
        ("https://e.test/", True),
        ("https://e.test/?p=1", False),
        ("https://e.test/#/job/1", False),
        ("https://e.test/a", False),
    ],
)
def test_a_front_page_is_no_items_own(link: str, home: bool):  # noqa: FBT001
    assert is_home(link) is home


def test_texts_that_no_encoding_takes_have_marks_too():
    [found] = marked([item("T\ud800", link="https://e.test/\udfff")], UNSAID)

    assert found.link_mark is not None
