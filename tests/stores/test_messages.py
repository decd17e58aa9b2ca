from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

import asyncpg
import pytest

from app.domain.errors import LeaseLost
from app.domain.jobs import Job
from app.domain.messages import Body, Owed, OwedItem, Receipt
from app.stores import messages as module
from app.stores.database import Database
from app.stores.jobs import Jobs
from app.stores.messages import Messages, Try

LEASES = {"compose_messages": timedelta(seconds=30), "send_message": timedelta(seconds=30)}


@pytest.fixture
def messages(database: Database) -> Messages:
    return Messages(database)


async def owe(sql: asyncpg.Connection, count: int = 1, *, to: str = "me", subscriptions: str = '["all"]') -> None:
    await sql.execute(
        "WITH added AS (INSERT INTO wakebell.items (source, key, title, link) "
        "SELECT 'board', gen_random_uuid()::text, 'gig ' || n, 'https://x.example/' || n "
        "FROM generate_series(1, $1) AS n RETURNING id) "
        "INSERT INTO wakebell.owed (item_id, recipient, subscriptions) SELECT id, $2, $3 FROM added ORDER BY id",
        count,
        to,
        subscriptions,
    )


def plain(owed: Owed) -> list[Body]:
    text = "\n".join(item.title for item in owed.items)
    return [Body(body=f"<{text}>", text=text)]


def one_each(owed: Owed) -> list[Body]:
    return [Body(body=item.title, text=item.title, items=(place,)) for place, item in enumerate(owed.items)]


class Desk:
    """Where messages are composed and sent."""

    def __init__(self, messages: Messages, jobs: Jobs, sql: asyncpg.Connection) -> None:
        self.messages = messages
        self.jobs = jobs
        self.sql = sql

    async def claim(self, type: str = "send_message", *, key: str | None = None, token: int = 1) -> Job:  # noqa: A002
        await self.sql.execute("UPDATE wakebell.jobs SET run_after = now() WHERE status = 'pending'")
        if key is not None:
            await self.sql.execute(
                "INSERT INTO wakebell.jobs (type, queue, unique_key) VALUES ($1, 'wakebell.compose', $2)", type, key
            )
        [job] = await self.jobs.claim(own=True, limit=1, leases={type: LEASES[type]}, token=token)
        return job

    async def compose(self, **options: Any) -> int:
        job = await self.claim("compose_messages", key="any")
        given: dict[str, Any] = {"recipient": "me", "channel": "line", "compose": plain}
        return await self.messages.compose(job, **given | options)

    async def ready(self) -> tuple[Job, int]:
        """The lease on the sending of a message, and the message's id."""
        await owe(self.sql)
        await self.compose()
        job = await self.claim()
        return job, int(job.payload["message"])

    async def row(self) -> dict[str, Any]:
        return dict(await self.sql.fetchrow("SELECT * FROM wakebell.messages ORDER BY id DESC LIMIT 1"))

    async def job_status(self, job: Job) -> str:
        return str(await self.sql.fetchval("SELECT status FROM wakebell.jobs WHERE id = $1", job.id))


@pytest.fixture
def desk(messages: Messages, jobs: Jobs, sql: asyncpg.Connection) -> Desk:
    return Desk(messages, jobs, sql)


async def told(sql: asyncpg.Connection) -> dict[str, list[str]]:
    """The titles that each message tells, by its text."""
    found = await sql.fetch(
        "SELECT messages.text, array_agg(items.title ORDER BY owed.id) AS titles FROM wakebell.owed "
        "JOIN wakebell.messages ON messages.id = owed.message_id JOIN wakebell.items ON items.id = owed.item_id "
        "GROUP BY messages.id ORDER BY messages.id"
    )
    return {row["text"]: row["titles"] for row in found}


async def open_rows(sql: asyncpg.Connection) -> int:
    return int(await sql.fetchval("SELECT count(*) FROM wakebell.owed WHERE message_id IS NULL"))


async def test_who_is_owed_something_is_composed_for(messages: Messages, sql: asyncpg.Connection):
    await owe(sql, to="me")
    await owe(sql, to="you")
    await owe(sql, to="somebody who is gone")

    planned = await asyncio.gather(*(messages.plan(["you", "me", "they"]) for _ in range(4)))

    assert [sum(found.queued for found in planned), sum(found.abandoned for found in planned)] == [2, 0]

    query = "SELECT payload->>'recipient' FROM wakebell.jobs WHERE queue = 'wakebell.compose' ORDER BY 1"
    assert [row[0] for row in await sql.fetch(query)] == ["me", "you"]


async def test_what_is_owed_becomes_a_frozen_message_and_its_job(desk: Desk, sql: asyncpg.Connection):
    await owe(sql, 2, subscriptions='["a", "b"]')
    given: list[Owed] = []

    def compose(owed: Owed) -> list[Body]:
        given.append(owed)
        return plain(owed)

    assert await desk.compose(compose=compose) == 1

    [owed] = given
    item = OwedItem(title="gig 1", link="https://x.example/1", source="board", subscriptions=("a", "b"))
    assert (owed.items[0], owed.more, owed.told_at) == (item, 0, ())
    assert owed.now == await sql.fetchval("SELECT created_at FROM wakebell.messages")
    row = await desk.row()
    assert (row["recipient"], row["channel"], row["kind"], row["status"]) == ("me", "line", "items", "queued")
    assert (row["body"], row["text"], row["attempts"]) == ("<gig 1\ngig 2>", "gig 1\ngig 2", 0)
    job = await sql.fetchrow("SELECT unique_key, queue, max_attempts FROM wakebell.jobs WHERE type = 'send_message'")
    assert tuple(job) == (str(row["id"]), "wakebell.send.line", 1000)
    assert await open_rows(sql) == 0
    assert await sql.fetchval("SELECT status FROM wakebell.jobs WHERE type = 'compose_messages'") == "done"


async def test_only_the_recipients_own_rows_are_told(desk: Desk, sql: asyncpg.Connection):
    await owe(sql, to="you")

    assert await desk.compose() == 0
    assert await open_rows(sql) == 1


async def test_one_round_may_be_several_messages(desk: Desk, sql: asyncpg.Connection):
    await owe(sql, 3)

    assert await desk.compose(compose=one_each) == 3

    assert await open_rows(sql) == 0
    keys = await sql.fetch("SELECT DISTINCT retry_key FROM wakebell.messages")
    assert len(keys) == 3


async def test_each_item_is_tied_to_the_message_that_shows_it(desk: Desk, sql: asyncpg.Connection):
    await owe(sql, 3)

    await desk.compose(compose=one_each)

    assert await told(sql) == {"gig 1": ["gig 1"], "gig 2": ["gig 2"], "gig 3": ["gig 3"]}


async def test_what_no_message_shows_is_tied_to_the_last_one(desk: Desk, sql: asyncpg.Connection):
    await owe(sql, 3)

    await desk.compose(compose=lambda owed: [Body(body="1", text="1", items=(1,)), Body(body="2", text="2")])

    assert await told(sql) == {"1": ["gig 2"], "2": ["gig 1", "gig 3"]}


async def test_what_is_over_the_most_is_counted_and_told_by_the_last_message(desk: Desk, sql: asyncpg.Connection):
    await owe(sql, 500)
    given: list[Owed] = []

    def compose(owed: Owed) -> list[Body]:
        given.append(owed)
        return one_each(owed)

    assert await desk.compose(compose=compose, most=2) == 2

    assert [(len(owed.items), owed.more) for owed in given] == [(2, 498)]
    assert {text: len(titles) for text, titles in (await told(sql)).items()} == {"gig 1": 1, "gig 2": 499}
    assert await open_rows(sql) == 0


async def test_very_many_are_counted_in_portions(desk: Desk, sql: asyncpg.Connection, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(module, "MOST_COUNTED", 5)
    await owe(sql, 10)

    await desk.compose(most=2)

    assert await open_rows(sql) == 3


async def test_where_nothing_is_composed_all_is_still_owed(desk: Desk, sql: asyncpg.Connection):
    await owe(sql, 3)

    assert await desk.compose(compose=lambda _: [], most=2) == 0

    assert await open_rows(sql) == 3
    assert await sql.fetchval("SELECT status FROM wakebell.jobs WHERE type = 'compose_messages'") == "done"


async def test_composing_knows_when_somebody_was_told(desk: Desk, sql: asyncpg.Connection):
    given: list[Owed] = []

    def compose(owed: Owed) -> list[Body]:
        given.append(owed)
        return plain(owed)

    for _ in range(4):
        await owe(sql)
        await desk.compose(compose=compose, most_a_day=2)

    at = [row[0] for row in await sql.fetch("SELECT created_at FROM wakebell.messages ORDER BY id")]
    assert [owed.told_at for owed in given] == [(), (at[0],), (at[1], at[0]), (at[2], at[1])]


async def test_what_a_template_tells_comes_along(desk: Desk, sql: asyncpg.Connection):
    await owe(sql)
    await sql.execute(
        "UPDATE wakebell.items SET text = 'long', fields = '{\"budget\": 7.5}', published_at = '2026-11-30 09:00Z'"
    )
    given: list[OwedItem] = []

    await desk.compose(compose=lambda owed: [*map(given.append, owed.items)] and plain(owed))

    [item] = given
    assert (item.text, item.fields) == ("long", {"budget": 7.5})
    assert item.published_at == datetime(2026, 11, 30, 9, tzinfo=UTC)


async def test_two_composings_at_once_never_share_a_row(desk: Desk, sql: asyncpg.Connection):
    await owe(sql, 100)
    jobs = [await desk.claim("compose_messages", key=f"me{number}") for number in range(4)]

    composed = await asyncio.gather(
        *(desk.messages.compose(job, recipient="me", channel="line", compose=one_each) for job in jobs),
        return_exceptions=True,
    )

    assert [made for made in composed if isinstance(made, BaseException)] == []
    told = [row[0] for row in await sql.fetch("SELECT text FROM wakebell.messages")]
    assert sorted(told) == sorted(f"gig {number}" for number in range(1, 101))
    assert await open_rows(sql) == 0


async def test_a_recipient_who_is_owed_very_much_is_told_in_portions(desk: Desk, sql: asyncpg.Connection):
    await owe(sql, module.MOST_ITEMS + 20)

    assert await desk.compose() == 1
    assert await open_rows(sql) == 20
    await desk.messages.plan(["me"])
    assert await sql.fetchval("SELECT count(*) FROM wakebell.jobs WHERE unique_key = 'me'") == 1
    assert await desk.compose() == 1
    assert await open_rows(sql) == 0


async def test_rows_that_somebody_else_has_told_roll_the_composing_back(desk: Desk, sql: asyncpg.Connection):
    await owe(sql, 2)
    await desk.compose()
    ids = [row[0] for row in await sql.fetch("SELECT id FROM wakebell.owed")]
    [message] = await sql.fetch("SELECT id FROM wakebell.messages")

    with pytest.raises(LeaseLost, match="told by somebody else"):
        async with desk.messages._database.transaction() as db:
            await module._hold_in(db, dict.fromkeys(ids, message["id"]))


async def test_a_composing_that_fails_writes_nothing(desk: Desk, sql: asyncpg.Connection):
    await owe(sql, 2)

    def broken(owed: Owed) -> list[Body]:
        raise KeyError(owed)

    with pytest.raises(KeyError):
        await desk.compose(compose=broken)

    assert await open_rows(sql) == 2
    assert await sql.fetchval("SELECT count(*) FROM wakebell.messages") == 0


async def test_a_composing_that_lost_its_lease_writes_nothing(desk: Desk, sql: asyncpg.Connection):
    await owe(sql)
    job = await desk.claim("compose_messages", key="me")
    await sql.execute("UPDATE wakebell.jobs SET lease_token = 2")

    with pytest.raises(LeaseLost):
        await desk.messages.compose(job, recipient="me", channel="line", compose=plain)

    assert await open_rows(sql) == 1


async def test_a_message_is_begun_before_it_leaves(desk: Desk):
    job, message = await desk.ready()

    trying = await desk.messages.start(job, message)

    assert isinstance(trying, Try)
    row = await desk.row()
    assert (trying.message.id, trying.message.recipient, trying.message.channel) == (message, "me", "line")
    assert (trying.message.body, trying.message.retry_key) == ("<gig 1>", row["retry_key"])
    assert (trying.unanswered, row["status"], row["attempts"]) == (False, "sending", 1)
    assert trying.message.first_tried_at == row["first_tried_at"]
    assert trying.age == timedelta(0)


async def test_a_message_that_was_begun_by_a_process_that_died_may_have_arrived(desk: Desk, sql: asyncpg.Connection):
    job, message = await desk.ready()
    first = await desk.messages.start(job, message)
    await sql.execute("UPDATE wakebell.messages SET first_tried_at = first_tried_at - interval '1 hour'")

    again = await desk.messages.start(job, message)

    assert isinstance(first, Try)
    assert isinstance(again, Try)
    assert again.unanswered
    assert again.age >= timedelta(hours=1)
    assert (again.message.body, again.message.retry_key) == (first.message.body, first.message.retry_key)


async def test_a_message_that_has_arrived_ends_with_its_job(desk: Desk):
    job, message = await desk.ready()
    await desk.messages.start(job, message)

    await desk.messages.finish_sent(job, message, Receipt(provider_id="r-1", repeated=True))

    row = await desk.row()
    assert (row["status"], row["provider_id"], row["repeated"]) == ("sent", "r-1", True)
    assert row["sent_at"] == row["finished_at"] is not None
    assert await desk.job_status(job) == "done"
    assert await desk.messages.start(job, message) is None


async def test_a_postponed_message_is_tried_again_as_it_is(desk: Desk):
    job, message = await desk.ready()
    begun = await desk.messages.start(job, message)

    await desk.messages.postpone(job, message, "429\x00", delay=timedelta(minutes=1), unanswered=False)

    assert (await desk.row())["status"] == "retrying"
    assert (await desk.row())["last_error"] == "429"
    assert await desk.job_status(job) == "pending"
    again = await desk.messages.start(await desk.claim(token=2), message)
    assert isinstance(begun, Try)
    assert isinstance(again, Try)
    assert not again.unanswered
    assert (again.message.body, again.message.retry_key) == (begun.message.body, begun.message.retry_key)
    assert again.message.first_tried_at == begun.message.first_tried_at


async def test_that_no_answer_came_is_not_forgotten(desk: Desk):
    job, message = await desk.ready()
    await desk.messages.start(job, message)
    await desk.messages.postpone(job, message, "no answer", delay=timedelta(minutes=1), unanswered=True)
    job = await desk.claim(token=2)
    await desk.messages.start(job, message)
    await desk.messages.postpone(job, message, "429", delay=timedelta(minutes=1), unanswered=False)

    again = await desk.messages.start(await desk.claim(token=3), message)

    assert isinstance(again, Try)
    assert again.unanswered


@pytest.mark.parametrize(("uncertain", "status"), [(False, "failed"), (True, "uncertain")])
async def test_a_message_that_is_given_up_fails_its_job(desk: Desk, uncertain: bool, status: str):  # noqa: FBT001
    job, message = await desk.ready()
    await desk.messages.start(job, message)

    await desk.messages.give_up(job, message, "blocked", uncertain=uncertain)

    row = await desk.row()
    assert (row["status"], row["last_error"]) == (status, "blocked")
    assert row["finished_at"] is not None
    assert row["sent_at"] is None
    assert await desk.job_status(job) == "failed"


ENDINGS = {
    "sent": lambda messages, job, id_: messages.finish_sent(job, id_, Receipt()),
    "postponed": lambda messages, job, id_: messages.postpone(job, id_, "", delay=timedelta(1), unanswered=True),
    "given up": lambda messages, job, id_: messages.give_up(job, id_, "", uncertain=False),
}


@pytest.mark.parametrize("ending", ENDINGS)
async def test_a_sending_that_lost_its_lease_writes_nothing(desk: Desk, sql: asyncpg.Connection, ending: str):
    job, message = await desk.ready()
    await desk.messages.start(job, message)
    await sql.execute("UPDATE wakebell.jobs SET lease_token = 2 WHERE status = 'running'")
    before = await desk.row()

    with pytest.raises(LeaseLost):
        await ENDINGS[ending](desk.messages, job, message)

    assert await desk.row() == before


@pytest.mark.parametrize("lost", ["lease_token = 2", "lease_until = now() - interval '1 second'"])
async def test_a_message_is_not_begun_under_a_lost_lease(desk: Desk, sql: asyncpg.Connection, lost: str):
    job, message = await desk.ready()
    await sql.execute(f"UPDATE wakebell.jobs SET {lost} WHERE status = 'running'")

    with pytest.raises(LeaseLost):
        await desk.messages.start(job, message)

    assert (await desk.row())["status"] == "queued"
    assert (await desk.messages.plan(["me"])).abandoned == 0, "its job will bring it to its end"


@pytest.mark.parametrize(
    ("begun", "status"),
    [("queued", "failed"), ("sending", "uncertain"), ("retrying", "uncertain")],
)
async def test_a_message_without_a_job_is_over(desk: Desk, sql: asyncpg.Connection, begun: str, status: str):
    await desk.ready()
    await sql.execute("UPDATE wakebell.messages SET status = $1", begun)
    assert (await desk.messages.plan([])).abandoned == 0
    await sql.execute("UPDATE wakebell.jobs SET status = 'failed', finished_at = now() WHERE type = 'send_message'")

    assert (await desk.messages.plan([])).abandoned == 1
    assert (await desk.messages.plan([])).abandoned == 0

    row = await desk.row()
    assert row["status"] == status
    assert "every process that tried to send it died" in row["last_error"]


async def test_a_note_goes_to_the_inbox_and_needs_no_sending(messages: Messages, sql: asyncpg.Connection):
    await messages.note("Watching\x00 board")

    [note] = await messages.latest("inbox")
    assert (note["status"], note["text"]) == ("sent", "Watching board")
    assert await sql.fetchval("SELECT count(*) FROM wakebell.jobs") == 0


async def test_the_latest_are_told_newest_first(messages: Messages):
    for words in ("one", "two", "three"):
        await messages.note(words)

    newest = await messages.latest("inbox", most=2)
    after = await messages.latest("inbox", after=int(str(newest[1]["id"])))

    assert [note["text"] for note in newest] == ["three", "two"]
    assert [note["text"] for note in after] == ["three"]


async def test_old_messages_are_pruned_and_what_they_told_with_them(desk: Desk, sql: asyncpg.Connection):
    job, message = await desk.ready()
    await desk.messages.start(job, message)
    await desk.messages.finish_sent(job, message, Receipt())
    await desk.ready()
    await sql.execute("UPDATE wakebell.messages SET finished_at = now() - interval '91 days' WHERE status = 'sent'")
    await sql.execute("UPDATE wakebell.messages SET created_at = now() - interval '91 days'")

    assert await desk.messages.prune(keep=timedelta(days=90), most=10) == 1
    assert await desk.messages.prune(keep=timedelta(days=90), most=10) == 0

    assert [row[0] for row in await sql.fetch("SELECT status FROM wakebell.messages")] == ["queued"]
    assert await sql.fetchval("SELECT count(*) FROM wakebell.owed") == 1
    assert await sql.fetchval("SELECT count(*) FROM wakebell.items") == 2, "known all the same"
