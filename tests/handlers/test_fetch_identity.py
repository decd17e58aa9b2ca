"""What is told of a source through its rounds: read by its real kind, kept in the real database."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import AsyncIterator, Sequence
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from html import escape
from pathlib import Path
from typing import Any

import asyncpg
import httpx
import pytest

from app import alerts
from app.context import Context
from app.domain.items import Fetched, Unchanged
from app.plans import sources as plan
from app.sources import Reading
from tests.fakes.batches import a_batch, a_service, seen
from tests.handlers.conftest import Run

NOW = datetime.now(UTC).replace(microsecond=0)
HOUR, DAY = timedelta(hours=1), timedelta(days=1)

FEED = """
[service]
host_gap_seconds = 0

[recipients.me]
channel = "inbox"

[subscriptions.all]
to = ["me"]

[alerts]
to = ["inbox"]

[sources.board]
kind = "feed"
url = "https://board.example/feed?key=hush"
"""
PAGE = """kind = "html"
items = "li.job"
title = "a"
link = "a@href"
"""
OTHER = """
[sources.other]
kind = "feed"
url = "https://other.example/feed"
merge_days = 3
"""


def entry(title: str, link: str | None = None, *, guid: str | None = None, at: datetime | None = None) -> str:
    parts = [f"<title>{escape(title)}</title>"]
    parts += [f"<link>{escape(link)}</link>"] if link else []
    parts += [f"<guid>{escape(guid)}</guid>"] if guid else []
    parts += [f"<pubDate>{format_datetime(at)}</pubDate>"] if at else []
    return f"<item>{''.join(parts)}</item>"


def rss(*entries: str) -> str:
    return f'<rss version="2.0"><channel><title>Gigs</title>{"".join(entries)}</channel></rss>'


class RealKinds:
    """In place of the made-up kind: whichever the options are of."""

    async def fetch(self, options: Any, ctx: Reading) -> Fetched | Unchanged:
        fetched: Fetched | Unchanged = await sys.modules[type(options).__module__].fetch(options, ctx)
        return fetched


class Board:
    """One source, and whoever hears of it."""

    def __init__(self, ctx: Context, sql: asyncpg.Connection, run: Run, answers: dict[str, httpx.Response]) -> None:
        self.ctx = ctx
        self.sql = sql
        self.run = run
        self.answers = answers

    async def round(self, document: str, *, source: str = "board", status: int = 200, **headers: str) -> list[str]:
        """The titles that become owed by a round which is answered so; then alerts are judged."""
        before = await self.owed()
        self.answers[f"{source}.example"] = httpx.Response(status, text=document, headers=headers)
        await self.sql.execute("UPDATE wakebell.sources SET due_at = now() + interval '20 minutes', retry_at = NULL")
        await self.sql.execute("UPDATE wakebell.sources SET due_at = now(), fresh_until = NULL WHERE name = $1", source)
        await self.sql.execute(
            "UPDATE wakebell.jobs SET status = 'cancelled', finished_at = now() "
            "WHERE type = 'fetch_source' AND status = 'pending'"
        )
        await plan.plan(self.ctx, await seen(self.ctx))
        await self.sql.execute(
            "UPDATE wakebell.jobs SET status = 'cancelled', finished_at = now() WHERE type = 'fetch_source' "
            "AND status = 'pending' AND unique_key <> $1",
            source,
        )
        await self.run("fetch_source")
        await alerts.judge(self.ctx)
        return (await self.owed())[len(before) :]

    async def rounds(self, *documents: str) -> list[list[str]]:
        return [await self.round(document) for document in documents]

    async def owed(self) -> list[str]:
        query = "SELECT title FROM wakebell.owed JOIN wakebell.items ON items.id = item_id ORDER BY owed.id"
        return [row["title"] for row in await self.sql.fetch(query)]

    async def alerts(self) -> list[tuple[str, bool]]:
        """Each alert that was ever opened, and whether it is open."""
        rows = await self.sql.fetch("SELECT key, resolved_at IS NULL AS open FROM wakebell.alerts ORDER BY id")
        return [(row["key"], row["open"]) for row in rows]

    async def source(self, column: str) -> Any:
        return await self.sql.fetchval(f"SELECT {column} FROM wakebell.sources WHERE name = 'board'")

    async def passed(self, **time: float) -> None:
        """So much time has gone by since everything."""
        for table, columns in {
            "sources": ("primed_at", "last_round_at", "last_success_at", "last_news_at", "state_at", "oldest_at"),
            "items": ("first_seen_at", "seen_at"),
        }.items():
            moved = ", ".join(f"{column} = {column} - $1::interval" for column in columns)
            await self.sql.execute(f"UPDATE wakebell.{table} SET {moved}", timedelta(**time))


@pytest.fixture
def options() -> str:
    """More of the file; a test says what."""
    return ""


@pytest.fixture
def answers() -> dict[str, httpx.Response]:
    return {}


@pytest.fixture
def source() -> RealKinds:
    return RealKinds()


@pytest.fixture
async def ctx(
    database_url: str, tmp_path: Path, options: str, answers: dict[str, httpx.Response]
) -> AsyncIterator[Context]:
    text = FEED + options if "kind" not in options.partition("[")[0] else FEED.replace('kind = "feed"\n', "") + options

    def answer(request: httpx.Request) -> httpx.Response:
        said = answers[request.url.host]
        if said.headers.get("etag", "none") == request.headers.get("if-none-match"):
            return httpx.Response(304)
        return httpx.Response(said.status_code, content=said.content, headers=said.headers)

    async with (
        a_batch(a_service(database_url, tmp_path, text)) as ctx,
        httpx.AsyncClient(transport=httpx.MockTransport(answer)) as http,
    ):
        yield dataclasses.replace(ctx, http=http)


@pytest.fixture
def board(ctx: Context, sql: asyncpg.Connection, run: Run, answers: dict[str, httpx.Response]) -> Board:
    return Board(ctx, sql, run, answers)


def with_options(*lines: str) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("options", ["\n".join(lines)])


LINK = "https://board.example/jobs/"


# ------------------------------------------------------------------------------------------------------ what is news


async def test_items_of_a_first_round_are_known_whatever_ticks_later(board: Board):
    listed = rss(*(entry(letter, guid=letter) for letter in "abc"))

    assert await board.rounds(listed, listed, listed) == [[], [], []]


async def test_an_old_item_that_slides_into_the_window_is_known_and_not_told(board: Board):
    week = [entry(f"job {n}", guid=f"g{n}", at=NOW - n * 12 * HOUR) for n in range(10)]
    old = entry("last year's", guid="old", at=NOW - 400 * DAY)
    await board.round(rss(*week))

    assert await board.rounds(rss(*week[1:], old), rss(*week[1:], old)) == [[], []]
    assert await board.sql.fetchval("SELECT count(*) FROM wakebell.items") == 11
    assert await board.round(rss(entry("undated", guid="u"), *week[1:], old)) == ["undated"]


@with_options("max_age_days = 7")
async def test_what_is_older_than_asked_for_is_no_news(board: Board):
    await board.round(rss(entry("first", guid="g1", at=NOW - 500 * DAY)))

    told = await board.round(rss(entry("8", guid="g8", at=NOW - 8 * DAY), entry("6", guid="g6", at=NOW - 6 * DAY)))

    assert told == ["6"]


async def test_an_item_without_a_date_is_told_once_and_has_none(board: Board):
    listed = rss(entry("new", guid="new"))
    assert await board.rounds(rss(), listed, listed, listed) == [[], ["new"], [], []]

    assert await board.sql.fetchval("SELECT count(*) FROM wakebell.items WHERE published_at IS NULL") == 1


async def test_dates_in_any_order_tell_nothing_again(board: Board):
    listed = rss(*(entry(f"{h}", guid=f"{h}", at=NOW + h * HOUR) for h in (7, 13, 9)))

    assert await board.rounds(rss(), listed, listed) == [[], ["7", "13", "9"], []]


async def test_new_items_are_found_wherever_they_stand(board: Board):
    old = [entry(f"old {n}", guid=f"o{n}") for n in range(56)]
    new = [entry(f"new {n}", guid=f"n{n}") for n in range(4)]
    await board.round(rss(*old))

    assert await board.round(rss(*old[:54], *new, *old[54:])) == [f"new {n}" for n in range(4)]


# ----------------------------------------------------------------------------------------------------------- its key


@pytest.mark.parametrize(
    ("first", "second"),
    [
        pytest.param(
            entry("Gardener", LINK + "1", guid="g1"),
            entry("Gardener (fixed)", LINK + "1", guid="g2"),
            id="another id, one link",
        ),
        pytest.param(
            entry("Shop", guid="https://board.example/build-a-your-shop/", at=NOW - DAY),
            entry("Shop", guid="https://board.example/build-your-shop/", at=NOW - DAY),
            id="the id is an address, and was corrected",
        ),
        pytest.param(
            entry("T", LINK + "1", at=NOW - DAY), entry("T", LINK + "1", at=NOW - DAY + HOUR), id="another date"
        ),
        pytest.param(entry("T", LINK + "1"), entry("T", LINK + "1?utm_source=b&fbclid=q"), id="tracked by now"),
        pytest.param(entry("T", LINK + "1"), entry("T", LINK + "1", guid="g1"), id="it has an id by now"),
    ],
)
async def test_an_edit_is_no_news_and_stays_none(board: Board, first: str, second: str):
    other = entry("other", LINK + "0", guid=LINK + "0")

    assert await board.rounds(rss(first, other), rss(second, other), rss(second, other)) == [[], [], []]
    assert await board.sql.fetchval("SELECT count(*) FROM wakebell.items") == 2


async def test_an_edit_of_what_is_owed_is_owed_once(board: Board):
    told = await board.rounds(
        rss(), rss(entry("Gardener", LINK + "1", guid="g1")), rss(entry("Gardener (fixed)", LINK + "1", guid="g2"))
    )

    assert told == [[], ["Gardener"], []]


async def test_a_feed_of_one_item_a_day_under_one_link_tells_each(board: Board):
    told = []
    for day in range(4):
        one = entry(f"Jobs of day {day}", LINK + "today", guid=f"day-{day}", at=NOW + (day - 5) * DAY)
        told.append(await board.round(rss(one)))
        await board.passed(days=1)

    assert told == [[], ["Jobs of day 1"], ["Jobs of day 2"], ["Jobs of day 3"]]


async def test_a_feed_that_is_cut_off_decides_nothing(board: Board):
    others = [entry(f"o{n}", f"{LINK}{n}", guid=f"g{min(n, 4)}") for n in range(6)]
    known, new = (entry("Python dev", f"{LINK}python-dev-acm{end}", guid=end) for end in "ea")
    whole = rss(new, *others[:5], known)
    await board.round(rss(*others[:5], known))

    half = rss(new, *others, known)
    cut = half[: half.rindex("<item>") + 20]

    assert await board.rounds(cut, whole, whole) == [["o5"], ["Python dev"], []]
    assert await board.source("key_rule") == "id"


async def test_links_alone_are_keys(board: Board):
    rounds = [rss(*(entry(f"T{n}", f"{LINK}{n}", at=NOW + h * HOUR) for n in range(3))) for h in range(3)]

    assert await board.rounds(*rounds) == [[], [], []]


async def test_one_link_for_all_hides_nothing(board: Board):
    with_ids = [entry(f"T{n}", LINK, guid=f"g{n}") for n in range(6)]

    assert await board.rounds(rss(*with_ids[:5]), rss(*with_ids)) == [[], ["T5"]]


async def test_one_link_for_all_and_no_ids_are_told_apart_by_titles(board: Board):
    without = [entry(f"T{n}", LINK) for n in range(6)]

    assert await board.rounds(rss(*without[:5]), rss(*without), rss(without[5])) == [[], ["T5"], []]
    assert await board.source("key_rule") == "link_title"


async def test_a_rule_that_proves_useless_is_changed_and_makes_nothing_new(board: Board, caplog: Any):
    before = [entry(f"T{n}", f"{LINK}{n}", guid=f"g{n}") for n in range(8)]
    after = [entry(f"T{n}", f"{LINK}{n}", guid="0") for n in range(9)]

    assert await board.rounds(rss(*before), rss(*after), rss(*after), rss(*before)) == [[], ["T8"], [], []]
    assert await board.source("key_rule") == "link"
    assert await board.alerts() == []
    assert "keys of source changed" in caplog.text


async def test_one_of_two_that_shared_an_id_is_not_new_when_it_stands_alone(board: Board):
    many = [entry(f"T{n}", f"{LINK}{n}", guid=f"g{max(n, 1)}") for n in range(30)]

    assert await board.rounds(rss(*many), rss(*many[1:]), rss(*many[:1], *many[2:])) == [[], [], []]


async def test_ids_that_are_others_each_time_are_seen_through(board: Board):
    rounds = [rss(*(entry(f"T{n}", f"{LINK}{n}", guid=f"{h}-{n}") for n in range(9 + (h == 4)))) for h in range(5)]

    assert await board.rounds(*rounds) == [[], [], [], [], ["T9"]]
    assert await board.source("key_rule") == "link"
    assert await board.alerts() == []


async def test_two_openings_under_one_title_are_two(board: Board):
    first, second = (entry("Dev, Acme", f"{LINK}{n}", guid=f"REQ-{n}", at=NOW - HOUR) for n in (1, 2))

    assert await board.rounds(rss(), rss(first, second), rss(first), rss(second)) == [
        [],
        ["Dev, Acme"] * 2,
        [],
        [],
    ]


async def test_of_copies_that_differ_in_tracking_one_is_told(board: Board):
    copies = ["9?utm_source=a", "9?utm_source=b&x=1", "9?x=1&fbclid=q"]

    assert await board.rounds(rss(), rss(*(entry("T", LINK + copy) for copy in copies))) == [[], ["T", "T"]]
    links = await board.sql.fetch("SELECT key, link FROM wakebell.items ORDER BY key")
    assert [(row["key"], row["link"]) for row in links] == [
        (LINK + "9", LINK + copies[0]),
        (LINK + "9?x=1", LINK + copies[1]),
    ]


@with_options(r"id_regex = '(\d+)$'")
async def test_an_id_within_the_link_is_the_key(board: Board):
    one = entry("Web dev", "https://th.host.test/jobs/view/web-dev-4455")
    other = entry("Web dev!", "https://www.host.test/jobs/view/4455", guid="x")

    assert await board.rounds(rss(), rss(one, other), rss(other), rss(one)) == [[], ["Web dev"], [], []]


@with_options('key = "title+date"')
async def test_a_key_that_a_person_has_made_is_the_key(board: Board):
    rounds = [rss(*(entry(f"T{n}", f"{LINK}p?v={h}{n}", at=NOW - 9 * DAY) for n in range(9))) for h in range(3)]

    assert await board.rounds(*rounds, rss(entry("T0", LINK, at=NOW))) == [[], [], [], ["T0"]]
    assert await board.alerts() == []


# --------------------------------------------------------------------------------------------------------- the brake


TITLES = [f"Gig {letter}" for letter in "abcdefghijklmnopqrst"]


def tokens(salt: str, titles: Sequence[str] = TITLES) -> list[str]:
    return [entry(title, f"https://board.example/p?id={n}&v={salt}{n}") for n, title in enumerate(titles)]


async def test_links_that_change_each_time_tell_nothing_and_open_one_alert(board: Board):
    rounds = [rss(*tokens(salt)) for salt in "abcd"]

    assert await board.rounds(*rounds) == [[], [], [], []]
    assert await board.alerts() == [("source_unstable:board", True)]
    assert await board.source("state") == "unstable"
    assert board.ctx.tally.errors == ["source board is unstable: nothing of it is told"]
    told = await board.sql.fetchval("SELECT reason FROM wakebell.alerts")
    assert "ignore_params" in told
    assert "hush" not in told


async def test_a_source_that_is_stable_again_tells_what_was_held(board: Board):
    await board.round(rss(*tokens("a")))
    new = entry("new", "https://board.example/p?id=n&v=1")

    held = await board.round(rss(new, *tokens("b")[:19]), etag='"1"')
    assert (held, await board.source("etag")) == ([], None)

    assert await board.round(rss(new, *tokens("b")[:19]), etag='"1"') == ["new"]
    assert await board.alerts() == [("source_unstable:board", False)]
    assert await board.source("state") == "ok"


@with_options('ignore_params = ["v"]')
async def test_a_parameter_that_is_ignored_keeps_the_key(board: Board):
    rounds = [rss(*tokens(salt)) for salt in "abc"]

    assert await board.rounds(*rounds) == [[], [], []]
    assert await board.alerts() == []


async def test_what_the_release_before_has_kept_is_marked_by_the_next_round(board: Board, sql: asyncpg.Connection):
    await board.rounds(rss(*tokens("a")), rss(*tokens("b")))
    await sql.execute("UPDATE wakebell.items SET link_mark = NULL, title_mark = NULL")

    assert await board.rounds(rss(*tokens("b")), rss(*tokens("c"))) == [[], []]


# ----------------------------------------------------------------------------------------------------------- blind


async def test_a_feed_that_never_had_an_item_is_well(board: Board):
    assert await board.rounds(rss(), rss(), rss(), rss()) == [[], [], [], []]

    assert (await board.source("state"), await board.alerts()) == ("ok", [])
    assert board.ctx.tally.status == "ok"


async def test_a_feed_that_lists_nothing_any_more_is_told_once_at_the_third_round_and_once_when_it_does(board: Board):
    full = rss(entry("T", LINK + "1"))
    await board.round(full, etag='"full"')

    assert await board.rounds(rss(), rss()) == [[], []]
    assert await board.alerts() == []
    assert await board.rounds(rss(), rss()) == [[], []]
    assert await board.alerts() == [("source_blind:board", True)]
    assert await board.source("empty_rounds") == 4

    assert await board.round(full, etag='"full"') == [], "a 304: it lists again what it did"
    assert await board.alerts() == [("source_blind:board", False)]
    assert board.ctx.tally.status == "ok"


async def test_rounds_that_list_nothing_age_nothing(board: Board):
    full = rss(entry("T", LINK + "1"))
    await board.round(full)
    await board.passed(days=99)

    await board.rounds(rss(), rss(), rss(), rss())
    await board.ctx.stores.items.forget(keep=45 * DAY, most=10)

    assert await board.round(full) == []


@pytest.mark.parametrize(
    ("options", "at"), [("zero_alert_after = 1", 1), ("zero_alert_after = 5", 5), ("zero_alert_after = 0", None)]
)
async def test_after_how_many_rounds_is_the_persons_choice(board: Board, at: int | None):
    await board.round(rss(entry("T", LINK + "1")))
    opened = []
    for number in range(1, 7):
        await board.round(rss())
        opened += [number] if await board.alerts() else []

    assert opened[:1] == ([at] if at else [])


def page(*titles: str, css: str = "job") -> str:
    jobs = "".join(f'<li class="{css}"><a href="/{title}">{title}</a></li>' for title in titles)
    return f"<!doctype html><html><body><h1>Jobs</h1><ul>{jobs}</ul></body></html>"


@with_options(PAGE)
async def test_a_page_whose_list_has_another_name_is_blind_at_the_third_round(board: Board):
    await board.round(page("a", "b"))

    assert await board.rounds(*[page("a", "b", css="gig")] * 2) == [[], []]
    assert await board.alerts() == []
    await board.round(page("a", "b", css="gig"))
    assert await board.alerts() == [("source_blind:board", True)]

    assert await board.round(page("a", "b", "c")) == ["c"]
    assert await board.alerts() == [("source_blind:board", False)]


@with_options(PAGE)
async def test_a_page_without_a_list_is_no_first_round(board: Board):
    assert await board.rounds(page(), page("a"), page("a", "b")) == [[], [], ["b"]]
    assert await board.source("primed_at") is not None


@with_options(PAGE, 'empty = "p.none"')
async def test_a_page_that_says_that_there_is_nothing_is_well(board: Board):
    nothing = '<!doctype html><html><body><p class="none">No jobs</p></body></html>'

    assert await board.rounds(page("a"), *[nothing] * 4, page("a", "b")) == [[], [], [], [], [], ["b"]]
    assert await board.alerts() == []


@pytest.mark.parametrize(
    ("document", "reason"),
    [
        ("", "nothing at all"),
        ("<!doctype html><title>Just a moment</title>Just a moment...", "challenge page"),
        ("<!doctype html><title>Home</title>", "a web page, not a feed"),
        ("<rss><channel><item><title>half", "ends in the middle"),
    ],
)
async def test_what_is_no_feed_fails_with_a_reason_and_leaves_all_that_was_seen(
    board: Board, document: str, reason: str
):
    await board.round(rss(entry("a", guid="a")), etag='"1"')
    before = [await board.source(column) for column in ("etag", "primed_at", "last_round_at", "last_success_at")]

    for _ in range(3):
        assert await board.round(document) == []

    after = [await board.source(column) for column in ("etag", "primed_at", "last_round_at", "last_success_at")]
    assert after == before
    assert reason in await board.source("last_error")
    assert await board.alerts() == [("source_failing:board", True)]
    assert "hush" not in await board.sql.fetchval("SELECT reason FROM wakebell.alerts")

    assert await board.round(rss(entry("a", guid="a"), entry("b", guid="b"))) == ["b"]
    assert await board.alerts() == [("source_failing:board", False)]


@with_options("expect_news_days = 14")
async def test_a_source_without_news_for_too_long_is_silent_until_it_has_some(board: Board):
    listed = rss(entry("a", LINK + "1", guid="a"))
    await board.round(listed, etag='"1"')
    await board.passed(days=13)
    await board.round(listed, etag='"1"')
    assert await board.alerts() == []

    await board.passed(days=2)
    await board.round(listed, etag='"1"')  # a 304 says nothing new either
    await board.round(rss(entry("a!", LINK + "1", guid="a2")))  # nor does an edit
    assert await board.alerts() == [("source_silent:board", True)]
    assert await board.sql.fetchval("SELECT failures FROM wakebell.alerts") == 15

    assert await board.round(rss(entry("b", LINK + "2", guid="b"))) == ["b"]
    assert await board.alerts() == [("source_silent:board", False)]


async def test_a_source_that_fails_is_no_news_about_its_state(board: Board):
    await board.round(rss(entry("a", guid="a")))
    await board.rounds(rss(), rss(), rss())

    await board.round("", status=500)

    assert await board.alerts() == [("source_blind:board", True)]


# ------------------------------------------------------------------------------------------------------------ merging


@with_options("merge_days = 3", OTHER)
async def test_one_job_on_two_boards_is_told_once_and_both_links_are_kept(board: Board):
    await board.round(rss())
    await board.round(rss(), source="other")

    assert await board.round(rss(entry("Dev, Acme", LINK + "1", guid="1"))) == ["Dev, Acme"]
    two = rss(entry("DEV - Acme", "https://other.example/x", guid="x"), entry("Ops", guid="o"))
    assert await board.round(two, source="other") == ["Ops"]
    assert await board.sql.fetchval("SELECT count(DISTINCT link) FROM wakebell.items") == 2

    await board.passed(days=4)
    late = rss(entry("Dev (Acme)", "https://other.example/y", guid="y"))
    assert await board.round(late, source="other") == ["Dev (Acme)"]


@with_options("", OTHER)
async def test_a_board_that_does_not_say_so_merges_with_none(board: Board):
    await board.round(rss())
    await board.round(rss(), source="other")
    listed = rss(entry("Dev, Acme", guid="1"))

    assert await board.round(listed) == ["Dev, Acme"]
    assert await board.round(listed, source="other") == ["Dev, Acme"]
