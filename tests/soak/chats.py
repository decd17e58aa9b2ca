"""`python -m tests.soak.chats`: people talk to two replicas behind nginx, of which one or the other is killed.

Every message is delivered two or three times, its copies at random moments. Each is to be answered once, in the order
of its person's, and each answer is to know the last turns.
"""

from __future__ import annotations

import argparse
import asyncio
import base64
import hashlib
import hmac
import json
import os
import random
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from textwrap import dedent
from typing import Any

import httpx

from app.dev import postgres
from app.stores.migrations import migrate
from tests.fakes.line import TOKEN, Line
from tests.fakes.nginx import Balancer, balancer, free_port
from tests.fakes.redis_server import redis_server
from tests.flow.processes import Nursery, Process
from tests.flow.service import BEARER, SECRET
from tests.soak.trial import Found

CHANNEL_SECRET = "the-channel-secret-of-the-soak"

CONFIGURATION = """
[channels.line]
kind = "line"
token = "{token}"
base_url = "{line}"

[chats.clinic]
kind = "line"
secret = "{secret}"
channel = "line"
job = "answer_person"
reply_budget_seconds = {budget}
"""
ANSWER = """
    import json

    from pydantic import BaseModel

    from app.domain.jobs import Done


    class Payload(BaseModel):
        text: str
        turns: list[dict]


    async def handle(payload, ctx):
        after = [turn["text"] for turn in payload.turns if turn["side"] == "person"]
        own = sum(turn["side"] == "service" for turn in payload.turns)
        return Done(json.dumps({"to": payload.text, "after": after, "own": own}))
"""
REMEMBERED = 6
"""Exchanges: twelve turns."""

TICK_SECONDS = 2.0
GIVEN_UP_SECONDS = 240.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Talk:
    """How much is said."""

    people: int
    messages: int

    kill_every: float | None
    """Seconds; None: nobody is killed."""

    kills: int | None = None
    """At most so many; None: as long as it lasts."""

    spread: float = 3.0
    """Seconds in which the copies of a message come."""

    budget: int = 5
    """Seconds of a reply and of a tick: what a killed process had in hand is held up for as long, and some more."""


async def talk(
    size: Talk,
    *,
    database_url: str,
    folder: Path,
    nursery: Nursery,
    redis_url: str | None = None,
    in_between: Callable[[], None] | None = None,
    seed: int = 1,
) -> Found:
    """One run, on a migrated database. `in_between` is called when half of it is said."""
    async with AsyncExitStack() as stack:
        line = await stack.enter_async_context(Line())
        ports = [free_port(), free_port()]
        changes = {f"127.0.0.1:808{place}": f"127.0.0.1:{port}" for place, port in enumerate(ports, 1)}
        front = await stack.enter_async_context(balancer("nginx.conf", changes))
        (folder / "handlers").mkdir()
        (folder / "handlers" / "answer_person.py").write_text(dedent(ANSWER), "utf-8")
        written = CONFIGURATION.format(token=TOKEN, line=line.url, secret=CHANNEL_SECRET, budget=size.budget)
        (folder / "wakebell.toml").write_text(written, "utf-8")
        environ = {"DATABASE_URL": database_url, "CRON_SECRET": SECRET, "PUBLIC_URL": front.url}
        if redis_url is not None:
            environ["REDIS_URL"] = redis_url
        run = _Run(size, line, front, random.Random(seed))
        run.in_between = in_between
        run.replicas = _Replicas(folder, nursery, environ, ports)
        stack.callback(run.replicas.clear_away)
        return await run.run()


class _Replicas:
    def __init__(self, folder: Path, nursery: Nursery, environ: dict[str, str], ports: list[int]) -> None:
        self._folder = folder
        self._nursery = nursery
        self._environ = environ
        self._ports = ports
        self._alive: list[Process] = []
        self.kills = 0

    async def start(self) -> None:
        self._alive = [self._bear(port) for port in self._ports]
        for port in self._ports:
            await _listens(port)

    async def kill(self, place: int) -> None:
        """And start it again."""
        self._alive[place].kill()
        await self._alive[place].ended()
        self.kills += 1
        self._alive[place] = self._bear(self._ports[place])
        await _listens(self._ports[place])

    def clear_away(self) -> None:
        for process in self._alive:
            process.clear_away()

    def _bear(self, port: int) -> Process:
        return self._nursery.bear(
            ["serve"],
            folder=self._folder,
            log=self._folder / f"log-{port}-{self.kills}",
            environ={**self._environ, "HOST": "127.0.0.1", "PORT": str(port)},
            die_at=None,
        )


class _Run:
    def __init__(self, size: Talk, line: Line, front: Balancer, chance: random.Random) -> None:
        self._size = size
        self._line = line
        self._front = front
        self._chance = chance
        self.replicas: _Replicas
        self.in_between: Callable[[], None] | None = None
        self._copies = 0
        self._waits: list[float] = []
        self._found = Found()

    async def run(self) -> Found:
        await self.replicas.start()
        begun = time.monotonic()
        async with self._client() as http, self._beside(self._ring(http)), self._beside(self._kill()):
            with suppress(TimeoutError):
                async with asyncio.timeout(GIVEN_UP_SECONDS + self._size.people * self._size.messages / 5):
                    await asyncio.gather(*(self._person(http, person) for person in range(self._size.people)))
                    while len(self._answered()) < self._size.people * self._size.messages:  # noqa: ASYNC110 - others'
                        await asyncio.sleep(0.1)
        self._judge(time.monotonic() - begun)
        return self._found

    @asynccontextmanager
    async def _client(self) -> AsyncIterator[httpx.AsyncClient]:
        limits = httpx.Limits(max_connections=64)
        async with httpx.AsyncClient(trust_env=False, timeout=60, limits=limits) as http:
            yield http

    @asynccontextmanager
    async def _beside(self, work: Any) -> AsyncIterator[None]:
        task = asyncio.create_task(work)
        try:
            yield
        finally:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task

    async def _ring(self, http: httpx.AsyncClient) -> None:
        """As a scheduler does, only oftener."""
        while True:
            with suppress(httpx.HTTPError):
                budget = {"budget": self._size.budget}
                await http.post(f"{self._front.url}/api/cron/tick", params=budget, headers=BEARER)
            await asyncio.sleep(TICK_SECONDS)

    async def _kill(self) -> None:
        place = 0
        while self._size.kill_every is not None and self.replicas.kills != self._size.kills:
            await asyncio.sleep(self._size.kill_every)
            await self.replicas.kill(place)
            place = 1 - place

    async def _person(self, http: httpx.AsyncClient, person: int) -> None:
        """One message after the other has been taken; copies come whenever they like."""
        late: list[asyncio.Task[None]] = []
        for number in range(self._size.messages):
            await asyncio.sleep(self._chance.random())
            if number == self._size.messages // 2 and self.in_between is not None:
                between, self.in_between = self.in_between, None
                between()
            copies = self._chance.choice((1, 2))
            self._copies += copies
            late += [
                asyncio.create_task(self._deliver(http, person, number, self._chance.random() * self._size.spread))
                for _ in range(copies)
            ]
            await self._deliver(http, person, number, 0)
        await asyncio.gather(*late)

    async def _deliver(self, http: httpx.AsyncClient, person: int, number: int, delay: float) -> None:
        """Until it is taken, as a provider does that repeats what failed."""
        await asyncio.sleep(delay)
        request = _signed(person, number)
        while True:
            begun = time.monotonic()
            try:
                answer = await http.post(f"{self._front.url}/api/webhooks/clinic", **request)
            except httpx.HTTPError:
                await asyncio.sleep(0.2)
                continue
            if answer.status_code == httpx.codes.OK:
                self._waits.append(time.monotonic() - begun)
                return
            assert answer.status_code in {502, 503}, answer.text
            await asyncio.sleep(0.2)

    def _answers(self) -> list[dict[str, Any]]:
        texts = [text for reply in self._line.replies.values() for text in reply.texts]
        texts += [text for push in self._line.accepted.values() for text in push.texts]
        return [json.loads(text) for text in texts]

    def _answered(self) -> set[str]:
        return {answer["to"] for answer in self._answers()}

    def _judge(self, seconds: float) -> None:
        answers = self._answers()
        wanted = [_text(person, number) for person in range(self._size.people) for number in range(self._size.messages)]
        times = Counter(answer["to"] for answer in answers)
        faults = {
            "not answered": [text for text in wanted if not times[text]],
            "answered more than once": [text for text, count in times.items() if count > 1],
            "answered without the right last turns": [answer["to"] for answer in answers if not _knows(answer)],
            "answered before an earlier one of the same person": _disordered(answers),
        }
        self._found.faults += [f"{len(found)} {told}: {found[:5]}" for told, found in faults.items() if found]
        waits = sorted(self._waits) or [0.0]
        served = self._front.served()
        self._found.figures |= {
            "People, messages of each": f"{self._size.people}, {self._size.messages}",
            "Copies delivered": f"{self._copies + len(wanted):,}",
            "Replicas killed": str(self.replicas.kills),
            "Answered, by push": f"{len(answers):,}, {len(self._line.accepted):,}",
            "Seconds": f"{seconds:.0f}",
            "Webhook answered, median, 99 %": f"{waits[len(waits) // 2]:.3f} s, {waits[len(waits) * 99 // 100]:.3f} s",
            "Requests of each replica": ", ".join(f"{count / served.total():.0%}" for count in served.values()),
        }


def _knows(answer: dict[str, Any]) -> bool:
    """Its person's last messages, and as many answers of ours."""
    person, number = map(int, answer["to"].split("-"))
    before = [_text(person, earlier) for earlier in range(number)][-REMEMBERED:]
    return bool(answer["after"] == before and answer["own"] == len(before))


def _disordered(answers: list[dict[str, Any]]) -> list[str]:
    newest: dict[int, int] = {}
    found = []
    for answer in answers:
        person, number = map(int, answer["to"].split("-"))
        if number < newest.get(person, -1):
            found.append(answer["to"])
        newest[person] = max(number, newest.get(person, -1))
    return found


def _text(person: int, number: int) -> str:
    return f"{person}-{number}"


def _signed(person: int, number: int) -> dict[str, Any]:
    event = {
        "type": "message",
        "mode": "active",
        "timestamp": round(time.time() * 1000),
        "source": {"type": "user", "userId": f"U{person:032x}"},
        "webhookEventId": f"01SOAK{person:010d}{number:010d}",
        "deliveryContext": {"isRedelivery": False},
        "replyToken": f"token-{person}-{number}",
        "message": {"id": f"{person}{number:04d}", "type": "text", "text": _text(person, number)},
    }
    content = json.dumps({"destination": "Ubot", "events": [event]}).encode()
    signature = base64.b64encode(hmac.digest(CHANNEL_SECRET.encode(), content, hashlib.sha256)).decode()
    return {"content": content, "headers": {"x-line-signature": signature, "Content-Type": "application/json"}}


async def _listens(port: int) -> None:
    async with asyncio.timeout(60):
        while True:
            with suppress(OSError):
                _, wire = await asyncio.open_connection("127.0.0.1", port)
                wire.close()
                return
            await asyncio.sleep(0.02)


async def _whole(size: Talk, folder: Path, nursery: Nursery, *, redis: bool) -> Found:
    async with AsyncExitStack() as stack:
        server = await asyncio.to_thread(postgres.start, folder / "postgres", options={"max_connections": "100"})
        stack.push_async_callback(asyncio.to_thread, server.stop)
        await migrate(server.url)
        url = (await stack.enter_async_context(redis_server())).url if redis else None
        return await talk(size, database_url=server.url, folder=folder, nursery=nursery, redis_url=url)


def main() -> int:
    """Exit status 1 when something was not as it must be; then everything is left in a folder that is named."""
    parser = argparse.ArgumentParser(prog="python -m tests.soak.chats", description=__doc__)
    parser.add_argument("--people", type=int, default=200)
    parser.add_argument("--messages", type=int, default=10)
    parser.add_argument("--kill-every", type=float, default=4.0, metavar="S", help="seconds")
    parser.add_argument("--redis", action="store_true", help="conversations are remembered in Redis")
    args = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="wakebell-chats-"))
    folder.chmod(0o755)  # as root, PostgreSQL runs as another user
    nursery = Nursery()
    size = Talk(people=args.people, messages=args.messages, kill_every=args.kill_every)
    try:
        found = asyncio.run(_whole(size, folder, nursery, redis=args.redis))
    finally:
        nursery.close()
    print(f"{datetime.now(UTC):%Y-%m-%d}, {os.cpu_count()} cores\n\n{found.table}")  # noqa: T201 - a command prints
    if found.faults:
        print("\n".join(["", *found.faults, f"Logs and data: {folder}"]), file=sys.stderr)  # noqa: T201
        return 1
    shutil.rmtree(folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())
