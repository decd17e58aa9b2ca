"""Every problem at once: configuration, secrets, handlers, database."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from app import chatting, inbox, main, plugins, reminded, scheduled, settings
from app.api.sources import NEED_A_PERSON, standing
from app.domain import conditions, pace
from app.domain.errors import ConfigError, ServiceError
from app.domain.jobs import BUILT_IN
from app.stores.database import connect
from app.stores.schema import schema_state, unfit_database

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from app.context import Service
    from app.domain.schedules import Known
    from app.settings import Recipient, Settings, SourceSettings
    from app.stores.schema import SchemaState

SHUT = "its channel takes nothing, or nobody is at its address; the alert about it says why"

MIGRATE = "run `wakebell migrate`, or set AUTO_MIGRATE=1 where your host runs no command before a release"


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What a check found."""

    lines: list[str]
    """What is configured, for people."""

    problems: list[str]
    """One sentence each: where, what, what to change."""


def loads(environ: Mapping[str, str]) -> bool:
    """Whether the configuration can be read, secrets and all."""
    try:
        settings.load(environ, need={"CRON_SECRET"})
    except ConfigError:
        return False
    return True


async def run(environ: Mapping[str, str], known: Sequence[str] = (), *, database: bool = True) -> Found:
    """Look at everything that a start and a tick need; change and send nothing.

    `known` are problems found before. Without `database` that one is left alone.
    """
    problems = list(known)
    lines: list[str] = []
    configured = None
    try:
        configured = settings.load(environ, need={"CRON_SECRET"})
        lines += _described(configured)
        lines += _handlers(main.build(configured)) if database else []
    except ConfigError as error:
        problems += error.problems
    state = None
    if database:
        state, found = await _schema(environ)
        lines += _told_of(state, auto=settings.load_database(environ).auto_migrate)
        problems += [problem for problem in found if problem not in problems]
    there = state in {"current", "ahead"}
    if there and configured is not None and not problems:
        problems += await _queries(configured)
    if configured is not None:
        lines += reminded.lines(configured)
        lines += await _schedules(configured, database=there and not problems)
    if there and configured is not None and not problems:
        lines += await _troubles(configured)
    return Found(lines=lines if problems else [*lines, _summed_up(lines)], problems=problems)


def _summed_up(lines: Sequence[str]) -> str:
    if any(inbox.UNHANDLED in line for line in lines):
        return "it will start; the lines above say which jobs nobody handles"
    idle = sum(conditions.NEVER in line for line in lines)
    return f"it will start; {idle} of the lines above says what can never match" if idle else "everything is in order"


async def _queries(configured: Settings) -> list[str]:
    """What is wrong with reminders that read a table of the user's."""
    if not any(reminder.query for reminder in configured.reminders.values()):
        return []
    stores = main.build(configured).stores
    async with stores.database.held():
        return await reminded.problems(configured, stores)


async def _schedules(configured: Settings, *, database: bool) -> list[str]:
    """Each in words, with its next slots: by the database's clock and from what it knows, where it can be asked."""
    now = datetime.now(UTC)
    known: dict[str, Known] = {}
    if database and configured.schedules:
        try:
            stores = main.build(configured).stores
            async with stores.database.held():
                now, known = await stores.schedules.read()
        except ServiceError:  # it has just been reached
            pass
    rings = configured.tick.expected_every
    return [scheduled.line(s, known.get(name), now=now, rings=rings) for name, s in configured.schedules.items()]


async def _troubles(configured: Settings) -> list[str]:
    """Sources that tell nothing and people who hear nothing: no fault of the configuration, and no problem."""
    try:
        stores = main.build(configured).stores
        async with stores.database.held():
            states = await stores.listings.list_sources(list(configured.sources))
            closed = await stores.reach.closed(
                [(person.channel, settings.address_of(configured, person)) for person in configured.recipients.values()]
            )
    except ServiceError:  # it has just been reached
        return []
    known = {name: state for name, state in states.items() if state.fingerprint == configured.sources[name].fingerprint}
    standings = ((name, *standing(known.get(name))) for name in configured.sources)
    blind = [f"source {name} is {status}: {reason}" for name, status, reason in standings if status in NEED_A_PERSON]
    unreached = [name for name, shut in zip(configured.recipients, closed, strict=True) if shut]
    return [*blind, *(f"recipient {name} is told nothing now: {SHUT}" for name in unreached)]


async def _schema(environ: Mapping[str, str]) -> tuple[SchemaState | None, list[str]]:
    """How the schema stands, where that can be told, and what is wrong with the database."""
    address = settings.load_database(environ)
    problems = _unreadable(address.migration_url)
    try:
        database = connect(address.url or "")
        async with database.held():
            unfit = await unfit_database(database)
            state = await schema_state(database)
    except ConfigError as error:
        return None, problems + error.problems
    except ServiceError as error:
        return None, [*problems, f"DATABASE_URL: {error}"]
    if unfit is not None:
        return None, [*problems, unfit]
    if state in {"missing", "behind"} and not address.auto_migrate:
        problems.append(f"the database's schema is {state}; {MIGRATE}")
    return state, problems


def _told_of(state: SchemaState | None, *, auto: bool) -> list[str]:
    if state == "ahead":
        return ["schema: ahead of this release, which works with it"]
    if state is None or not auto:
        return []
    if state == "current":
        return ["schema: brought up by whoever finds it behind (AUTO_MIGRATE)"]
    return [f"schema: {state}, and brought up by the first start or tick (AUTO_MIGRATE)"]


def _unreadable(migration_url: str | None) -> list[str]:
    try:
        if migration_url is not None:
            connect(migration_url, name="MIGRATION_DATABASE_URL")
    except ConfigError as error:
        return list(error.problems)
    return []


def _described(configured: Settings) -> list[str]:
    lines = [f"source {s.name}: {s.kind}, every {pace.told(s.every)}" for s in configured.sources.values()]
    lines += [f"channel {c.name}: {c.kind}" for c in configured.channels.values()]
    lines += [_recipient(recipient) for recipient in configured.recipients.values()]
    fields = {name: _fields_of(source) for name, source in configured.sources.items()}
    for subscription in configured.subscriptions:
        told = ["to " + ", ".join(subscription.to), *conditions.told(subscription)]
        lines.append(f"subscription {subscription.name}: {'; '.join(told)}")
        lines += [f"subscription {subscription.name}: {doubt}" for doubt in conditions.doubts(subscription, fields)]
    lines += [line for source in configured.sources.values() if (line := _only_here(source))]
    lines += [] if configured.calls is None else [configured.calls.told()]
    lines += [inbox.line(hook, configured.environment.public_url) for hook in configured.hooks.values()]
    lines += chatting.lines(configured)
    every_by_source = {source.name: source.every for source in configured.sources.values()}
    late = "; a slot of a schedule is fired by the first ring after it" if configured.schedules else ""
    return [*lines, pace.advice(every_by_source, expected_every=configured.tick.expected_every) + late]


def _recipient(recipient: Recipient) -> str:
    place = "" if recipient.fallback is None else f", or {recipient.fallback} in its place"
    return f"recipient {recipient.name}: by {recipient.channel}{place}"


def _fields_of(source: SourceSettings) -> frozenset[str] | None:
    """The fields that its items may have; None: who knows."""
    known: frozenset[str] | None = getattr(plugins.load("app.sources", source.kind), "FIELDS", None)
    named = getattr(source.options, "fields", None)
    return frozenset(named) if isinstance(named, dict) else known


def _handlers(service: Service) -> list[str]:
    folder, types = service.settings.service.handlers.name, service.handlers
    doubts = [inbox.doubt(hook) for hook in service.settings.hooks.values() if hook.job not in types]
    return [*(f"handler {name}: {folder}/{name}.py" for name in sorted(types) if name not in BUILT_IN), *doubts]


def _only_here(source: SourceSettings) -> str | None:
    """A source that no host finds: the sample, left in the file that is deployed."""
    host = urlsplit(str(getattr(source.options, "url", ""))).hostname or ""
    if not (host == "localhost" or host.endswith(".localhost") or host.startswith("127.") or host == "::1"):
        return None
    return (
        f"source {source.name}: is on this machine alone ({host}); before you deploy, put your own sources in its place"
    )
