from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.domain.errors import TemporaryFailure
from app.domain.feeds import MAX_ENTRIES, MAX_VALUES, Entry, items_of, json_feed, web_page

VERSION = "https://jsonfeed.org/version/1.1"
BASE = "https://e.test/blog/feed.json?token=hush"


def keys(*entries: Entry) -> list[str]:
    return [item.key for item in items_of(entries)[0]]


def read(*items: Any, **more: Any) -> list[Entry]:
    return json_feed(json.dumps({"version": VERSION, "items": items} | more), host="e.test", base=BASE)


@pytest.mark.parametrize(
    ("entry", "key"),
    [
        (Entry(id="g1", link="https://e.test/1", title="T"), "g1"),
        (Entry(link="https://e.test/1?utm_source=x&a=1", title="T"), "https://e.test/1?a=1"),
        (Entry(title="T", text="words"), "T"),
        (Entry(text="only a text"), "only a text"),
    ],
)
def test_the_key_is_the_id_else_the_link_else_the_title(entry: Entry, key: str):
    assert keys(entry) == [key]


def test_dates_and_descriptions_are_no_part_of_a_key():
    early = Entry(link="https://e.test/1", title="T", published_at=datetime(2026, 1, 1, tzinfo=UTC), text="a")
    late = Entry(link="https://e.test/1", title="T", published_at=datetime(2026, 1, 2, tzinfo=UTC), text="b")

    assert keys(early) == keys(late)


def test_tracking_parameters_make_no_second_item():
    links = [
        "https://e.test/j/9?utm_source=a",
        "https://e.test/j/9?utm_source=b&x=1",
        "https://e.test/j/9?x=1&fbclid=q",
    ]

    assert keys(*(Entry(link=link, title="T") for link in links)) == ["https://e.test/j/9", "https://e.test/j/9?x=1"]


def test_one_link_for_all_does_not_hide_items_with_ids():
    assert keys(*(Entry(id=f"g{n}", link="https://e.test/", title="T") for n in range(3))) == ["g0", "g1", "g2"]


def test_one_id_for_several_links_is_told_apart():
    entries = [Entry(id="g", link=f"https://e.test/{n}", title="T") for n in range(3)]

    items, warnings = items_of([*entries, entries[0]])

    assert [item.key for item in items] == [f"g https://e.test/{n}" for n in range(3)]
    assert warnings == ("entries that repeat the id or link of another: 3 of 4",)


def test_one_link_for_several_titles_is_told_apart_where_there_is_no_id():
    assert len(keys(*(Entry(link="https://e.test/", title=f"T{n}") for n in range(3)))) == 3


def test_the_same_entry_twice_is_one_item():
    entry = Entry(id="g", link="https://e.test/1", title="T")

    assert keys(entry, entry) == ["g"]


def test_an_entry_with_nothing_is_left_out_and_told():
    items, warnings = items_of([Entry(), Entry(title="T")])

    assert len(items) == 1
    assert warnings == ("entries without title, text and link, left out: 1",)


@pytest.mark.parametrize(
    ("entry", "title"),
    [
        (Entry(text="some words", link="https://e.test/1"), "some words"),
        (Entry(link="https://e.test/1"), "https://e.test/1"),
        (Entry(id="g1"), "g1"),
    ],
)
def test_an_item_without_a_title_is_named_by_what_there_is(entry: Entry, title: str):
    assert items_of([entry])[0][0].title == title


def test_a_json_feed_is_read():
    [entry] = read(
        {
            "id": 7,
            "url": "jobs/7",
            "title": "Bot & <b>",
            "content_html": "<p>Long <b>text</b></p>",
            "summary": "short",
            "date_published": "2026-11-30T16:00:00+07:00",
            "tags": ["python", "bots", 5],
        }
    )

    assert entry == Entry(
        id="7",
        title="Bot & <b>",
        link="https://e.test/blog/jobs/7",
        text="Long text",
        published_at=datetime(2026, 11, 30, 9, tzinfo=UTC),
        fields={"categories": "python, bots"},
    )


def test_an_empty_json_feed_is_a_success():
    assert read() == []


@pytest.mark.parametrize("version", ["https://jsonfeed.org/version/1", "http://jsonfeed.org/version/1"])
def test_the_first_version_is_read_too(version: str):
    assert len(read({"id": "1"}, version=version)) == 1


@pytest.mark.parametrize(
    ("document", "told"),
    [
        ('{"version": "https://jsonfeed.org/version/1", "items": [{"id": "1"}, {"id', "ends in the middle"),
        ('{"version": "https://jsonfeed.org/version/1", "items": [', "ends in the middle"),
        ("{", "ends in the middle"),
        ("{nonsense}", "is not valid JSON"),
        ("{} {}", "is not valid JSON"),
        ('{"jobs": []}', 'JSON that is no JSON Feed: such a source has kind = "json"'),
        ("[]", "no JSON Feed"),
        ('{"version": "https://jsonfeed.org/version/1"}', "has no list of items"),
        ('{"version": "https://jsonfeed.org/version/1", "items": {}}', "has no list of items"),
        ("[" * 100_000, "e.test"),
        ('{"a": ' + "9" * 5000 + "}", "cannot be read"),
    ],
)
def test_what_is_no_json_feed_is_told(document: str, told: str):
    with pytest.raises(TemporaryFailure, match=r"e\.test") as caught:
        json_feed(document, host="e.test", base=BASE)

    assert told in str(caught.value)


def test_too_much_of_a_json_feed_is_told():
    with pytest.raises(TemporaryFailure, match=r"more than 10,000 entries"):
        read(*[{}] * (MAX_ENTRIES + 1))
    with pytest.raises(TemporaryFailure, match=r"more than 200,000 objects and lists"):
        json_feed('{"items": [' + "{}," * MAX_VALUES, host="e.test", base=BASE)


def test_too_much_markup_in_all_descriptions_together_is_left_out():
    entries = read(*({"id": str(n), "content_html": "text" + "<b>" * 50_000} for n in range(8)))

    assert [entry.text for entry in entries] == ["text"] * 6 + [""] * 2


@pytest.mark.parametrize(
    ("page", "told"),
    [
        ("<title>Just a moment...</title>", "challenge page"),
        ("<title>Login</title>", "answered with a web page, not a feed"),
    ],
)
def test_a_page_is_told_as_what_it_is(page: str, told: str):
    assert told in web_page(page, "e.test")


JSON = st.recursive(st.none() | st.booleans() | st.integers() | st.floats() | st.text(), st.lists, max_leaves=3)
NAMES = st.sampled_from(
    ["id", "url", "external_url", "title", "content_text", "content_html", "date_published", "tags"]
)


@given(st.lists(st.dictionaries(NAMES, JSON, max_size=5) | JSON, max_size=4))
def test_every_item_has_a_key_of_its_own_and_a_title(listed: list[Any]):
    items, _ = items_of(read(*listed))

    assert len({item.key for item in items}) == len(items)
    assert all(0 < len(item.key) <= 1000 and 0 < len(item.title) <= 1000 for item in items)
