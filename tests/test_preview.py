from __future__ import annotations

import asyncio
import json
from datetime import timedelta
from pathlib import Path
from typing import Any

import asyncpg
import httpx
import pytest
import respx

from app import preview, settings, tick
from app.domain.items import Fetched, Item, Unchanged
from app.settings import Settings
from tests.fakes.batches import a_service

URL = "https://gigs.example/api?key=s3cr3t"
PUSH = "https://api.line.me/v2/bot/message/push"

CONFIGURATION = f"""
[service]
host_gap_seconds = 0

[sources.gigs]
kind = "json"
url = "{URL}"
headers = {{ Authorization = "s3cr3t-token" }}
key = "id"
title = "name"
link = "url"
published = "at"
text = "body"
fields = {{ budget = "pay", company = "client" }}

[channels.line]
kind = "line"
token = "a-token-of-line"

[recipients.me]
channel = "line"
to = "U00000000000000000000000000000001"
language = "th"

[recipients.team]
channel = "inbox"

[subscriptions.bots]
any = ["python", "บอท"]
none = ["senior"]
to = ["me"]

[subscriptions.paid]
sources = ["gigs"]
min = {{ budget = 500 }}
fields = {{ company = ["acme"] }}
to = ["me", "team"]
"""
GIGS = [
    {
        "id": 7,
        "name": "Python bot",
        "url": "https://gigs.example/7",
        "at": "2026-11-30T09:00:00+07:00",
        "body": "<p>Remote</p>",
        "pay": "฿500-800",
        "client": "Acme",
    },
    {"id": 5, "name": "Senior Python", "pay": 300, "client": "Bolt"},
    {"id": 6, "name": "รับเขียนบอทไลน์"},
]


def load(folder: Path, text: str = CONFIGURATION) -> Settings:
    (folder / "wakebell.toml").write_text(text, encoding="utf-8")
    return settings.load({"WAKEBELL_CONFIG": str(folder / "wakebell.toml")})


async def previewed(configured: Settings, answer: Any) -> dict[str, Any]:
    with respx.mock:
        route = respx.get(URL)
        route.side_effect = answer if isinstance(answer, Exception) else None
        if not isinstance(answer, Exception):
            route.return_value = answer if isinstance(answer, httpx.Response) else httpx.Response(200, json=answer)
        return await preview.run(configured, "gigs")


async def test_items_are_shown_with_their_keys_and_what_each_subscription_makes_of_them(tmp_path: Path):
    found = await previewed(load(tmp_path), GIGS)

    assert (found["source"], found["status"], found["reason"], found["warnings"]) == ("gigs", "ok", None, [])
    assert found["items"][0] == {
        "key": "7",
        "title": "Python bot",
        "link": "https://gigs.example/7",
        "published": "2026-11-30T02:00:00Z",
        "text": "Remote",
        "fields": {"budget": "฿500-800", "company": "Acme"},
        "matches": [
            {"subscription": "bots", "matched": True, "why": '"python" is in it; "senior" is not in it'},
            {
                "subscription": "paid",
                "matched": True,
                "why": '"acme" is in its company; budget 500 to 800 is at least 500',
            },
        ],
    }
    assert [[match["why"] for match in item["matches"]] for item in found["items"][1:]] == [
        ['"senior" is in it and excluded', 'its company, "Bolt", is none of "acme"; budget 300 is below 500'],
        ['"บอท" is in it; "senior" is not in it', 'has no field "company"; has no field "budget"'],
    ]
    assert json.loads(json.dumps(found)) == found


async def test_messages_are_composed_by_each_channel_and_counted_as_it_counts(tmp_path: Path):
    found = await previewed(load(tmp_path), GIGS)

    line, inbox = found["messages"]
    text = "มีรายการใหม่ 2 รายการ\n\nPython bot\nhttps://gigs.example/7\ngigs · bots, paid\n\nรับเขียนบอทไลน์\ngigs · bots"
    assert line == {
        "recipient": "me",
        "channel": "line",
        "parts": [{"text": text, "length": len(text), "limit": 5000}],
    }
    text = "Python bot\nhttps://gigs.example/7\ngigs · paid"
    assert inbox == {
        "recipient": "team",
        "channel": "inbox",
        "parts": [{"text": text, "length": len(text), "limit": None}],
    }


@pytest.mark.parametrize(("status", "verdict"), [(200, "taken"), (400, "refused")])
@respx.mock
async def test_line_is_asked_to_look_at_the_messages_where_that_is_wanted(tmp_path: Path, status: int, verdict: str):
    respx.get(URL).respond(200, json=GIGS)
    look = respx.post("https://api.line.me/v2/bot/message/validate/push").respond(status, json={"message": "no"})

    found = await preview.run(load(tmp_path), "gigs", validate=True)

    assert look.call_count == 1
    line, inbox = found["messages"]
    assert inbox["refused"] is None
    assert ("taken" if line["refused"] is None else "refused") == verdict


TEMPLATE = """template = '''
{{ item.title|truncate(20) }}: {{ item.fields.budget }} {{ item.fields.company }} {{ item.published|time('date') }}
{{ item.text }}
'''
"""


@pytest.mark.parametrize(
    ("limits", "template", "pushes"),
    [("max_items_per_tick = 500\n", "", 2), ("", "", 2), ("max_items_per_tick = 20\n", TEMPLATE, 1)],
)
@respx.mock
async def test_a_tick_sends_the_very_messages_that_the_preview_shows(  # noqa: PLR0917 - three of them are a table's
    tmp_path: Path, database_url: str, sql: asyncpg.Connection, limits: str, template: str, pushes: int
):
    respx.get("https://api.line.me/v2/bot/message/quota").respond(200, json={"type": "none"})
    respx.get("https://api.line.me/v2/bot/message/quota/consumption").respond(200, json={"totalUsage": 0})
    gigs = respx.get(URL).respond(200, json=[])
    push = respx.post(PUSH).respond(200)
    listed = [
        {"id": f"{letter}{number}", "name": f"python {letter}{number} {'x' * 250}"}
        | {"pay": number * 1.5, "client": "مطور \0", "at": "2026-01-02T03:04:05Z", "body": "<p>a text"}
        for number in range(40)
        for letter in ("B", "a", "é", "ก")
    ]
    text = CONFIGURATION.replace('language = "th"\n', f'language = "th"\n{limits}')
    text = text.replace("[subscriptions.bots]\n", f"[subscriptions.bots]\n{template}")
    service = a_service(database_url, tmp_path, text)
    await tick.run(service, budget=timedelta(seconds=25), max_jobs=100, trigger="test")
    gigs.respond(200, json=listed)

    found = await preview.run(service.settings, "gigs")
    await sql.execute("UPDATE wakebell.sources SET due_at = now()")
    await tick.run(service, budget=timedelta(seconds=25), max_jobs=100, trigger="test")

    sent = [[text["text"] for text in json.loads(call.request.content)["messages"]] for call in push.calls]
    shown = [[part["text"] for part in message["parts"]] for message in found["messages"]]
    assert sorted(shown) == sorted(sent)
    assert len(sent) == pushes
    told = "".join(text for push in sent for text in push)
    assert bool(template) == ("\u2068مطور\u2069 ศ. 2 ม.ค.\na text\n" in told)
    assert limits.startswith("max_items_per_tick = 500") != ("และอีก " in told)
    await service.stores.database.dispose()


FEED = """<rss><channel><title>Board</title>{items}</channel></rss>"""
ITEM = "<item><title>{title}</title><link>https://e.test/{link}</link>{guid}</item>"


@pytest.mark.parametrize("apart", ["", 'key = "title+link"', r"id_regex = '/(\d+)'", 'ignore_params = ["s"]'])
@respx.mock
async def test_keys_are_those_of_a_tick(tmp_path: Path, database_url: str, sql: asyncpg.Connection, apart: str):
    listed = [
        ITEM.format(title="One", link="1?s=a", guid="<guid>1</guid>"),
        ITEM.format(title="Two", link="2?s=b", guid="<guid>1</guid>"),
        ITEM.format(title="Three", link="3?s=c&amp;utm_source=x", guid=""),
        ITEM.format(title="Three", link="3?s=d", guid=""),
    ]
    respx.get("https://board.example/feed").respond(text=FEED.format(items="".join(listed)))
    text = f'[sources.board]\nkind = "feed"\nurl = "https://board.example/feed"\n{apart}\n'
    service = a_service(database_url, tmp_path, text)

    found = await preview.run(service.settings, "board")
    await tick.run(service, budget=timedelta(seconds=25), max_jobs=100, trigger="test")

    kept = await sql.fetch("SELECT key, title FROM wakebell.items")
    assert {(item["key"], item["title"]) for item in found["items"]} == {tuple(row) for row in kept}
    await service.stores.database.dispose()


async def test_what_a_source_is_too_old_for_is_shown_and_told_nobody(tmp_path: Path):
    configured = load(tmp_path, CONFIGURATION.replace("[channels", "max_age_days = 7\n\n[channels", 1))

    found = await previewed(
        configured, [{"id": 1, "name": "python", "at": "2020-01-01"}, {"id": 2, "name": "python 2"}]
    )

    assert len(found["items"]) == 2
    assert found["warnings"][-1] == "1 of its items: older than its max_age_days, and so no news to anybody"
    assert [part["text"] for message in found["messages"] for part in message["parts"]] == ["python 2\ngigs · bots"]


async def test_a_source_that_fails_is_told_with_its_reason_and_without_secrets(tmp_path: Path):
    configured = load(tmp_path)

    answers = [
        await previewed(configured, httpx.Response(503)),
        await previewed(configured, httpx.Response(200, text="<html><title>Log in</title></html>")),
        await previewed(configured, httpx.ConnectError("no way to https://gigs.example/api?key=s3cr3t")),
    ]

    for found in answers:
        assert (found["status"], found["items"], found["messages"]) == ("failed", [], [])
        assert "gigs.example" in found["reason"]
        assert "\n" not in found["reason"]
        assert "s3cr3t" not in json.dumps(found)


@pytest.mark.parametrize("answer", [Unchanged(), KeyError("a bug of the kind")])
async def test_whatever_a_kind_does_is_an_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, answer: Any):
    async def fetch(*_: Any) -> Any:
        if isinstance(answer, Exception):
            raise answer
        return answer

    monkeypatch.setattr("app.sources.json.fetch", fetch)

    found = await preview.run(load(tmp_path), "gigs")

    assert found["status"] == "failed"
    assert found["reason"]


async def test_a_source_that_hangs_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    async def hang(*_: Any) -> Fetched:
        await asyncio.Event().wait()
        raise AssertionError

    monkeypatch.setattr("app.sources.json.fetch", hang)
    monkeypatch.setattr(preview, "READING_SECONDS", 0.01)

    found = await preview.run(load(tmp_path), "gigs")

    assert (found["status"], found["reason"]) == ("failed", "did not finish its answer in the 0.0 s that it had")


async def test_judging_that_takes_too_long_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    async def never(*_: Any) -> Any:
        await asyncio.Event().wait()

    monkeypatch.setattr(preview, "TIMEOUT", timedelta(seconds=0.2))
    monkeypatch.setattr(preview, "in_thread", never)

    async def fetch(*_: Any) -> Fetched:
        return Fetched(items=())

    monkeypatch.setattr("app.sources.json.fetch", fetch)

    found = await preview.run(load(tmp_path), "gigs")

    assert (found["status"], found["reason"]) == ("failed", "reading and judging took more than 0.2 s")


async def test_no_validator_is_sent(tmp_path: Path):
    with respx.mock:
        route = respx.get(URL).respond(200, json=GIGS, headers={"ETag": '"1"'})
        for _ in range(2):
            await preview.run(load(tmp_path), "gigs")

    for call in route.calls:
        assert "if-none-match" not in call.request.headers
        assert call.request.headers["user-agent"].startswith("Wakebell/")


async def test_a_source_that_lists_nothing_is_said_to(tmp_path: Path):
    found = await previewed(load(tmp_path), [])

    assert (found["status"], found["reason"], found["items"], found["messages"]) == ("ok", "it lists nothing", [], [])


async def test_of_many_items_the_first_are_shown_and_all_are_told_as_far_as_one_message_goes(tmp_path: Path):
    configured = load(tmp_path, CONFIGURATION.replace("min = { budget = 500 }\nfields", 'any = ["1"]\n#'))

    found = await previewed(configured, [{"id": n, "name": f"python {n} 1"} for n in range(1000, 1600)])

    assert found["reason"] == "the first 200 of its 600 items are shown"
    assert found["warnings"][-2:] == [
        "me would be told 150 items and that there are 450 more: max_items_per_tick says how many",
        "team would hear of 500 items at once, and of the other 100 next",
    ]
    assert [item["key"] for item in found["items"]] == [str(n) for n in range(1000, 1200)]
    mine, team = ("\n".join(part["text"] for part in message["parts"]) for message in found["messages"])
    assert ("python 1149" in mine, "python 1150" in mine, mine.endswith("และอีก 450 รายการ")) == (True, False, True)
    assert ("python 1499" in team, "python 1500" in team) == (True, False)


async def test_a_pattern_that_takes_too_long_is_warned_of(tmp_path: Path):
    configured = load(tmp_path, CONFIGURATION.replace('any = ["python", "บอท"]', "regex = ['(a|aa)+$']"))

    found = await previewed(configured, [{"id": 1, "name": "a" * 60 + "b"}])

    assert found["warnings"][-1:] == ["a pattern of bots takes too long: it counts as not found"]
    assert found["items"][0]["matches"][0]["matched"] is False


async def test_what_is_odd_about_the_answer_is_warned_of(tmp_path: Path):
    with respx.mock:
        respx.get(URL).respond(301, headers={"Location": "https://new.example/api?key=s3cr3t"})
        respx.get("https://new.example/api?key=s3cr3t").respond(200, json=[{"id": 1, "name": "a", "at": "soon"}])
        found = await preview.run(load(tmp_path), "gigs")

    assert found["warnings"][-1] == "it has moved for good to new.example: change its url"
    assert any("published" in warning for warning in found["warnings"][:-1])
    assert "s3cr3t" not in json.dumps(found)


async def test_a_source_that_may_not_lead_inside_does_not(tmp_path: Path):
    text = CONFIGURATION.replace("https://gigs.example/api", "http://127.0.0.1:9/api")
    found = await preview.run(load(tmp_path, text.replace("[channels", "deny_private = true\n\n[channels", 1)), "gigs")

    assert found["status"] == "failed"
    assert "127.0.0.1" in found["reason"]


async def test_no_text_of_a_source_breaks_the_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    async def fetch(*_: Any) -> Fetched:
        fields = {"pay": float("nan"), "list": [1], "odd\ud83d": "\0\ud83d", "yes": True, "none": None}
        item = Item(key="\ud83d" * 3000, title="python \0\ud83d" + "x" * 5000, text="t" * 10_000, fields=fields)
        return Fetched(items=(item, item))

    monkeypatch.setattr("app.sources.json.fetch", fetch)

    found = await preview.run(load(tmp_path), "gigs")

    assert json.dumps(found, allow_nan=False, ensure_ascii=False).encode()
    assert len(found["items"][0]["text"]) == 4000
    assert found["messages"][0]["parts"][0]["text"].count("python") == 1  # one key, kept once


@pytest.mark.parametrize(("text", "known"), [(CONFIGURATION, "it has gigs"), ("", "it has none")], ids=["one", "none"])
async def test_a_name_that_is_none_is_told_with_those_that_are(tmp_path: Path, text: str, known: str):
    with pytest.raises(preview.UnknownSource, match=f'the configuration has no source "nope"; {known}'):
        await preview.run(load(tmp_path, text), "nope")


@pytest.fixture
async def sql(database_url: str) -> Any:
    connection = await asyncpg.connect(database_url)
    yield connection
    await connection.close()
