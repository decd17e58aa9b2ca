from __future__ import annotations

import json
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import asyncpg
import pytest

from app import pages
from app.domain.alerts import KINDS
from app.pages import doors, rendering, words
from tests.api.doors import NOWHERE
from tests.pages.visits import EVIL, LONG, change, logged_in, page_service, something_of_everything, visiting

PAGES = ("/", "/sources", "/messages", "/jobs", "/jobs?own=true", "/queues", "/schedules", "/bookings")


class Seen(HTMLParser):
    """What a browser makes of it: its elements, and where the text is that a stranger wrote."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.apart: list[bool] = []
        self._open: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}
        if tag not in {"meta", "link", "input", "img", "line", "rect"}:
            self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        while self._open and self._open.pop() != tag:
            pass

    def handle_data(self, data: str) -> None:
        if "\u202e" in data:
            self.apart.append("bdi" in self._open)


def test_every_path_has_one_door():
    reads = {path for path, methods in pages.PATHS.items() if methods == pages.READ and not path.startswith("/static")}
    changes = {path for path, methods in pages.PATHS.items() if methods == pages.CHANGE}

    assert set(doors.READS) == reads
    assert set(doors.CHANGES) == changes - {"/login", "/logout"}
    assert set(words.ALERT_WORDS) == set(KINDS)


def test_a_start_imports_no_template_engine():
    code = "import sys, app.main; print([n for n in sys.modules if n.startswith(('jinja2', 'app.pages.'))])"

    done = subprocess.run([sys.executable, "-c", code], text=True, capture_output=True, check=True)

    assert done.stdout == "[]\n"


async def test_every_page_is_shown_of_nothing(tmp_path: Path, database_url: str):
    async with logged_in(page_service(tmp_path, database_url)) as client:
        for path in PAGES:
            answer = await client.get(path)
            assert answer.status_code == 200, answer.text
            assert answer.headers["content-type"] == "text/html; charset=utf-8"
            assert {name: answer.headers[name] for name in rendering.HEADERS} == rendering.HEADERS
            assert (await client.head(path)).status_code == 200
        assert "Nobody has rung yet" in (await client.get("/")).text


async def test_the_first_page_says_what_is_and_what_is_wrong(
    tmp_path: Path, database_url: str, sql: asyncpg.Connection
):
    service = page_service(tmp_path, database_url)
    ids = await something_of_everything(sql, service, text="the shop is closed")
    async with logged_in(service) as client:
        told = plain((await client.get("/")).text)

    for sentence in (
        "Something needs a look",
        "This replica is awake since",
        "1 alert is open.",
        "Sources with trouble: board.",
        "4 min ago; one is expected every 15 min",
        "due in 11 min",
        "Jobs were given up ✕ open the shop is closed",
        f"Job {ids['failed']} the shop is closed ✕ failed",
        "163 of 200 messages of this month are spent",
        "New items, by the hour over three days:",
        "▲ partial",
        "source board failed",
    ):
        assert sentence in told, sentence


async def test_lists_are_filtered_and_go_on(tmp_path: Path, database_url: str, sql: asyncpg.Connection):
    service = page_service(tmp_path, database_url)
    ids = await something_of_everything(sql, service)
    await sql.execute("INSERT INTO wakebell.jobs (type, queue) SELECT 'greet', 'mails' FROM generate_series(1, 30)")
    async with logged_in(service) as client:
        first = await client.get("/jobs?status=pending&type=greet&queue=&own=")
        [older] = re.findall(r'rel="next" href="([^"]+)"', first.text)
        second = await client.get(older.replace("&amp;", "&"))
        failed = await client.get("/jobs?status=failed")
        sent = await client.get("/messages?status=sent&recipient=inbox&channel=inbox")
        refused = [await client.get(path) for path in ("/jobs?status=lost", "/messages?status=lost", "/jobs?type=%00")]

    assert (len(found_jobs(first.text)), len(found_jobs(second.text))) == (25, 5)
    assert found_jobs(failed.text) == [ids["failed"]]
    assert "gigs is watched; 20 items are known." in sent.text
    assert "ordinary" not in sent.text
    assert [answer.status_code for answer in refused] == [422] * 3


async def test_what_strangers_write_is_shown_as_text(tmp_path: Path, database_url: str, sql: asyncpg.Connection):
    service = page_service(tmp_path, database_url)
    ids = await something_of_everything(sql, service, text=EVIL)
    async with logged_in(service) as client:
        for path in (*PAGES, f"/jobs/{ids['failed']}", f"/messages/{ids['message']}"):
            text = (await client.get(path)).text
            seen = Seen(text)
            assert text.count("<script") == 1, "our own"
            assert not {name for name in seen.attributes if name.startswith("on")}
            assert "style" not in seen.tags | seen.attributes
            assert all(seen.apart), f"{path} lets a direction out"
            assert seen.apart or path in {"/schedules", "/sources", "/jobs?own=true"}, path
            assert "{{ 7 * 7 }}" in text or path == "/schedules"


async def test_what_is_long_is_cut_and_the_rest_is_behind_it(
    tmp_path: Path, database_url: str, sql: asyncpg.Connection
):
    service = page_service(tmp_path, database_url)
    ids = await something_of_everything(sql, service, text=LONG)
    async with logged_in(service) as client:
        job = (await client.get(f"/jobs/{ids['failed']}")).text
        listed = (await client.get("/jobs")).text

    assert "… all 10,0" in listed
    assert job.count("<details") >= 2
    assert "long long" in listed.split("</summary>")[1]


async def test_a_payloads_credentials_are_masked_as_the_api_does_it(
    tmp_path: Path, database_url: str, sql: asyncpg.Connection
):
    job_id = await sql.fetchval(
        "INSERT INTO wakebell.jobs (type, payload) VALUES ('call_url', "
        '\'{"url": "https://a.example", "headers": {"Authorization": "Bearer of-somebody"}}\') RETURNING id'
    )
    async with logged_in(page_service(tmp_path, database_url)) as client:
        for path in ("/jobs", f"/jobs/{job_id}"):
            answer = await client.get(path)
            assert answer.status_code == 200
            assert "of-somebody" not in answer.text


async def test_those_of_what_follows_are_masked_too(tmp_path: Path, database_url: str, sql: asyncpg.Connection):
    call = {
        "type": "call_url",
        "payload": {"url": "https://u:of-a-user@a", "headers": {"Authorization": "of-somebody"}},
    }
    then = [{**call, "then": [call]}, "odd", {"type": "x", "payload": 5}]
    job_id = await sql.fetchval(
        "INSERT INTO wakebell.jobs (type, then_jobs) VALUES ('mail', $1::jsonb) RETURNING id", json.dumps(then)
    )
    async with logged_in(page_service(tmp_path, database_url)) as client:
        answer = await client.get(f"/jobs/{job_id}")

    assert answer.status_code == 200
    assert "What follows" in answer.text
    assert "of-somebody" not in answer.text
    assert "of-a-user" not in answer.text


def test_no_more_of_a_value_is_written_than_is_shown():
    value: list[object] = [0] * 100_000
    for _ in range(190):
        value = [value]

    assert len(rendering.pretty(value)) < rendering.MOST_SHOWN + 1000


async def test_instants_without_end_are_told(tmp_path: Path, database_url: str, sql: asyncpg.Connection):
    job_id = await sql.fetchval("INSERT INTO wakebell.jobs (type, run_after) VALUES ('mail', 'infinity') RETURNING id")
    await sql.execute("INSERT INTO wakebell.queues (name, paused_until, pause_reason) VALUES ('q', 'infinity', 'so')")
    async with logged_in(page_service(tmp_path, database_url)) as client:
        told = [plain((await client.get(path)).text) for path in ("/jobs", f"/jobs/{job_id}", "/queues")]

    assert "runs never" in told[0]
    assert "Runs after never" in told[1]
    assert "Paused until somebody ends it: so" in told[2]


async def test_a_source_that_fails_is_a_good_preview(tmp_path: Path, database_url: str):
    async with logged_in(page_service(tmp_path, database_url)) as client:
        answer = await change(client, "/sources/preview", source="gigs")

    assert answer.status_code == 200
    assert "Nothing was written, and nothing sent." in answer.text
    assert "hidden-in-the-address" not in answer.text


async def test_a_database_that_is_away_is_said_in_words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    from app.stores import database

    monkeypatch.setattr(database, "CONNECT_WAITS", ())
    async with logged_in(page_service(tmp_path, NOWHERE)) as client:
        answer = await client.get("/")

    assert answer.status_code == 503
    assert answer.headers["retry-after"]
    assert "The database cannot be reached now." in answer.text


async def test_no_connection_is_open_when_a_page_has_left(tmp_path: Path, database_url: str, sql: asyncpg.Connection):
    service = page_service(tmp_path, database_url)
    async with logged_in(service) as client:
        for path in PAGES:
            await client.get(path)
            assert service.stores.database.pool.open == 0


async def test_files_are_kept_for_good_by_their_content(tmp_path: Path):
    async with visiting(page_service(tmp_path, NOWHERE)) as client:
        page = (await client.get("/")).text
        names = sorted(set(re.findall(r'"(/static/[^"]+)"', page)))
        for name in names:
            answer = await client.get(name)
            assert answer.status_code == 200
            assert answer.headers["cache-control"] == "public, max-age=31536000, immutable"
            assert answer.headers["x-content-type-options"] == "nosniff"
        older = await client.get("/static/0000/page.css")
        none = [await client.get(f"/static/0000/{name}") for name in ("page.py", "..%2f__init__.py", "login.html")]

    assert {name.rsplit("/", 1)[-1] for name in names} == set(rendering.KINDS)
    assert (older.status_code, older.headers["cache-control"]) == (200, "no-cache")
    assert [answer.status_code for answer in none] == [404] * 3


async def test_other_paths_are_still_problems_of_the_api(tmp_path: Path):
    async with visiting(page_service(tmp_path, NOWHERE)) as client:
        missing, wrong = await client.get("/nothing"), await client.post("/")

    assert (missing.status_code, wrong.status_code) == (404, 405)
    assert missing.headers["content-type"] == "application/problem+json"


def found_jobs(text: str) -> list[int]:
    return [int(found) for found in re.findall(r'<h2><a href="/jobs/([0-9]+)"', text)]


def plain(text: str) -> str:
    """Without its tags, in one line."""
    return " ".join(re.sub(r"<[^>]+>", " ", text).split()).replace(" .", ".").replace(" ;", ";").replace(" ,", ",")
