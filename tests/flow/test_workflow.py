"""The schedule's own shell rings the real service."""

from __future__ import annotations

from pathlib import Path

from tests.flow.service import SECRET
from tests.flow.stage import Stage
from tests.test_workflows import Runner

GREET = """
    from pydantic import BaseModel
    from app.domain.jobs import Done

    class Payload(BaseModel):
        pass

    async def handle(payload, ctx):
        return Done()
"""


async def test_the_workflow_rings_the_service(stage: Stage, tmp_path: Path):
    stage.feeds.add("rss_jobs", "Cook")
    service = await stage.serve()
    (tmp_path / "runner").mkdir()

    run = await Runner(tmp_path / "runner").run(f"http://127.0.0.1:{service.port}", f"{SECRET}\n")

    assert (run.status, [counts["sources"]["primed"] for counts in run.counts]) == (0, [1])


async def test_the_workflow_fails_with_another_secret(stage: Stage, tmp_path: Path):
    service = await stage.serve()
    (tmp_path / "runner").mkdir()

    run = await Runner(tmp_path / "runner").run(f"http://127.0.0.1:{service.port}", "another-secret-of-16")

    assert run.status == 1
    assert "HTTP 401: CRON_SECRET here is not the service's" in run.output
    assert "another-secret-of-16" not in run.output + run.summary


async def test_the_workflow_rings_until_the_jobs_are_done(stage: Stage, tmp_path: Path):
    stage.more = "[tick]\nmax_jobs = 2\n"
    stage.handler("greet", GREET)
    service = await stage.serve()
    for _ in range(5):
        await stage.enqueue("greet")
    (tmp_path / "runner").mkdir()

    run = await Runner(tmp_path / "runner").run(f"http://127.0.0.1:{service.port}", SECRET)

    assert run.status == 0
    assert [counts["jobs"]["remaining"] for counts in run.counts] == [3, 1, 0]
    assert await stage.sql.fetchval("SELECT count(*) FROM wakebell.jobs WHERE type = 'greet' AND status = 'done'") == 5
