"""What plans and handlers are given, and what lives as long as the process."""

from __future__ import annotations

import asyncio
import random
import time
from collections import Counter
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from http.cookiejar import CookieJar, DefaultCookiePolicy
from typing import TYPE_CHECKING, Any, Protocol

import httpx

from app import __version__
from app.domain.limits import GRACE, REPORTING
from app.domain.tally import Tally
from app.stores.jobs import finish_in, lock_in

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Coroutine, Mapping
    from contextlib import AbstractAsyncContextManager

    from pydantic import BaseModel

    from app.domain.jobs import Job, Outcome
    from app.settings import Settings
    from app.stores import Stores
    from app.stores.database import HandlersConnection


TRANSACTIONS = 4
"""Of handlers at once; a pool has six connections."""


SETTLING_SECONDS = 10.0
"""What goes on after an answer has so long from the order to stop on: jobs have 8 seconds, and a host has patience for
30, of which requests that are running may take 20."""

CUTTING_SECONDS = 1.0
"""And then so long to let go."""


class Handler(Protocol):
    """What a handler's file has; it may also name its `TIMEOUT`, a timedelta, and its `RETRY`, a tuple of them."""

    Payload: type[BaseModel]

    async def handle(self, payload: Any, ctx: Context) -> Outcome:
        """Do the work. May raise TemporaryFailure or PermanentFailure; anything else is a bug, and tried again."""
        ...


@dataclass(frozen=True, slots=True)
class Deadline:
    """The bounds of a tick, by this process's monotonic clock: leases and due times are the database's matter."""

    budget: timedelta
    started: float = field(default_factory=time.monotonic)

    @property
    def elapsed(self) -> timedelta:
        """Since the tick began."""
        return timedelta(seconds=time.monotonic() - self.started)

    @property
    def exhausted(self) -> bool:
        """The budget is used up: nothing is started any more."""
        return time.monotonic() - self.started >= self.budget.total_seconds()

    @property
    def whole(self) -> timedelta:
        """What a job that started with the tick may take."""
        return self.budget + GRACE - REPORTING

    @property
    def ends(self) -> float:
        """When a job must be over, by the monotonic clock."""
        return self.started + self.whole.total_seconds()

    @property
    def left(self) -> timedelta:
        """What a job that starts now may take; never negative."""
        return max(self.whole - self.elapsed, timedelta(0))


class Stopping:
    """Whether this process was told to stop (SIGTERM): then nothing is claimed any more."""

    def __init__(self) -> None:
        self._event = asyncio.Event()
        self._since: float | None = None

    def request(self) -> None:
        """Say so. More than once changes nothing."""
        if self._since is None:
            self._since = time.monotonic()
        self._event.set()

    @property
    def seconds(self) -> float:
        """Since it was said first; 0: it was not."""
        return 0.0 if self._since is None else time.monotonic() - self._since

    @property
    def requested(self) -> bool:
        """Whether it was said."""
        return self._event.is_set()

    async def wait(self) -> None:
        """Until it is said."""
        await self._event.wait()


@dataclass(frozen=True, slots=True, kw_only=True)
class Service:
    """What lives as long as the process."""

    settings: Settings
    stores: Stores
    handlers: Mapping[str, Any]
    """The job types that users may put in by name, as `app.handlers.known_to` reads them."""

    stopping: Stopping = field(default_factory=Stopping)
    transactions: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(TRANSACTIONS))
    """What handlers' own transactions have of the pool's connections: the rest is for whoever claims and finishes."""

    random: random.Random = field(default_factory=random.SystemRandom)

    afterwards: set[asyncio.Task[None]] = field(default_factory=set)
    """What goes on after a request was answered; held for as long as it lasts, and nothing is lost with it."""

    rings: Counter[str] = field(default_factory=Counter)
    """How many rings for each chat are in flight from here; lost with the process, as they are."""

    ring_again: set[str] = field(default_factory=set)
    """Chats for which one of those is to ring once more."""

    def go_on(self, work: Coroutine[Any, Any, None]) -> None:
        """Do this beside whatever comes next. It must not fail, and must harm nobody when it is cut off."""
        task = asyncio.create_task(work)
        self.afterwards.add(task)
        task.add_done_callback(self.afterwards.discard)

    async def settle(self) -> None:
        """Wait for what goes on, for a while: the process ends. What is cut off is done by whoever comes next."""
        ends = time.monotonic() + max(SETTLING_SECONDS - self.stopping.seconds, CUTTING_SECONDS)
        while self.afterwards and (left := max(ends - time.monotonic(), 0)):
            await asyncio.wait(self.afterwards, timeout=left)
        cut = set(self.afterwards)
        for task in cut:
            task.cancel()
        if cut:
            await asyncio.wait(cut, timeout=CUTTING_SECONDS)

    @property
    def user_agent(self) -> str:
        """How the service names itself to sources."""
        return user_agent(self.settings)

    @asynccontextmanager
    async def batch(self, *, budget: timedelta, max_jobs: int, trigger: str) -> AsyncIterator[Context]:
        """The context of one tick: its connections to the database and to the world end with it."""
        async with self.stores.database.held(), outbound(self.user_agent) as http:
            yield Context(
                service=self,
                http=http,
                deadline=Deadline(budget),
                max_jobs=max_jobs,
                trigger=trigger,
            )


@dataclass(slots=True)
class Progress:
    """How far a run is."""

    settled: bool = False
    """The handler's own transaction has finished the job."""

    waited: bool = False
    """It gave way to others: whatever cancels its task may do so at any time from then on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """What lives as long as a tick; a handler's also names its job."""

    service: Service
    http: httpx.AsyncClient
    deadline: Deadline
    max_jobs: int
    trigger: str
    tally: Tally = field(default_factory=Tally)
    job: Job | None = None
    progress: Progress = field(default_factory=Progress)

    def of(self, job: Job) -> Context:
        """The same for one run of a job."""
        return Context(
            service=self.service,
            http=self.http,
            deadline=self.deadline,
            max_jobs=self.max_jobs,
            trigger=self.trigger,
            tally=self.tally,
            job=job,
        )

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[HandlersConnection]:
        """A handler's own writes, committed together with the end of its job: they happen exactly once.

        Use it once, for all that is to be written: the job is `done` with it, and what the handler returns or raises
        after it does not count any more. An exception inside rolls everything back, and is a failed attempt.

        Raises:
            LeaseLost: another tick has the job; nothing is written.
            RuntimeError: it was used already.
        """
        job = self.current_job
        if self.progress.settled:
            raise RuntimeError("ctx.transaction() has finished the job already; use it once, for all that is written")
        async with self.service.transactions, self.stores.database.sqlalchemy() as db:
            await lock_in(db, job)
            yield db
            await finish_in(db, job, "done")
        self.progress.settled = True

    @asynccontextmanager
    async def reaching(self, *, deny_private: bool) -> AsyncIterator[httpx.AsyncClient]:
        """`http`, or with `deny_private` a client that goes to public addresses only, redirects included.

        The latter for whatever address a stranger has given, by chat or by the API.
        """
        if not deny_private:
            yield self.http
            return
        async with guarded(self.service.user_agent) as http:
            yield http

    @asynccontextmanager
    async def calling(self, *, private: bool) -> AsyncIterator[httpx.AsyncClient]:
        """A client for addresses that jobs name: past every proxy of the environment, which is not meant to see them.

        Without `private` to public addresses only.
        """
        async with (unproxied if private else guarded)(self.service.user_agent) as http:
            yield http

    @property
    def settings(self) -> Settings:
        """The service's configuration."""
        return self.service.settings

    @property
    def stores(self) -> Stores:
        """The database."""
        return self.service.stores

    @property
    def random(self) -> random.Random:
        """Chance, for jitter."""
        return self.service.random

    @property
    def current_job(self) -> Job:
        """The job being run.

        Raises:
            LookupError: outside of a handler.
        """
        if self.job is None:
            raise LookupError("only a handler has a job")
        return self.job


def user_agent(settings: Settings) -> str:
    """How the service names itself to others, with its address where it has one."""
    name = settings.service.name.encode("ascii", "ignore").decode().strip() or "wakebell"  # a header is ASCII
    about = (settings.environment.public_url or "").encode("ascii", "ignore").decode()
    return f"Wakebell/{__version__} ({name}{f'; +{about}' if about else ''})"


@asynccontextmanager
async def outbound(user_agent: str, *, trust_env: bool = True) -> AsyncIterator[httpx.AsyncClient]:
    """An HTTP client whose connections are closed at the end: an open one keeps some hosts awake."""
    limits = httpx.Limits(max_connections=40, max_keepalive_connections=20)
    async with httpx.AsyncClient(
        headers={"User-Agent": user_agent}, cookies=_no_cookies(), limits=limits, verify=_tls(), trust_env=trust_env
    ) as http:
        yield http


def unproxied(user_agent: str) -> AbstractAsyncContextManager[httpx.AsyncClient]:
    """The same, directly: whatever proxy the environment names."""
    return outbound(user_agent, trust_env=False)


@asynccontextmanager
async def guarded(user_agent: str) -> AsyncIterator[httpx.AsyncClient]:
    """The same, to public addresses only."""
    from app.clients.guard import PublicTransport  # noqa: PLC0415 - httpcore, which only a guarded source needs

    async with httpx.AsyncClient(
        headers={"User-Agent": user_agent}, cookies=_no_cookies(), transport=PublicTransport(verify=_tls())
    ) as http:
        yield http


def _no_cookies() -> CookieJar:
    """What one job's server sets, another job must not send."""
    return CookieJar(DefaultCookiePolicy(allowed_domains=[]))


def _tls() -> Any:
    """One certificate store a process: reading it takes longer than an idle tick."""
    global _TLS  # noqa: PLW0603 - made at the first use, since a cold start may not need it
    if _TLS is None:
        _TLS = httpx.create_ssl_context()
    return _TLS


_TLS: Any = None
