from __future__ import annotations

import time
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from app.domain.identity import UNSAID, keys, marked
from app.domain.items import Item
from app.domain.recognition import MOST_COMPARISONS, Keyed, Known, Recognised, recognise

HOUR, DAY = timedelta(hours=1), timedelta(days=1)
NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)
LAST_ROUND = NOW - HOUR


def item(title: str, link: str | None = None, *, id: str | None = "", **more: Any) -> Item:  # noqa: A002
    more.setdefault("published_at", NOW - 3 * DAY)
    return Item(key=id or link or title, title=title, id=id, link=link, **more)


def keyed(items: Sequence[Item]) -> list[Keyed]:
    found = marked(items, UNSAID)
    return [Keyed(key=key, mark=mark) for mark, key in zip(found, keys(found, "id"), strict=True)]


def known(items: Sequence[Item], *, first_seen_at: datetime = NOW - 3 * DAY) -> list[Known]:
    return [
        Known(
            id=number,
            key=one.key,
            title=one.mark.item.title,
            link=one.mark.item.link,
            link_mark=one.mark.link_mark,
            title_mark=one.mark.title_mark,
            published_at=one.mark.item.published_at,
            first_seen_at=first_seen_at,
        )
        for number, one in enumerate(keyed(items))
    ]


def seen(before: Sequence[Item], now: Sequence[Item], **more: Any) -> Recognised:
    listed, rows = keyed(now), known(before, **more)
    unknown = [one for one in listed if one.key not in {row.key for row in rows}]
    return recognise(unknown, listed, rows, last_round_at=LAST_ROUND, now=NOW)


def moves(before: Sequence[Item], now: Sequence[Item], **more: Any) -> dict[str, str]:
    """From the former key to the new one."""
    found = seen(before, now, **more)
    assert not found.unstable
    assert not found.held
    rows = {row.id: row.key for row in known(before)}
    return {rows[row_id]: one.key for row_id, one in found.moves.items()}


PAGE = "https://e.test/jobs/7"


@pytest.mark.parametrize(
    ("before", "now"),
    [
        pytest.param(item("T", PAGE, id="g1"), item("T (fixed)", PAGE, id="g2"), id="another id and title"),
        pytest.param(item("T", PAGE, id="g1"), item("T", PAGE + "?utm_source=x", id="g2"), id="tracked by now"),
        pytest.param(item("T", PAGE), item("T", PAGE, id="g2"), id="an id by now"),
        pytest.param(item("T", "https://e.test/", id="g1"), item("T", "https://e.test/", id="g2"), id="front page"),
        pytest.param(
            item("Shop", "https://e.test/build-a-your-shop/"),
            item("Shop", "https://e.test/build-your-shop/"),
            id="another address, one title and day",
        ),
        pytest.param(
            item("Python develper", PAGE, id="g1", published_at=None),
            item("Python developer (f/m)", PAGE, id="g2", published_at=None),
            id="a corrected title",
        ),
        pytest.param(
            item("T", PAGE, id="g1"), item("T!", PAGE, id="g2", published_at=NOW - 2 * DAY), id="dated by its edit"
        ),
    ],
)
def test_an_edit_is_the_known_item_under_another_key(before: Item, now: Item):
    assert moves([before], [now]) == {keyed([before])[0].key: keyed([now])[0].key}


@pytest.mark.parametrize(
    ("before", "now"),
    [
        pytest.param([item("T", PAGE, id="g1")], [item("T", PAGE, id="g1"), item("T", PAGE, id="g2")], id="both there"),
        pytest.param(
            [item(f"T{n}", PAGE, id=f"g{n}") for n in range(5)],
            [item(f"T{n}", PAGE, id=f"g{n}") for n in range(1, 6)],
            id="one link for all, and a window",
        ),
        pytest.param([item("T", "https://e.test/", id="g1")], [item("U", "https://e.test/", id="g2")], id="front page"),
        pytest.param(
            [item("T", PAGE, id="g1", published_at=NOW - 3 * DAY)],
            [item("U", PAGE, id="g2", published_at=NOW - HOUR / 2)],
            id="published since, and days later",
        ),
        pytest.param(
            [item("T", PAGE, id="g1", published_at=NOW - DAY)],
            [item("U", PAGE, id="g2", published_at=NOW - HOUR / 2)],
            id="published since, within a day",
        ),
        pytest.param(
            [item("T", PAGE, id="g1", published_at=NOW - 3 * DAY)],
            [item("U", PAGE, id="g2", published_at=NOW - 2 * DAY)],
            id="an id, a title and a date of its own",
        ),
        *(
            pytest.param(
                [item(before, PAGE, id="g1", published_at=None)],
                [item(after, PAGE, id="g2", published_at=None)],
                id=f"{after} is no {before}",
            )
            for before, after in [
                ("Jobs of day 1", "Jobs of day 2"),
                ("Senior Python developer", "Senior Java developer"),
                ("Opening A", "Opening B"),
                ("Dev", "Dev or writer, anywhere"),
            ]
        ),
        pytest.param([item("Dev", "https://e.test/j/1")], [item("Dev", "https://e.test/j/2")], id="two openings"),
        pytest.param(
            [item("Dev", "https://e.test/dev-acme", published_at=NOW - 3 * HOUR)],
            [item("Dev", "https://e.test/dev-bolt", published_at=NOW - 2 * HOUR)],
            id="two companies",
        ),
        pytest.param([item("Dev", id="a", published_at=None)], [item("Dev", id="b", published_at=None)], id="two ids"),
        pytest.param(
            [item("Report", "https://e.test/a", published_at=NOW - DAY)],
            [item("Report", "https://e.test/b", published_at=NOW - 2 * HOUR)],
            id="one title, another day",
        ),
        pytest.param(
            [item("Report", "https://e.test/a", published_at=NOW - 4 * HOUR)],
            [item("Report", "https://e.test/b", published_at=NOW - HOUR / 2)],
            id="one title and day, published since",
        ),
        pytest.param(
            [item("T", "https://e.test/a", published_at=None)], [item("T", "https://e.test/b")], id="dated by now"
        ),
        pytest.param(
            [item("T", "https://e.test/a")],
            [item("T", "https://e.test/b"), item("T", "https://e.test/c")],
            id="which of two",
        ),
        pytest.param([item("T", id=None)], [item("T", id=None, link=PAGE)], id="a key that is decided"),
    ],
)
def test_what_only_looks_like_a_known_item_is_news(before: list[Item], now: list[Item]):
    assert moves(before, now) == {}


@pytest.mark.parametrize(("age", "edits"), [(HOUR, 1), (2 * DAY, 0)])
def test_what_has_no_date_has_the_day_on_which_it_was_first_seen(age: timedelta, edits: int):
    before = item("Shop", "https://e.test/build-a-your-shop/", published_at=None)
    now = item("Shop", "https://e.test/build-your-shop/", published_at=None)

    assert len(moves([before], [now], first_seen_at=NOW - age)) == edits


def test_no_known_item_becomes_two():
    before = item("T", PAGE, id="g1")
    now = [item("T", "https://e.test/jobs/7/", id="g2"), item("U", PAGE, id="g3")]

    assert moves([before], now) == {"g1": "g3"}


def token(titles: Sequence[str], salt: str, **more: Any) -> list[Item]:
    return [item(title, f"https://e.test/p?id={n}&v={salt}{n}", **more) for n, title in enumerate(titles)]


TITLES = [f"Gig {letter}" for letter in "abcdefghijklmnopqrst"]


def test_links_that_are_others_in_each_round_pull_the_brake():
    found = seen(token(TITLES, "x"), token(TITLES, "y"))

    assert found.unstable
    assert not found.held
    assert len(found.moves) == 20


def test_what_is_new_among_them_is_held_and_not_taken_for_known():
    found = seen(token(TITLES, "x"), token([*TITLES[:18], "new", "newer"], "y"))

    assert found.unstable
    assert len(found.held) == 2
    assert len(found.moves) == 18


@pytest.mark.parametrize(
    ("before", "now"),
    [
        pytest.param(token(TITLES[:4], "x"), token(TITLES[:4], "y"), id="four say nothing"),
        pytest.param(token(TITLES, "x"), [*token(TITLES, "x")[:10], *token(TITLES, "y")[10:]], id="half are known"),
        pytest.param(token(TITLES, "x"), token([f"{t} new" for t in TITLES], "y"), id="titles are new"),
        pytest.param(token(["Report"] * 20, "x"), token(["Report"] * 20, "y"), id="one title for all"),
        pytest.param(
            token(TITLES, "x", published_at=NOW - 9 * DAY), token(TITLES, "y", published_at=NOW - 2 * DAY), id="weekly"
        ),
    ],
)
def test_the_brake_is_for_sources_that_list_the_same_again(before: list[Item], now: list[Item]):
    assert not seen(before, now).unstable


def test_keys_that_a_person_has_decided_are_braked_as_well():
    before, now = ([Item(key=f"{s}{n}", title=title) for n, title in enumerate(TITLES)] for s in "xy")

    found = seen(before, now)

    assert found.unstable
    assert len(found.moves) == 20


def test_ids_that_are_others_in_each_round_are_seen_through_by_their_links():
    before, now = ([item(t, f"https://e.test/{n}", id=f"{s}{n}") for n, t in enumerate(TITLES)] for s in "xy")

    found = seen(before, now)

    assert (found.unstable, found.useless_ids, len(found.moves)) == (False, True, 20)


def test_ids_and_dates_that_are_others_in_each_round_are_seen_through_as_well():
    before, now = (
        [item(t, f"https://e.test/{n}", id=f"{s}{n}", published_at=at) for n, t in enumerate(TITLES)]
        for s, at in (("x", LAST_ROUND - HOUR), ("y", NOW))
    )

    found = seen(before, now)

    assert (found.unstable, found.useless_ids, len(found.moves)) == (False, True, 20)


def test_a_round_is_compared_within_a_bound():
    """Each of them took SequenceMatcher 9 ms, in a transaction, on the loop."""
    letters = str.maketrans("0123456789", "abcdefghij")
    titles = [f"Title {n}".translate(letters) for n in range(1000)]
    before, now = (
        [item(t, f"https://e.test/{s}{n}/".translate(letters) + tail, published_at=None) for n, t in enumerate(titles)]
        for s, tail in (("x", "a" * 99 + "b" + "a" * 80), ("y", "a" * 99 + "c" + "a" * 99))
    )
    listed, rows = keyed([*before[:300], *now[300:]]), known(before, first_seen_at=NOW)
    started = time.process_time()

    found = recognise(listed[300:], listed, rows, last_round_at=LAST_ROUND, now=NOW)

    assert time.process_time() - started < 1
    assert len(found.moves) <= MOST_COMPARISONS
