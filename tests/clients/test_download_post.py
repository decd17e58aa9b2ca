"""What is asked for with a body."""

from __future__ import annotations

import httpx
import pytest

from app.clients.download import Downloaded, download
from app.domain.errors import PermanentFailure

URL = "https://e.test/search"


async def post(*answers: httpx.Response, url: str = URL) -> tuple[Downloaded | None, list[httpx.Request]]:
    seen: list[httpx.Request] = []
    waiting = list(answers)

    def answer(request: httpx.Request) -> httpx.Response:
        seen.append(request)
        return waiting.pop(0)

    async with httpx.AsyncClient(transport=httpx.MockTransport(answer)) as http:
        got = await download(http, url, headers={"Content-Type": "application/json"}, body=b'{"key": "hush"}')
    return got, seen


def moved(to: str, status: int) -> httpx.Response:
    return httpx.Response(status, headers={"Location": to})


async def test_a_body_is_posted_with_its_length():
    got, [request] = await post(httpx.Response(200, content=b"{}"))

    assert got is not None
    assert got.body == b"{}"
    assert (request.method, request.content, request.headers["content-length"]) == ("POST", b'{"key": "hush"}', "15")
    assert request.headers["content-type"] == "application/json"


@pytest.mark.parametrize("status", [301, 302, 307, 308])
async def test_a_moved_address_is_posted_to_again(status: int):
    _, requests = await post(moved("/find", status), httpx.Response(200))

    assert [(request.method, request.content) for request in requests] == [("POST", b'{"key": "hush"}')] * 2


async def test_see_other_is_asked_for_without_the_body():
    _, requests = await post(moved("https://other.test/", 303), httpx.Response(200))

    assert [(request.method, request.content) for request in requests[1:]] == [("GET", b"")]


@pytest.mark.parametrize("to", ["https://other.test/", "http://e.test/search", "https://e.test:8443/search"])
async def test_another_host_is_not_told_of_the_body(to: str):
    with pytest.raises(PermanentFailure, match=r"e\.test redirects to another host, which is not told of the body"):
        await post(moved(to, 307), httpx.Response(200))
