"""What users test their handlers with."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import ModuleType
from typing import Any
from urllib.parse import urlsplit

import asyncpg
import httpx
import pytest
import respx
from pydantic import BaseModel, ValidationError

from app import testing
from app.domain.errors import ConfigError, PermanentFailure, ServiceError, TemporaryFailure
from app.domain.jobs import Discard, Done, NewJob, Snooze
from app.stores import testing as databases
from app.testing import JobsFailed, Queue
from tests.fakes.batches import AnyPayload

ROOT = Path(__file__).parent.parent

SHOP = """
from datetime import timedelta

from pydantic import BaseModel
from sqlalchemy import text

from app.domain.errors import PermanentFailure, TemporaryFailure
from app.domain.jobs import Discard, Done, NewJob, Snooze


class Payload(BaseModel):
    order: int
    how: str = "well"


async def handle(payload, ctx):
    match payload.how:
        case "well":
            return Done({"order": payload.order, "attempt": ctx.job.attempt})
        case "silently":
            return None
        case "gone":
            return Discard("there is no such order")
        case "later":
            return Snooze(timedelta(minutes=10))
        case "down":
            raise TemporaryFailure("the shop is down")
        case "refused":
            raise PermanentFailure("the shop refuses us")
        case "bug":
            raise KeyError("paid")
        case "nonsense":
            return 42
        case "asking":
            answer = await ctx.http.get(f"https://shop.example/orders/{payload.order}")
            return Done(answer.json())
        case "writing":
            async with ctx.transaction() as db:
                await db.execute(text("CREATE TABLE public.receipts AS SELECT 17 AS number"))
            return Snooze(timedelta(minutes=10))
        case "following":
            await ctx.stores.jobs.enqueue(type="mail", payload={"order": payload.order})
"""
MAIL = """
import threading
from datetime import timedelta

from pydantic import BaseModel

TIMEOUT = timedelta(seconds=0.2)


class Payload(BaseModel):
    order: int = 0
    hangs: bool = False


def handle(payload, ctx):
    if payload.hangs:
        threading.Event().wait(5)
    if payload.order == 13:
        raise ValueError("unlucky")
    assert threading.current_thread() is not threading.main_thread()
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "handlers").mkdir()
    (tmp_path / "handlers" / "shop.py").write_text(SHOP)
    (tmp_path / "handlers" / "mail.py").write_text(MAIL)
    return tmp_path / "handlers"


@pytest.fixture
async def queue(folder: Path, database_url: str) -> AsyncIterator[Queue]:
    async with testing.queue(folder, database_url=database_url) as queue:
        yield queue


@pytest.fixture
async def sql(database_url: str) -> AsyncIterator[asyncpg.Connection]:
    connection = await asyncpg.connect(database_url)
    yield connection
    await connection.close()


# ---------------------------------------------------------------------------------------------------- one handler alone


@pytest.mark.parametrize(
    ("how", "outcome"),
    [
        ("well", Done({"order": 17, "attempt": 1})),
        ("silently", Done()),
        ("gone", Discard("there is no such order")),
        ("later", Snooze(timedelta(minutes=10))),
    ],
)
async def test_a_handler_alone_gives_its_outcome_and_leaves_no_job(queue: Queue, how: str, outcome: Any):
    assert await queue.run("shop", {"order": 17, "how": how}) == outcome
    assert await queue.jobs() == []


@pytest.mark.parametrize(
    ("how", "error"),
    [("down", TemporaryFailure), ("refused", PermanentFailure), ("bug", KeyError), ("nonsense", TypeError)],
)
async def test_what_a_handler_raises_is_raised_as_it_is(queue: Queue, how: str, error: type[Exception]):
    with pytest.raises(error):
        await queue.run("shop", {"order": 17, "how": how})

    assert await queue.jobs() == []


@pytest.mark.parametrize(
    ("payload", "error"),
    [({}, ValidationError), ({"order": "x"}, ValidationError), ({"order": 1, "how": "\x00"}, ValueError)],
)
async def test_a_payload_is_looked_at_as_in_the_service(queue: Queue, payload: Any, error: type[Exception]):
    with pytest.raises(error):
        await queue.run("shop", payload)


async def test_a_payload_may_be_the_handlers_own(queue: Queue):
    payload: BaseModel = vars(queue.handler("shop"))["Payload"](order=17)

    assert await queue.run("shop", payload) == Done({"order": 17, "attempt": 1})


async def test_a_handler_can_be_told_which_attempt_it_is(queue: Queue):
    assert await queue.run("shop", {"order": 17}, attempt=4) == Done({"order": 17, "attempt": 4})


async def test_a_module_is_run_as_well(queue: Queue):
    async def handle(payload: Any, ctx: Any) -> Done:
        return Done(ctx.job.type)

    module: Any = ModuleType("handlers.made_up")
    module.Payload, module.handle = AnyPayload, handle

    assert await queue.run(module) == Done("made_up")


async def test_a_handlers_own_transaction_is_committed(queue: Queue, sql: asyncpg.Connection):
    outcome = await queue.run("shop", {"order": 17, "how": "writing"})

    assert outcome == Done(), "what it returns after its transaction does not count"
    assert await sql.fetchval("SELECT number FROM public.receipts") == 17


@respx.mock
async def test_requests_are_answered_by_whoever_stands_in_for_the_network(queue: Queue):
    respx.get("https://shop.example/orders/17").mock(httpx.Response(200, json={"paid": True}))

    assert await queue.run("shop", {"order": 17, "how": "asking"}) == Done({"paid": True})


async def test_a_blocking_handler_runs_in_a_thread_and_within_its_time(queue: Queue):
    assert await queue.run("mail", {"order": 17}) == Done()
    with pytest.raises(ValueError, match="unlucky"):
        await queue.run("mail", {"order": 13})
    with pytest.raises(TimeoutError):
        await queue.run("mail", {"hangs": True})


async def test_a_type_that_is_not_there_is_told_with_those_that_are(queue: Queue):
    with pytest.raises(ServiceError, match='there is no handler "shp"; the types are: mail, shop'):
        await queue.run("shp")
    with pytest.raises(ServiceError, match="there is no handler"):
        await queue.enqueue("shp")


async def test_what_is_replaced_in_a_handler_is_what_runs(queue: Queue, monkeypatch: pytest.MonkeyPatch):
    def handle(payload: Any, ctx: Any) -> Done:
        return Done("replaced")

    monkeypatch.setattr(queue.handler("shop"), "handle", handle)
    await queue.enqueue("shop", {"order": 17})

    drained = await queue.drain()

    assert await queue.run("shop", {"order": 17}) == Done("replaced")
    assert [job.result for job in drained.jobs] == ["replaced"]


# ------------------------------------------------------------------------------------------------------------ draining


async def test_what_is_due_is_run_and_what_that_puts_in(queue: Queue):
    await queue.enqueue("shop", {"order": 17, "how": "following"})
    await queue.enqueue("shop", {"order": 18, "how": "gone"})
    await queue.enqueue("shop", {"order": 19, "how": "later"})

    drained = await queue.drain()

    assert (drained.done, drained.cancelled, drained.snoozed) == (2, 1, 1)
    assert (drained.retrying, drained.failed, drained.remaining, drained.failures) == (0, 0, 0, [])
    assert [(job.type, job.status) for job in drained.jobs] == [
        ("shop", "done"),
        ("shop", "cancelled"),
        ("shop", "pending"),
        ("mail", "done"),
    ]


async def test_a_job_that_fails_fails_the_test(queue: Queue):
    await queue.enqueue("shop", {"order": 17, "how": "bug"})
    await queue.enqueue("shop", {"order": 18, "how": "refused"})
    await queue.enqueue("shop", {"order": 19})

    with pytest.raises(JobsFailed) as caught:
        await queue.drain()

    first, *lines = str(caught.value).splitlines()
    assert first == "2 failed:"
    assert lines[0].startswith("  job 1 (shop), tried again at ")
    assert lines[0].endswith("Z: KeyError: 'paid'")
    assert lines[1] == "  job 2 (shop), given up: the shop refuses us"
    assert isinstance(caught.value, AssertionError)
    assert caught.value.__cause__ in {failure.exception for failure in caught.value.failures}
    assert [job.status for job in await queue.jobs()] == ["pending", "failed", "done"]


@pytest.mark.parametrize(
    ("type_", "payload", "told"),
    [
        ("shop", '{"order": "x"}', "the payload does not fit the handler: order: "),
        ("shop", '{"order": 1, "how": "nonsense"}', "handle() returned int, not "),
        ("mail", '{"hangs": true}', "took longer than its time-out of 0.2 s"),
        ("mail", '{"order": 13}', "ValueError: unlucky"),
        ("strange", "{}", "there is no handler of its type"),
    ],
)
async def test_whatever_goes_wrong_is_told(queue: Queue, sql: asyncpg.Connection, type_: str, payload: str, told: str):
    await sql.execute("SELECT wakebell.enqueue($1, CAST($2 AS jsonb))", type_, payload)

    drained = await queue.drain(raises=False)

    [failure] = drained.failures
    assert failure.error.startswith(told)
    assert f"job 1 ({type_})" in str(failure)
    with pytest.raises(JobsFailed):
        raise JobsFailed([failure])


async def test_a_drain_tells_what_failed_in_it_and_not_before(queue: Queue):
    await queue.enqueue("shop", {"order": 17, "how": "down"})
    first = await queue.drain(raises=False)

    second = await queue.drain()

    assert [failure.error for failure in first.failures] == ["the shop is down"]
    assert (first.retrying, second.retrying, second.jobs) == (1, 0, [])


async def test_as_many_are_run_as_the_test_says(queue: Queue):
    for order in range(5):
        await queue.enqueue("shop", {"order": order})

    drained = await queue.drain(max_jobs=2)

    assert (drained.done, drained.remaining) == (2, 3)


async def test_what_another_program_commits_is_run(queue: Queue, sql: asyncpg.Connection):
    async with sql.transaction():
        await sql.execute("CREATE TABLE orders AS SELECT 17 AS id")
        await sql.execute("SELECT wakebell.enqueue('shop', '{\"order\": 17}')")

    await queue.assert_enqueued("shop", {"order": 17})
    assert (await queue.drain()).done == 1


# ---------------------------------------------------------------------------------------------------- time that passes


async def test_tries_come_again_as_time_passes(queue: Queue):
    await queue.enqueue("shop", {"order": 17, "how": "down"}, max_attempts=3)

    tries = []
    for minutes in (0, 1, 4, 1):
        await queue.advance(minutes=minutes)
        drained = await queue.drain(raises=False)
        tries.append((drained.retrying, drained.failed))

    assert tries == [(1, 0), (1, 0), (0, 0), (0, 1)]


async def test_what_is_due_later_is_run_later_and_a_pause_goes_by(queue: Queue, sql: asyncpg.Connection):
    await queue.enqueue("shop", {"order": 17}, run_after=datetime.now(UTC) + timedelta(hours=2))
    await queue.enqueue("shop", {"order": 18}, queue="paused")
    await queue.enqueue("shop", {"order": 19}, queue="slow")
    await queue.enqueue("shop", {"order": 20}, queue="slow")
    await sql.execute("INSERT INTO wakebell.queues (name, paused_until) VALUES ('paused', now() + interval '1 hour')")
    await sql.execute("INSERT INTO wakebell.queues (name, max_starts, period_seconds) VALUES ('slow', 1, 1800)")

    done = []
    for _ in range(5):
        done.append((await queue.drain()).done)
        await queue.advance(minutes=30)

    assert done == [1, 1, 1, 0, 1]


# ----------------------------------------------------------------------------------------------------- what was put in


async def test_a_job_is_found_by_what_it_holds_at_least(queue: Queue):
    later = datetime.now(UTC) + timedelta(hours=1)
    job = await queue.enqueue("shop", {"order": 17, "how": "down"}, queue="vip", run_after=later, unique_key="k")

    found = await queue.assert_enqueued("shop", {"order": 17}, queue="vip", unique_key="k", run_after=later)

    assert found == job
    await queue.assert_enqueued("shop", run_after=timedelta(hours=1))
    await queue.assert_enqueued(queue.handler("shop"), status=None)
    await queue.refute_enqueued("mail")
    await queue.refute_enqueued("shop", {"order": 18})
    await queue.refute_enqueued("shop", {"order": 17, "more": None})
    await queue.refute_enqueued("shop", {"order": True})
    await queue.refute_enqueued("shop", queue="default")
    await queue.refute_enqueued("shop", run_after=timedelta(hours=2))
    await queue.refute_enqueued("shop", run_after=later + timedelta(minutes=1))
    await queue.refute_enqueued("shop", status="done")


async def test_objects_in_a_payload_may_hold_more_too(queue: Queue, sql: asyncpg.Connection):
    await sql.execute('SELECT wakebell.enqueue(\'shop\', \'{"a": {"b": [1, {"c": 2}], "d": 3}}\')')

    await queue.assert_enqueued("shop", {"a": {"b": [1, {"c": 2}]}})
    await queue.refute_enqueued("shop", {"a": {"b": [1]}})
    await queue.refute_enqueued("shop", {"a": {"d": {}}})


async def test_what_is_missing_is_told_with_what_is_there(queue: Queue):
    await queue.enqueue("shop", {"order": 17, "how": "ใบเสร็จ" * 100})
    for order in range(25):
        await queue.enqueue("mail", {"order": order})

    with pytest.raises(AssertionError) as caught:
        await queue.assert_enqueued("shop", {"order": 18}, queue="vip", run_after=timedelta(minutes=5))

    first, heading, job, *others = str(caught.value).splitlines()
    assert first == (
        'there is no pending job of the type shop, with {"order": 18} in its payload, '
        "due 0:05:00 after it was put in, give or take 0:00:05, queue 'vip'"
    )
    assert heading == "put in were:"
    assert job.startswith("  job 1: shop, pending, due ")
    assert ', queue default, {"how": "ใบเสร็จ' in job
    assert len(job) < 300
    assert others[-1] == "  and 6 more"


async def test_an_empty_queue_is_told_as_such(queue: Queue):
    with pytest.raises(AssertionError, match=r"there is no job of the type shop\nno job was put in"):
        await queue.assert_enqueued("shop", status=None)


async def test_what_should_not_be_there_is_told(queue: Queue):
    await queue.enqueue("shop", {"order": 17})

    with pytest.raises(AssertionError, match="job 1 is a pending job of the type shop\nput in were:\n  job 1: shop"):
        await queue.refute_enqueued("shop")


@pytest.mark.parametrize("wrong", [{"colour": "red"}, {"run_after": datetime(2027, 1, 1)}])  # noqa: DTZ001
async def test_what_cannot_be_looked_for_is_refused(queue: Queue, wrong: Any):
    with pytest.raises(TypeError):
        await queue.assert_enqueued("shop", **wrong)


async def test_jobs_are_listed_in_their_order_with_their_failures(queue: Queue):
    await queue.enqueue("shop", {"order": 17, "how": "down"})
    await queue.enqueue("mail", queue="vip")
    await queue.drain(raises=False)

    shop, mail = await queue.jobs()

    assert [failure.error for failure in shop.failures or ()] == ["the shop is down"]
    assert await queue.jobs(type="mail") == await queue.jobs(queue="vip") == await queue.jobs(status="done") == [mail]


async def test_putting_in_takes_what_the_service_takes(queue: Queue):
    with pytest.raises(ValidationError):
        await queue.enqueue("shop", {"order": "x"})
    with pytest.raises(ValueError, match="priority must be from 0 to 100"):
        await queue.enqueue("shop", {"order": 17}, priority=101)

    first = await queue.enqueue("shop", {"order": 17}, unique_key="k", then=[NewJob(type="mail")])

    assert (await queue.enqueue("shop", {"order": 18}, unique_key="k")).id == first.id
    assert [job.type for job in (await queue.drain()).jobs] == ["shop", "mail"]


# ------------------------------------------------------------------------------------------------ databases and folders


async def test_a_database_with_jobs_in_it_is_refused_unless_they_may_go(
    folder: Path, database_url: str, sql: asyncpg.Connection
):
    await sql.execute("SELECT wakebell.enqueue('shop')")

    with pytest.raises(ServiceError, match="already: name one for tests alone, or pass clear=True"):
        async with testing.queue(folder, database_url=database_url):
            pass
    assert await sql.fetchval("SELECT count(*) FROM wakebell.jobs") == 1
    async with testing.queue(folder, database_url=database_url, clear=True) as queue:
        assert await queue.jobs() == []


async def test_a_database_is_left_as_it_was_found(folder: Path, empty_database_url: str):
    async with testing.queue(folder, database_url=empty_database_url) as queue:
        await queue.enqueue("shop", {"order": 17})
    async with testing.queue(folder, database_url=empty_database_url) as queue:
        assert await queue.jobs() == []


async def test_a_server_of_ones_own_gets_a_database_for_the_time_of_a_test(database_url: str, sql: asyncpg.Connection):
    async with testing.database(database_url) as url:
        other = await asyncpg.connect(url)
        await other.execute("SELECT wakebell.enqueue('shop')")  # and its connection is still open at the end

    assert (name := urlsplit(url).path[1:]).startswith(databases.PREFIX)
    assert not await sql.fetchval("SELECT EXISTS (SELECT FROM pg_database WHERE datname = $1)", name)
    await other.close()


async def test_a_configuration_is_read_with_what_it_asks_of_the_environment(
    tmp_path: Path, folder: Path, database_url: str
):
    (tmp_path / "wakebell.toml").write_text('[service]\nname = "env:NAME"\n[channels.hook]\nkind = "inbox"\n')

    async with testing.queue(
        database_url=database_url, config=tmp_path / "wakebell.toml", environ={"NAME": "gigs"}
    ) as queue:
        settings = queue._service.settings
        assert await queue.run("shop", {"order": 17, "how": "silently"}) == Done()

    assert (settings.service.name, settings.service.handlers) == ("gigs", folder)


@pytest.mark.parametrize("text_", ["this is no Python", "import nothing_of_that_name", "x = 1"])
async def test_a_handler_that_cannot_be_used_is_told(folder: Path, database_url: str, text_: str):
    (folder / "broken.py").write_text(text_)

    with pytest.raises(ConfigError, match=r"broken\.py"):
        async with testing.queue(folder, database_url=database_url):
            pass


async def test_a_folder_that_is_not_there_is_told(tmp_path: Path, database_url: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)

    with pytest.raises(ConfigError, match="there is no folder handlers of handlers in "):
        async with testing.queue(database_url=database_url):
            pass


async def test_two_queues_at_once_know_nothing_of_each_other(folder: Path, database_url: str):
    done = []

    async def one() -> None:
        async with testing.database(database_url) as url, testing.queue(folder, database_url=url) as queue:
            await queue.enqueue("shop", {"order": 17})
            done.append((await queue.drain()).done)

    await asyncio.gather(one(), one())

    assert done == [1, 1]


def test_the_service_knows_nothing_of_it():
    told = "import sys, app.cli, app.main, app.dev.session; print([n for n in sys.modules if 'testing' in n])"

    done = subprocess.run([sys.executable, "-c", told], cwd=ROOT, capture_output=True, text=True, check=True)

    assert [name for name in eval(done.stdout) if name.startswith("app.")] == []
