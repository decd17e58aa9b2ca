"""A source that is broken fails alone, says why, and tells what is new once it is well."""

from __future__ import annotations

import pytest

from tests.fakes.feeds import Broken
from tests.flow.stage import Stage

REASONS: dict[Broken, str] = {
    "html": "web page, not a feed",
    "empty": "nothing at all",
    "huge": "more than 5 MiB",
    "cut": "broke off in the middle",
    "error": "500",
}


@pytest.mark.parametrize("broken", REASONS)
async def test_a_broken_source_fails_alone_and_tells_only_what_is_new_once_it_is_well(stage: Stage, broken: Broken):
    sick = stage.feeds.add("sick", "Cook")
    well = stage.feeds.add("well", "Gardener")
    service = await stage.serve()
    await service.tick()
    seen = await items(stage)
    sick.broken = broken
    well.add("Driver")
    await stage.make_due()

    summary = await service.tick()

    assert summary["status"] == "partial"
    assert summary["sources"] | {"due": 2, "fetched": 1, "failed": 1, "new_items": 1} == summary["sources"]
    assert summary["errors"] == ["source sick failed"]
    assert stage.line.count("Driver", "Cook", "Gardener") == {"Driver": 1, "Cook": 0, "Gardener": 0}
    state = await stage.source("sick")
    assert REASONS[broken] in state["last_error"]
    assert state["failures"] == 1
    assert [row for row in await items(stage) if row["source"] == "sick"] == [r for r in seen if r["source"] == "sick"]

    sick.broken = None
    sick.add("Painter")
    await stage.make_due()
    summary = await service.tick()

    assert summary["status"] == "ok"
    assert stage.line.count("Painter", "Cook", "Driver") == {"Painter": 1, "Cook": 0, "Driver": 1}
    state = await stage.source("sick")
    assert (state["last_error"], state["failures"]) == (None, 0)


async def test_a_source_that_hangs_keeps_nobody_waiting_and_fails_alone(stage: Stage):
    hanging = stage.feeds.add("hanging", "Cook")
    hanging.url = hanging.url.replace("127.0.0.1", "localhost")  # another host, as far as anybody knows
    well = stage.feeds.add("well", "Gardener")
    service = await stage.serve()
    await service.tick()
    hanging.broken = "hang"
    well.add("Driver")
    await stage.make_due()

    summary = await service.tick(budget=3)

    assert summary["duration_ms"] < 8000  # the budget and five seconds more
    assert summary["sources"] | {"fetched": 1, "failed": 1} == summary["sources"]
    assert summary["errors"] == ["source hanging failed"]
    assert "did not finish its answer" in (await stage.source("hanging"))["last_error"]
    assert stage.line.count("Driver") == {"Driver": 1}

    hanging.broken = None
    hanging.add("Painter")
    await stage.make_due()
    await service.tick()

    assert stage.line.count("Painter", "Cook") == {"Painter": 1, "Cook": 0}


async def test_a_source_that_is_broken_from_the_start_is_primed_by_its_first_good_round(stage: Stage):
    feed = stage.feeds.add("jobs", "Cook", broken="error")
    service = await stage.serve()
    assert (await service.tick())["sources"]["failed"] == 1
    feed.broken = None
    await stage.make_due()

    summary = await service.tick()

    assert summary["sources"]["primed"] == 1
    assert stage.line.tries == []


async def test_an_etag_of_a_broken_answer_is_not_kept(stage: Stage):
    feed = stage.feeds.add("jobs", "Cook")
    service = await stage.serve()
    await service.tick()
    etag = feed.etag
    feed.broken = "html"
    await stage.make_due()

    await service.tick()

    assert (await stage.source("jobs"))["etag"] == etag


async def items(stage: Stage) -> list[dict[str, object]]:
    found = await stage.sql.fetch("SELECT * FROM wakebell.items ORDER BY id")
    return [dict(row) for row in found]
