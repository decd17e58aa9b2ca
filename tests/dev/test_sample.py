from __future__ import annotations

import asyncio
import logging

import feedparser
import httpx
import pytest

from app.dev.sample import PORT, SHOWN, SampleSource


class Clock:
    def __init__(self, now: float = 1_796_029_622.5) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now


def ids(source: SampleSource) -> list[str]:
    return [entry.id for entry in feedparser.parse(source.feed()).entries]


async def get(source: SampleSource, **headers: str) -> httpx.Response:
    async with httpx.AsyncClient(trust_env=False) as http:
        return await http.get(source.url, headers={name.replace("_", "-"): value for name, value in headers.items()})


async def test_a_feed_reader_finds_titles_links_ids_and_dates():
    async with SampleSource(port=0, clock=Clock()) as source:
        answer = await get(source)
    feed = feedparser.parse(answer.content)
    assert answer.headers["Content-Type"] == "application/rss+xml; charset=utf-8"
    assert not feed.bozo
    assert len(feed.entries) == SHOWN
    assert all({"title", "link", "id", "published"} <= entry.keys() for entry in feed.entries)
    assert len({entry.title for entry in feed.entries}) == SHOWN
    assert any("บอท" in entry.title for entry in feed.entries)


async def test_an_unchanged_feed_is_answered_with_304_and_a_changed_one_is_not():
    async with SampleSource(port=0, every_seconds=None) as source:
        etag = (await get(source)).headers["ETag"]
        unchanged = await get(source, If_None_Match=etag)
        assert (unchanged.status_code, unchanged.content) == (304, b"")
        source.publish()
        assert (await get(source, If_None_Match=etag)).status_code == 200


def test_a_new_gig_comes_at_each_step_of_the_clock():
    clock = Clock()
    source = SampleSource(every_seconds=20, clock=clock)
    before = ids(source)
    clock.now += 20
    after = ids(source)
    assert after[1:] == before[:-1]
    assert after[0] not in before


def test_publish_adds_one_at_once():
    source = SampleSource(every_seconds=None, clock=Clock())
    first, second = source.publish(), source.publish()
    assert ids(source) == [second.id, first.id]


def test_a_restart_shows_the_same_gigs_and_gives_no_id_twice():
    clock = Clock()
    first = SampleSource(clock=clock)
    second = SampleSource(clock=clock)
    assert ids(first) == ids(second)
    published = {first.publish().id for _ in range(3)}
    clock.now += 1
    assert second.publish().id not in published | set(ids(first))


async def test_a_taken_port_is_told_and_another_is_chosen(caplog: pytest.LogCaptureFixture):
    with caplog.at_level(logging.WARNING):
        async with SampleSource(port=0) as first, SampleSource(port=first.port) as second:
            assert second.port != first.port
            assert (await get(second)).status_code == 200
    assert f"port {first.port} is taken: the sample source is at {second.url}" in caplog.text


def test_its_port_is_the_same_at_each_run():
    assert SampleSource().url == f"http://127.0.0.1:{PORT}/gigs.xml"


async def test_the_links_of_the_feed_lead_somewhere():
    async with SampleSource(port=0) as source, httpx.AsyncClient(trust_env=False) as http:
        link = feedparser.parse((await get(source)).content).entries[0].link
        assert (await http.get(link)).status_code == 200


@pytest.mark.parametrize(("method", "path", "status"), [("GET", "/", 404), ("POST", "/gigs.xml", 405)])
async def test_nothing_else_is_served(method: str, path: str, status: int):
    async with SampleSource(port=0) as source, httpx.AsyncClient(trust_env=False) as http:
        answer = await http.request(method, f"http://127.0.0.1:{source.port}{path}")
    assert answer.status_code == status


async def test_a_caller_that_says_nothing_does_not_hold_up_the_end():
    async with SampleSource(port=0) as source:
        _, writer = await asyncio.open_connection("127.0.0.1", source.port)
        await get(source)
    writer.close()


async def test_an_answer_to_head_has_no_body():
    async with SampleSource(port=0) as source, httpx.AsyncClient(trust_env=False) as http:
        answer = await http.head(source.url)
    assert answer.content == b""
    assert int(answer.headers["Content-Length"]) > 0
