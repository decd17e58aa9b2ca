from __future__ import annotations

from collections.abc import Callable

import httpx
import pytest

from app.clients.download import Downloaded, download
from app.clients.visits import Visit
from app.domain.errors import TemporaryFailure
from app.domain.manners import Answer

Answering = Callable[[httpx.Request], httpx.Response]

OLD = "https://old.test/feed?key=hush"
NEW = "https://new.test/feed"


class Web:
    """Everything outside; keeps what it was asked for."""

    def __init__(self, answer: Answering) -> None:
        self.asked: list[httpx.Request] = []
        self._answer = answer

    def __call__(self, request: httpx.Request) -> httpx.Response:
        self.asked.append(request)
        return self._answer(request)

    async def visit(self, url: str = OLD, *, moved_to: str | None = None) -> tuple[Visit, Downloaded | None]:
        headers = {"authorization": "Bearer hush", "user-agent": "Wakebell"}
        async with (
            httpx.AsyncClient(transport=httpx.MockTransport(self)) as http,
            Visit(http, address=url, moved_to=moved_to) as visit,
        ):
            return visit, await download(visit.http, url, headers=headers)


async def test_every_answer_of_a_visit_is_known_afterwards():
    def answer(request: httpx.Request) -> httpx.Response:
        if request.url.host == "old.test":
            return httpx.Response(301, headers={"Location": "//new.test/feed#top"})
        return httpx.Response(200, headers={"Cache-Control": "max-age=60"}, content=b"<rss/>")

    visit, got = await Web(answer).visit()

    assert got is not None
    assert got.body == b"<rss/>"
    assert [(a.url, a.status, a.location) for a in visit.answers] == [(OLD, 301, NEW), (NEW, 200, None)]
    assert visit.answers[-1].headers["cache-control"] == "max-age=60"
    assert visit.reached


async def test_a_remembered_redirect_is_followed_without_asking_and_tells_the_new_host_no_secret():
    web = Web(lambda _: httpx.Response(200, content=b"<rss/>"))

    visit, got = await web.visit(moved_to=NEW)

    assert got is not None
    assert got.url == NEW
    [request] = web.asked
    assert str(request.url) == NEW
    assert "authorization" not in request.headers
    assert visit.answers[0] == Answer(url=OLD, status=308, headers={"location": NEW}, location=NEW)


async def test_a_name_and_password_in_the_address_do_not_keep_it_from_being_remembered():
    web = Web(lambda _: httpx.Response(200, content=b"<rss/>"))

    await web.visit("https://me:hush@old.test/feed", moved_to=NEW)

    assert [str(request.url) for request in web.asked] == [NEW]


async def test_nothing_that_answers_is_nothing_reached():
    def refuse(request: httpx.Request) -> httpx.Response:
        raise httpx.ConnectError("refused")

    web = Web(refuse)
    async with httpx.AsyncClient(transport=httpx.MockTransport(web)) as http, Visit(http) as visit:
        with pytest.raises(TemporaryFailure, match="could not be reached"):
            await download(visit.http, OLD, headers={})

    assert not visit.reached
    assert visit.answers == []


async def test_what_is_posted_is_never_taken_for_a_move():
    web = Web(lambda _: httpx.Response(301, headers={"Location": NEW}))
    async with (
        httpx.AsyncClient(transport=httpx.MockTransport(web)) as http,
        Visit(http, address=OLD, moved_to=NEW) as visit,
    ):
        await visit.http.post(OLD, content=b"{}")

    assert [str(request.url) for request in web.asked] == [OLD]
    assert visit.answers[0].location is None


async def test_cookies_of_one_visit_are_not_sent_by_another():
    def answer(request: httpx.Request) -> httpx.Response:
        return httpx.Response(200, headers={"Set-Cookie": "session=hush"}, content=b"ok")

    web = Web(answer)
    async with httpx.AsyncClient(transport=httpx.MockTransport(web)) as http:
        for _ in range(2):
            async with Visit(http) as visit:
                await visit.http.get(OLD)

    assert ["cookie" in request.headers for request in web.asked] == [False, False]
