"""From a JSON API and from a page to a phone: what is new, once, and by its price."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

from tests.fakes.http_server import HttpServer, Request, send
from tests.flow.stage import Stage

SOURCES = """
[sources.gigs]
kind = "json"
url = "{url}/gigs?key=hush"
items = "data"
key = "id"
title = "name"
link = "https://gigs.example/{{id}}"
fields = {{ budget = "pay" }}
next = "next"
max_pages = 2

[sources.board]
kind = "html"
url = "{url}/board"
items = "li"
title = "b"
link = "a"
fields = {{ budget = "i" }}
"""

SUBSCRIPTION = """
[subscriptions.all]
min = { budget = 6000 }
to = ["me"]
"""


class Board(HttpServer):
    """A JSON API of two pages, and a page in Thai's own encoding."""

    def __init__(self) -> None:
        super().__init__()
        self.gigs: list[list[dict[str, Any]]] = [[], []]
        self.listed: list[tuple[str, str]] = []

    async def answer(self, request: Request, wire: asyncio.StreamWriter) -> None:
        if request.path == "/board":
            items = "".join(f"<li><b>{title}</b><a href='/{title}'>x</a><i>{pay}</i>" for title, pay in self.listed)
            page = f"<!doctype html><meta charset=windows-874><ul>{items}</ul>"
            await send(wire, 200, page.encode("cp874"), headers={"Content-Type": "text/html"})
            return
        first = request.path == "/gigs?key=hush"
        answer = {"data": self.gigs[0 if first else 1], "next": "/gigs?page=2" if first else None}
        await send(wire, 200, json.dumps(answer).encode())


@pytest.fixture
async def board() -> AsyncIterator[Board]:
    async with Board() as served:
        yield served


async def test_what_is_new_on_either_is_told_once_when_it_pays_enough(stage: Stage, board: Board):
    board.gigs = [[{"id": 1, "name": "Old", "pay": 9000}], [{"id": 2, "name": "Older", "pay": 9000}]]
    board.listed = [("งานเก่า", "฿9,000")]
    stage.telling = stage.telling.replace('\n[subscriptions.all]\nto = ["me"]\n', "")
    stage.more = SOURCES.format(url=board.url) + SUBSCRIPTION
    service = await stage.serve()

    first = await service.tick()
    board.gigs[0].insert(0, {"id": 3, "name": "Bot", "pay": "$5k-8k"})
    board.gigs[1].append({"id": 4, "name": "Cheap", "pay": "$5,000"})
    board.listed.insert(0, ("งานใหม่", "๕,๐๐๐-๘,๐๐๐ บาท"))
    await stage.make_due()
    second = await service.tick()
    await stage.make_due()
    await service.tick()

    assert first["sources"] | {"fetched": 2, "primed": 2, "new_items": 3} == first["sources"]
    assert second["sources"] | {"fetched": 2, "new_items": 3, "matched_items": 2} == second["sources"]
    assert stage.line.count("Bot", "งานใหม่", "Cheap", "Old") == {"Bot": 1, "งานใหม่": 1, "Cheap": 0, "Old": 0}
    assert "https://gigs.example/3" in "".join(text for push in stage.line.tries for text in push.texts)


async def test_a_failure_on_the_second_page_tells_nothing_of_the_first(stage: Stage, board: Board):
    board.gigs = [[{"id": 1, "name": "Old", "pay": 9000}], []]
    board.listed = [("งานเก่า", "฿9,000")]
    stage.more = SOURCES.format(url=board.url)
    service = await stage.serve()
    await service.tick()

    board.gigs[0].insert(0, {"id": 3, "name": "Bot", "pay": 9000})
    board.gigs[1] = None  # type: ignore[call-overload] # no list any more
    board.listed.clear()
    await stage.make_due()
    failed = await service.tick()

    assert failed["sources"] | {"failed": 1, "new_items": 0} == failed["sources"]
    assert failed["errors"] == ["source gigs failed"], "a board that lists nothing is to be wondered about"
    told = (await stage.source("gigs"))["last_error"]
    assert told.startswith("page 2: items finds no list in the answer of 127.0.0.1")
