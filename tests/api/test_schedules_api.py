from __future__ import annotations

from pathlib import Path

import asyncpg

from app import main, settings
from app.context import Service
from tests.api.doors import API_TOKEN, GREET, NOWHERE, calling

CONFIGURATION = """
[schedules.daily]
cron = "@daily"
timezone = "Asia/Yangon"
job = "greet"
payload = { user_id = 1, password = "s3cr3t-1" }

[schedules.often]
cron = "@every 1h"
job = "greet"
payload = { user_id = 2 }
"""


def built(folder: Path, database_url: str, **environ: str) -> Service:
    (folder / "handlers").mkdir(exist_ok=True)
    (folder / "handlers" / "greet.py").write_text(GREET)
    (folder / "wakebell.toml").write_text(CONFIGURATION)
    given = {
        "DATABASE_URL": database_url,
        "CRON_SECRET": "a-cron-secret-of-thirty-letters",
        "WAKEBELL_CONFIG": str(folder / "wakebell.toml"),
    }
    return main.build(settings.load(given | environ))


async def test_schedules_are_listed_in_words_and_without_their_payloads(tmp_path: Path, database_url: str):
    connection = await asyncpg.connect(database_url)
    await connection.execute(
        "INSERT INTO wakebell.schedules (name, fingerprint, anchor_at, next_at, fired_slot, fired_at, missed_count) "
        "VALUES ('often', '@every 3600s', '2026-01-01', now() - interval '1 m', '2026-11-30', '2026-11-30 0:02', 4), "
        "('gone', 'x', now(), now(), NULL, NULL, 0)"
    )
    await connection.close()

    async with calling(built(tmp_path, database_url, API_TOKEN=API_TOKEN)) as client:
        answer = await client.get("/api/schedules")

    assert answer.status_code == 200
    daily, often = answer.json()["schedules"]
    assert (daily["name"], daily["cron"], daily["words"]) == ("daily", "@daily", "every day at 00:00 Asia/Yangon")
    assert (daily["last_slot"], daily["due"], daily["missed"]) == (None, False, 0)
    assert [at[10:] for at in daily["next"]] == ["T17:30:00Z"] * 3
    assert (often["last_slot"], often["fired_at"]) == ("2026-11-30T00:00:00Z", "2026-11-30T00:02:00Z")
    assert (often["due"], often["missed"], often["words"]) == (True, 4, "every hour")
    assert [at[13:] for at in often["next"]] == [":00:00Z"] * 3
    assert "s3cr3t" not in answer.text


async def test_they_need_the_token(tmp_path: Path):
    async with calling(built(tmp_path, NOWHERE, API_TOKEN=API_TOKEN), token=None) as client:
        refused = await client.get("/api/schedules")

    assert refused.status_code == 401
