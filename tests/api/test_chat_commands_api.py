"""Commands by which allowed people manage what they are told, on each of the two memories."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import asyncpg
import httpx
import pytest
import respx

from app import main, settings, tick
from app.context import Service
from tests.api.chatting import NOK, NURSE, event, line, said, signed, telegram
from tests.api.doors import calling

CODE = "open-sesame-7"

CONFIGURATION = """
[service]
handlers = "handlers"

[sources.board]
kind = "feed"
url = "https://board.test/feed.xml"

[channels.line]
kind = "line"
token = "token-of-line"

[channels.bot]
kind = "telegram"
token = "123456:AAHtoken-of-the-telegram-bot-abcdefgh"

[recipients.nurse]
channel = "line"
to = "U000000000000000000000000000000a1"

[chats.clinic]
kind = "line"
secret = "the-channel-secret"
channel = "line"
job = "answer_person"
allow = ["U000000000000000000000000000000a1"]
invitation = "open-sesame-7"

[chats.desk]
kind = "telegram"
secret = "secret-of-the-webhook"
channel = "bot"
language = "th"
allow = ["7"]

[chats.plain]
kind = "telegram"
secret = "secret-of-the-webhook"
channel = "bot"
job = "answer_person"

[subscriptions.none]
sources = ["board"]
any = ["a phrase that is in nothing"]
to = ["inbox"]

[alerts]
to = ["inbox"]
"""
ANSWER = """
from pydantic import BaseModel
from app.domain.jobs import Done


class Payload(BaseModel):
    text: str
    turns: list[dict]


async def handle(payload, ctx):
    return Done(" / ".join([*(turn["text"] for turn in payload.turns), payload.text]))
"""

TURNS = "SELECT string_agg(text, ' ') FROM wakebell.turns"
EVERYWHERE = """
SELECT string_agg(words, ' ') FROM (
    SELECT to_jsonb(said)::text AS words FROM wakebell.said
    UNION ALL SELECT to_jsonb(turns)::text FROM wakebell.turns
    UNION ALL SELECT to_jsonb(jobs)::text FROM wakebell.jobs
    UNION ALL SELECT to_jsonb(watchers)::text FROM wakebell.watchers
    UNION ALL SELECT to_jsonb(messages)::text FROM wakebell.messages
) AS kept
"""


def feed(*titles: str) -> str:
    items = "".join(
        f"<item><title>{title}</title><link>https://board.test/{number}</link><guid>{title}</guid></item>"
        for number, title in enumerate(titles)
    )
    return f'<rss version="2.0"><channel><title>board</title>{items}</channel></rss>'


def built(folder: Path, url: str, **environ: str) -> Service:
    (folder / "handlers").mkdir(exist_ok=True)
    (folder / "handlers" / "answer_person.py").write_text(ANSWER)
    (folder / "wakebell.toml").write_text(CONFIGURATION)
    given = {"DATABASE_URL": url, "WAKEBELL_CONFIG": str(folder / "wakebell.toml"), "CRON_SECRET": "c" * 20}
    return main.build(settings.load(given | environ))


@pytest.fixture
def service(tmp_path: Path, database_url: str, memory: dict[str, str]) -> Service:
    return built(tmp_path, database_url, **memory)


@pytest.fixture
async def client(service: Service) -> AsyncIterator[httpx.AsyncClient]:
    async with calling(service, token=None) as client:
        yield client


class Say:
    """Say something by LINE, as the nurse if nobody else; what is answered to it."""

    def __init__(self, client: httpx.AsyncClient, service: Service, provider: respx.MockRouter) -> None:
        self.client = client
        self.service = service
        self.provider = provider
        self._count = 0

    async def __call__(self, text: str, *, person: str = NURSE) -> str:
        before = self.provider["reply"].call_count
        await self.told(text, person=person)
        return "\n".join(text for texts in said(self.provider["reply"])[before:] for text in texts)

    async def told(self, text: str | None = None, *, person: str = NURSE, kind: str = "message") -> None:
        self._count += 1
        await line(self.client, self.service, event(self._count, text, person=person, kind=kind))


class Ticks:
    """A tick that finds these titles at the source."""

    def __init__(self, service: Service, provider: respx.MockRouter, sql: asyncpg.Connection) -> None:
        provider.get(url__regex=r"https://api\.line\.me/.*").respond(200, json={"type": "none", "totalUsage": 0})
        self._service = service
        self._provider = provider
        self.sql = sql

    async def __call__(self, *titles: str) -> dict[str, Any]:
        if titles:
            await self.published(*titles)
        return await a_tick(self._service)

    async def published(self, *titles: str) -> None:
        """The source lists these, and is to be read."""
        self._provider.get("https://board.test/feed.xml").respond(200, text=feed(*titles))
        due = "UPDATE wakebell.sources SET due_at = now() - interval '1 minute', fresh_until = NULL"
        await self.sql.execute(due)
        await self.sql.execute("UPDATE wakebell.hosts SET next_at = now() - interval '1 minute'")


@pytest.fixture
def say(client: httpx.AsyncClient, service: Service, provider: respx.MockRouter) -> Say:
    return Say(client, service, provider)


@pytest.fixture
def ticked(service: Service, provider: respx.MockRouter, sql: asyncpg.Connection) -> Ticks:
    return Ticks(service, provider, sql)


async def a_tick(service: Service) -> dict[str, Any]:
    return await tick.run(service, budget=service.settings.tick.budget, max_jobs=100, trigger="test")


class TestWhoMay:
    async def test_those_who_are_named_may_and_all_others_are_answered_as_ever(self, say: Say):
        assert (await say("help")).startswith("watch WORDS")
        assert await say("help", person=NOK) == "help"
        assert await say("watch python", person=NOK) == "help / help / watch python"

    async def test_a_chat_that_names_nobody_has_no_commands(
        self, client: httpx.AsyncClient, provider: respx.MockRouter
    ):
        await telegram(client, 1, "/help", chat="plain")

        texts = [json.loads(call.request.content).get("text") for call in provider["telegram"].calls]
        assert [text for text in texts if text] == ["/help"]

    async def test_whoever_says_the_invitation_may_from_then_on_and_it_stays_nowhere(
        self, say: Say, sql: asyncpg.Connection, caplog: pytest.LogCaptureFixture
    ):
        assert "commands" in await say(f" {CODE}\n", person=NOK)
        assert await say("list", person=NOK) == "You watch nothing yet. For example: watch python, line bot"
        assert await say("how are you?", person=NOK) == "how are you?", "neither is part of the talk"

        assert CODE not in await sql.fetchval(EVERYWHERE)
        assert CODE not in caplog.text

    async def test_wrong_guesses_are_answered_as_ever_and_end_after_five(
        self, say: Say, sql: asyncpg.Connection, caplog: pytest.LogCaptureFixture
    ):
        for number in range(5):
            assert (await say(f"open-sesame-{number}", person=NOK)).endswith(f"open-sesame-{number}")
        assert (await say(CODE, person=NOK)).endswith(f"/ {CODE}"), "right or wrong, it is answered alike"
        assert (await say("open-sesame-6", person=NOK)).endswith("/ open-sesame-6")
        told = await say("help", person=NOK)
        assert told.endswith("/ help")
        assert "open-sesame-4" in told
        assert not any(guess in told for guess in (CODE, "open-sesame-6")), "and not remembered"
        assert CODE not in await sql.fetchval(EVERYWHERE)
        assert CODE not in caplog.text

        await sql.execute("UPDATE wakebell.watchers SET guessed_on = guessed_on - 1")
        assert "commands" in await say(CODE, person=NOK)

    async def test_a_link_with_the_invitation_in_it_invites(self, say: Say, sql: asyncpg.Connection):
        assert "commands" in await say(f"/start {CODE}", person=NOK)
        assert CODE not in await sql.fetchval(EVERYWHERE)

    async def test_a_command_as_long_as_the_invitation_is_one_and_no_guess(self, say: Say, sql: asyncpg.Connection):
        command = "watch " + "x" * (len(CODE) - len("watch "))

        for _ in range(7):
            assert "number 1: xxxxxxx" in await say(command)
        assert await sql.fetchval("SELECT guesses FROM wakebell.watchers") == 0
        assert await say(command, person=NOK) == command

    @pytest.mark.parametrize("text", ["hello, is anybody there?", "are you open?", "appointments", "OPEN-SESAME-7"])
    async def test_ordinary_words_are_no_guesses(self, say: Say, text: str):
        for _ in range(7):
            assert (await say(text, person=NOK)).endswith(text)

        assert "commands" in await say(CODE, person=NOK)

    async def test_in_a_group_a_command_is_one_when_it_is_said_to_the_bot(
        self, client: httpx.AsyncClient, service: Service, provider: respx.MockRouter
    ):
        def in_group(number: int, text: str, *, mention: bool) -> dict[str, Any]:
            told = event(number, f"@bot {text}" if mention else text, person=NURSE)
            told["source"] = {"type": "group", "groupId": "C" + "0" * 32, "userId": NURSE}
            if mention:
                mentionee = {"index": 0, "length": 4, "type": "user", "isSelf": True}
                told["message"]["mention"] = {"mentionees": [mentionee]}
            return told

        await line(client, service, in_group(1, "status", mention=False))
        assert provider["reply"].call_count == 0
        await line(client, service, in_group(2, "status", mention=True))

        [[text]] = said(provider["reply"])
        assert text.startswith("Sources: 1.")

    async def test_commands_work_where_a_person_has_taken_over(self, say: Say):
        await say("I want a human")
        assert await say("hello?") == ""

        assert await say("list") == "You watch nothing yet. For example: watch python, line bot"


class OnOneMemory:
    """What ticks and answers are made of has nothing to do with it."""

    @pytest.fixture
    def memory(self) -> dict[str, str]:
        return {}


class TestWatching(OnOneMemory):
    async def test_what_is_watched_for_is_told_once_and_to_nobody_else(
        self, say: Say, ticked: Ticks, provider: respx.MockRouter, sql: asyncpg.Connection
    ):
        assert await say("WATCH  python,  ไลน์บอท") == "Watching, number 1: python, ไลน์บอท"
        await ticked("Old python job")

        summary = await ticked("Old python job", "New Python job", "รับเขียนไลน์บอท", "A job for cooks")
        await ticked("Old python job", "New Python job", "รับเขียนไลน์บอท", "A job for cooks")

        [[text]] = said(provider["push"])
        assert all(words in text for words in ("New Python job", "รับเขียนไลน์บอท", "python, ไลน์บอท"))
        assert not any(words in text for words in ("cooks", "Old"))
        assert json.loads(provider["push"].calls[0].request.content)["to"] == NURSE
        assert summary["messages"] | {"sent": 1} == summary["messages"]
        [row] = await sql.fetch("SELECT DISTINCT recipient FROM wakebell.owed")
        assert row["recipient"] == f"chats/clinic/{await sql.fetchval('SELECT id FROM wakebell.conversations')}"

    async def test_one_item_for_two_watches_is_told_once_with_both(
        self, say: Say, ticked: Ticks, provider: respx.MockRouter
    ):
        await say("watch python")
        await say("watch line bot")
        await ticked("first")

        await ticked("first", "A LINE bot in Python")

        [[text]] = said(provider["push"])
        assert text.count("A LINE bot in Python") == 1
        assert "line bot, python" in text

    async def test_two_replicas_at_once_tell_it_once(self, say: Say, ticked: Ticks, tmp_path: Path, database_url: str):
        other = built(tmp_path, database_url)
        await say("watch python")
        await ticked("first")

        await ticked.published("first", "python")
        await asyncio.gather(a_tick(say.service), a_tick(other))
        await asyncio.gather(a_tick(say.service), a_tick(other))

        assert len(said(say.provider["push"])) == 1
        await other.stores.database.dispose()

    async def test_what_is_muted_is_told_as_one_when_that_is_over(
        self, say: Say, ticked: Ticks, provider: respx.MockRouter, sql: asyncpg.Connection
    ):
        await say("watch python")
        await ticked("first")
        assert (await say("mute 2h")).startswith("Muted until today ")

        await ticked("first", "python 1")
        summary = await ticked("first", "python 1", "python 2")
        assert provider["push"].call_count == 0
        assert summary["messages"]["held"] == 2
        assert summary["next_due_at"] is not None

        await sql.execute("UPDATE wakebell.conversations SET muted_until = now() - interval '1 second'")
        await ticked()
        [[text]] = said(provider["push"])
        assert text.startswith("2 new items")

    async def test_what_was_muted_is_told_when_somebody_says_so(
        self, say: Say, ticked: Ticks, provider: respx.MockRouter
    ):
        await say("watch python")
        await ticked("first")
        await say("mute 1d")
        await ticked("first", "python")

        assert await say("mute off") == "Not muted: news comes as it is found."
        await ticked()

        assert len(said(provider["push"])) == 1

    @pytest.mark.parametrize("how", ["unwatch 1", "unwatch PYTHON"])
    async def test_what_is_watched_no_longer_is_not_told(
        self, say: Say, ticked: Ticks, provider: respx.MockRouter, how: str
    ):
        await say("watch python")
        await say("watch cooks")
        await ticked("first")
        await say("mute 1h")
        await ticked("first", "python")

        assert await say(how) == "No longer watching: python"
        await say("mute off")
        await ticked("first", "python", "more python", "A job for cooks")

        [[text]] = said(provider["push"])
        assert "cooks" in text
        assert "python" not in text
        assert await say("list") == "You watch:\n1. cooks"

    async def test_whoever_blocks_the_bot_is_told_nothing_until_they_come_back(
        self, say: Say, ticked: Ticks, provider: respx.MockRouter
    ):
        await say(CODE, person=NOK)
        await say("watch python", person=NOK)
        await ticked("first")
        await say.told(kind="unfollow", person=NOK)

        summary = await ticked("first", "python 1")
        assert provider["push"].call_count == 0
        assert summary["alerts"]["opened"] == 0
        assert await ticked.sql.fetchval("SELECT count(*) FROM wakebell.owed") == 0

        await say.told(kind="follow", person=NOK)
        await ticked("first", "python 1", "python 2")
        [[text]] = said(provider["push"])
        assert "python 2" in text

    async def test_what_waits_for_whoever_blocks_the_bot_is_not_sent(
        self, say: Say, ticked: Ticks, provider: respx.MockRouter
    ):
        await say(CODE, person=NOK)
        await say("watch python", person=NOK)
        await ticked("first")
        provider["push"].respond(500)
        await ticked("first", "python")
        await say.told(kind="unfollow", person=NOK)
        tried = provider["push"].call_count

        await ticked.sql.execute("UPDATE wakebell.jobs SET run_after = now() WHERE status = 'pending'")
        summary = await ticked()

        assert provider["push"].call_count == tried
        assert await ticked.sql.fetchval("SELECT count(*) FROM wakebell.owed WHERE message_id IS NULL") == 0
        assert summary["alerts"]["opened"] == 0

    async def test_whoever_turns_out_to_be_gone_is_let_be(
        self, say: Say, ticked: Ticks, provider: respx.MockRouter, sql: asyncpg.Connection
    ):
        await say(CODE, person=NOK)
        await say("watch python", person=NOK)
        await ticked("first")
        provider["push"].respond(400, json={"message": "Failed to send messages"})

        summary = await ticked("first", "python")
        await ticked()

        assert provider["push"].call_count == 1
        assert summary["alerts"]["opened"] == 0
        assert await sql.fetchval("SELECT count(*) FROM wakebell.owed WHERE message_id IS NULL") == 0

    async def test_whoever_was_gone_is_told_again_once_they_watch_again(
        self, say: Say, ticked: Ticks, provider: respx.MockRouter
    ):
        await say(CODE, person=NOK)
        await say("watch python", person=NOK)
        await ticked("first")
        provider["push"].respond(400, json={"message": "Failed to send messages"})
        await ticked("first", "python 1")

        provider["push"].respond(200, json={})
        await say("watch python, cooks", person=NOK)
        await ticked("first", "python 1", "python 2")

        assert ["python 2" in text for [text] in said(provider["push"])] == [False, True]

    async def test_what_a_provider_refuses_is_an_alert_until_something_arrives(
        self, say: Say, ticked: Ticks, provider: respx.MockRouter
    ):
        await say(CODE, person=NOK)
        await say("watch python", person=NOK)
        await ticked("first")
        provider["push"].respond(400, json={"message": "The request body has 1 error(s)"})

        opened = [(await ticked("first", "python 1"))["alerts"], (await ticked())["alerts"]]
        provider["push"].respond(200, json={})
        closed = [(await ticked("first", "python 1", "python 2"))["alerts"], (await ticked())["alerts"]]

        assert [alerts["open"] for alerts in opened] == [1, 1]
        assert closed[-1]["open"] == 0

    async def test_whoever_may_not_any_more_is_told_nothing(
        self,
        say: Say,
        ticked: Ticks,
        provider: respx.MockRouter,
        sql: asyncpg.Connection,
    ):
        await say(CODE, person=NOK)
        await say("watch python", person=NOK)
        await ticked("first")
        await sql.execute("UPDATE wakebell.watchers SET invited_at = NULL")

        await ticked("first", "python")

        assert provider["push"].call_count == 0

    async def test_watches_outlive_the_talk(self, say: Say, sql: asyncpg.Connection, ticked: Ticks):
        await say("hello")
        await say("watch python")
        await say("hello", person=NOK)
        await sql.execute("UPDATE wakebell.conversations SET last_at = now() - interval '8 days'")
        await sql.execute("UPDATE wakebell.said SET received_at = now() - interval '8 days'")

        await ticked()
        last = await ticked()

        assert await say("list") == "You watch:\n1. python"
        assert await sql.fetchval("SELECT count(*) FROM wakebell.conversations") == 1
        assert await sql.fetchval("SELECT count(*) FROM wakebell.turns") == 0
        assert last["jobs"]["claimed"] == 0, "nothing is looked at again before its time"


class TestAnswers(OnOneMemory):
    async def test_limits_are_told(self, say: Say, sql: asyncpg.Connection):
        assert await say("watch") == "Write what to watch for, for example: watch python, line bot"
        assert "at most 10 phrases" in await say("watch " + ",".join(map(str, range(11))))
        assert "at most 100 characters" in await say("watch " + "x" * 101)
        await say("watch word1")
        more = (
            "INSERT INTO wakebell.watches (watcher_id, conversation_id, phrases, mark) "
            "SELECT watcher_id, conversation_id, ARRAY['word' || n], 'word' || n "
            "FROM wakebell.watches, generate_series(2, 19) AS n"
        )
        await sql.execute(more)
        assert await say("watch word20") == "Watching, number 20: word20"
        assert (await say("watch one more")).startswith("You have 20 watches")
        assert await say("watch WORD3") == "You watch this already, number 3: word3"
        assert (await say("unwatch 21")).startswith("You do not watch that")
        assert (await say("mute soon")).startswith("Write for how long")

    async def test_the_latest_are_of_all_sources_or_of_what_is_watched(
        self, say: Say, ticked: Ticks, sql: asyncpg.Connection
    ):
        assert await say("latest") == "There is nothing yet."
        await ticked("one", "two")
        await ticked("one", "two", "three python")
        await sql.execute("UPDATE wakebell.items SET title = E'\\u202e' || title WHERE title = 'three python'")

        whole = await say("latest")
        assert whole.splitlines()[0] == "\u2068three python\u2069", "as safe as in a digest"
        assert whole.count("https://board.test/") == 3
        assert (await say("latest 1")).count("https://board.test/") == 1
        await say("watch python")
        assert (await say("latest")).count("https://board.test/") == 1
        await say("unwatch 1")
        await say("watch nothing like it")
        assert await say("latest") == "Nothing matches what you watch yet."

    async def test_the_state_is_two_lines(self, say: Say, ticked: Ticks):
        assert await say("status") == "Sources: 1. Last look: not yet.\nNot muted."
        await ticked()
        await say("mute 30m")

        told = await say("status")

        assert len(told.splitlines()) == 2
        assert "Last look: today" in told
        assert "Muted until" in told

    async def test_commands_are_answered_in_the_language_of_the_chat(
        self, client: httpx.AsyncClient, provider: respx.MockRouter, sql: asyncpg.Connection
    ):
        await telegram(client, 1, "ติดตาม ไพธอน")
        await telegram(client, 2, "/watch@gigs_bot python")
        await telegram(client, 3, "รายการ")

        texts = [json.loads(call.request.content).get("text") for call in provider["telegram"].calls]
        assert [text for text in texts if text] == [
            "กำลังติดตาม หมายเลข 1: ไพธอน",
            "กำลังติดตาม หมายเลข 2: python",
            "คุณติดตาม:\n1. ไพธอน\n2. python",
        ]


class TestOnce:
    async def test_a_repeat_does_it_once(
        self, client: httpx.AsyncClient, service: Service, provider: respx.MockRouter, sql: asyncpg.Connection
    ):
        provider["reply"].respond(500)
        provider["push"].respond(500)
        await line(client, service, event(1, "watch python", person=NURSE))
        provider["reply"].respond(200, json={})

        await asyncio.gather(
            *(client.post("/api/webhooks/clinic", **signed(event(1, "watch python", person=NURSE))) for _ in range(5))
        )
        await service.settle()

        assert said(provider["reply"])[-1] == ["Watching, number 1: python"]
        assert await sql.fetchval("SELECT count(*) FROM wakebell.watches") == 1
        assert await sql.fetchval("SELECT outcome FROM wakebell.said") == "replied"

    async def test_an_invitation_whose_reply_failed_is_answered_later(
        self, client: httpx.AsyncClient, service: Service, provider: respx.MockRouter, sql: asyncpg.Connection
    ):
        provider["reply"].respond(500)
        provider["push"].respond(500)
        await line(client, service, event(1, CODE))
        assert await sql.fetchval("SELECT text FROM wakebell.said") == ""

        provider["reply"].respond(200, json={})
        await line(client, service, event(1, CODE))

        assert "commands" in said(provider["reply"])[-1][0]
        assert await sql.fetchval("SELECT outcome FROM wakebell.said") == "replied"

    async def test_a_try_that_breaks_in_between_has_done_nothing(
        self,
        client: httpx.AsyncClient,
        service: Service,
        provider: respx.MockRouter,
        sql: asyncpg.Connection,
        monkeypatch: pytest.MonkeyPatch,
    ):
        async def die(*_: Any) -> None:
            raise RuntimeError("a bug")

        with monkeypatch.context() as broken:
            broken.setattr("app.stores.conversations.freeze_in", die)
            await line(client, service, event(1, "watch python", person=NURSE))
        assert await sql.fetchval("SELECT count(*) FROM wakebell.watches") == 0

        await line(client, service, event(1, "watch python", person=NURSE))
        assert said(provider["reply"]) == [["Watching, number 1: python"]]
