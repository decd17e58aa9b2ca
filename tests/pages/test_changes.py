from __future__ import annotations

from pathlib import Path

import asyncpg

from app.pages import CHANGE, PATHS
from tests.pages.visits import change, form_token, logged_in, page_service, something_of_everything, visiting

CHANGED = """
SELECT md5(string_agg(told, '|')) FROM (
    SELECT (j.id, j.status, j.run_after, j.attempts)::text AS told FROM wakebell.jobs AS j
    UNION ALL SELECT (a.id, a.acknowledged_at)::text FROM wakebell.alerts AS a
    UNION ALL SELECT (m.pattern, m.until)::text FROM wakebell.mutes AS m
    UNION ALL SELECT (q.name, q.paused_until)::text FROM wakebell.queues AS q
    ORDER BY 1
) AS rows
"""


def forms(ids: dict[str, int]) -> dict[str, dict[str, str]]:
    """Each change by its path, with what its form has."""
    return {
        f"/alerts/{ids['alert']}/acknowledge": {},
        f"/alerts/{ids['alert']}/mute": {"for": "8h"},
        f"/jobs/{ids['failed']}/retry": {},
        f"/jobs/{ids['pending']}/cancel": {},
        "/queues/pause": {"queue": "mails", "reason": "the provider is down", "for": "1h"},
        "/queues/resume": {"queue": "letters"},
        "/sources/preview": {"source": "gigs"},
        "/logout": {},
    }


async def test_without_the_forms_token_nothing_is_changed(tmp_path: Path, database_url: str, sql: asyncpg.Connection):
    service = page_service(tmp_path, database_url)
    ids = await something_of_everything(sql, service)
    before = await sql.fetchval(CHANGED)
    async with logged_in(service) as client:
        token = await form_token(client)
        for path, fields in forms(ids).items():
            answers = [
                await client.post(path, data=fields),
                await client.post(path, data={**fields, "csrf": token[:-1] + ("0" if token[-1] != "0" else "1")}),
                await client.post(path, data={**fields, "csrf": "ก"}),
                await client.post(path, data={**fields, "csrf": token}, headers={"Sec-Fetch-Site": "cross-site"}),
                await client.post(path, data={**fields, "csrf": token}, headers={"Origin": "https://evil.example"}),
                await client.post(f"{path}?csrf={token}", data=fields),
            ]
            assert [answer.status_code for answer in answers] == [403] * 6, path
        assert (await client.get("/jobs")).status_code == 200, "still logged in"
    async with visiting(service) as stranger:
        for path, fields in forms(ids).items():
            assert (await stranger.post(path, data={**fields, "csrf": token})).status_code == 401, path

    assert await sql.fetchval(CHANGED) == before


async def test_what_is_asked_for_is_done_and_said(tmp_path: Path, database_url: str, sql: asyncpg.Connection):
    service = page_service(tmp_path, database_url)
    ids = await something_of_everything(sql, service)
    asked = {path: fields for path, fields in forms(ids).items() if path not in {"/logout", "/sources/preview"}}
    assert {path.split("/")[1] for path in asked} | {"login", "logout", "sources"} == {
        path.split("/")[1] for path, methods in PATHS.items() if methods == CHANGE
    }
    said = []
    async with logged_in(service) as client:
        for path, fields in asked.items():
            answer = await change(client, path, **fields)
            assert answer.status_code == 303, answer.text
            page = await client.get(answer.headers["location"])
            said.append(page.text.split('role="status">')[1].split("</p>")[0].split("</span>")[1])

    assert said == [
        "Taken on: it is not told again while it is open.",
        "Muted: it is recorded, and not told until then.",
        "The job is due again and runs with the next tick.",
        "The job is cancelled.",
        "The queue is paused. What runs may end.",
        "The queue goes on with the next tick.",
    ]
    assert await sql.fetchval("SELECT acknowledged_at IS NOT NULL FROM wakebell.alerts")
    assert await sql.fetchval("SELECT until > now() + interval '7 h' FROM wakebell.mutes")
    statuses = {row["id"]: row["status"] for row in await sql.fetch("SELECT id, status FROM wakebell.jobs")}
    assert (statuses[ids["failed"]], statuses[ids["pending"]]) == ("pending", "cancelled")
    paused = {
        row["name"]: row["paused_until"] for row in await sql.fetch("SELECT name, paused_until FROM wakebell.queues")
    }
    assert paused["mails"] is not None
    assert paused["letters"] is None


REFUSED: tuple[tuple[str, dict[str, str], int, str], ...] = (
    ("/jobs/999999/retry", {}, 404, "There is no such job"),
    ("/jobs/one/retry", {}, 404, "There is no such job"),
    ("/jobs/{done}/retry", {}, 409, "is done"),
    ("/jobs/{failed}/cancel", {}, 409, "only one that waits can be cancelled"),
    ("/alerts/999999/mute", {"for": "8h"}, 404, "There is no such alert"),
    ("/alerts/999999/acknowledge", {}, 422, "There is no alert 999999"),
    ("/alerts/{alert}/mute", {"for": "for ever"}, 422, "For: is no span of time"),
    ("/alerts/{alert}/mute", {}, 422, "For: is missing"),
    ("/queues/pause", {"queue": "mails", "for": "1h", "reason": " "}, 422, "why the queue is paused"),
    ("/queues/pause", {"queue": "wakebell.fetch", "for": "1h", "reason": "so"}, 422, "the service&#39;s own"),
    ("/queues/resume", {"queue": ""}, 422, "must be from 1 to 200 bytes long"),
    ("/sources/preview", {"source": "<b>none</b>"}, 404, "no source &#34;&lt;b&gt;none&lt;/b&gt;&#34;"),
)


async def test_what_cannot_be_done_is_said_in_a_sentence(tmp_path: Path, database_url: str, sql: asyncpg.Connection):
    service = page_service(tmp_path, database_url)
    ids = await something_of_everything(sql, service)
    done = await sql.fetchval("INSERT INTO wakebell.jobs (type, status) VALUES ('mail', 'done') RETURNING id")
    async with logged_in(service) as client:
        for path, fields, status, told in REFUSED:
            answer = await change(client, path.format(done=done, **ids), **fields)
            assert answer.status_code == status, answer.text
            assert told in answer.text
