"""What the service is told, read and checked. Nothing here changes while the process lives."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from datetime import UTC, timedelta
from typing import TYPE_CHECKING, Literal
from zoneinfo import ZoneInfo

from app.domain.identity import UNSAID
from app.domain.masking import NO_MASK
from app.domain.watching import UNWATCHED
from app.settings.memory import MemorySettings

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime, tzinfo
    from pathlib import Path

    from pydantic import BaseModel

    from app.domain.calls import Calls
    from app.domain.identity import Identity
    from app.domain.masking import Mask
    from app.domain.quiet import QuietHours
    from app.domain.schedules import Schedule
    from app.domain.subscriptions import Subscription
    from app.domain.watching import Watch
    from app.settings.chats import ChatSettings
    from app.settings.hooks import HookSettings
    from app.settings.reminders import ReminderSettings

INBOX = "inbox"
"""The name of the channel, of its kind and of the recipient that are always there."""

EVERYTHING = "everything"
"""The subscription that stands in for a file with sources and no subscription at all."""

Language = Literal["en", "th", "vi", "my"]
LogFormat = Literal["json", "console"]
OnUncertain = Literal["resend", "drop"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Service:
    """`[service]`: what the service is called, and its words and times where nothing nearer says otherwise."""

    name: str = "wakebell"
    timezone: str = "UTC"
    language: Language = "en"

    handlers: Path
    """The folder of the user's own job types, absolute. It need not exist unless the file names another one."""

    host_gap: timedelta = timedelta(seconds=1)
    """Between the end of one request to a host and the next one to it, by whichever replica."""

    deny_private: bool = False
    """No source may lead to a private address."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TickSettings:
    """`[tick]`: the bounds of one batch where its caller gives none."""

    max_jobs: int = 100
    budget: timedelta = timedelta(seconds=25)

    expected_every: timedelta = timedelta(minutes=15)
    """How often the scheduler is to ring; later is overdue."""

    fan_out: int = 0
    """How many drains at most a tick that finds more than `max_jobs` rings at `PUBLIC_URL`, which is set then."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceSettings:
    """One `[sources.x]`."""

    name: str

    kind: str
    """The file name in `app/sources/`."""

    every: timedelta

    options: BaseModel = field(repr=False)
    """An `Options` of the kind; may hold secrets."""

    fingerprint: str
    """Of kind, url and what tells items apart: once it differs from the stored one, the next round is a first one."""

    deny_private: bool = False
    """It may not lead to a private address, by itself or by a redirect."""

    identity: Identity = UNSAID
    """What is said of its items' keys; part of the fingerprint, as far as it is."""

    watch: Watch = UNWATCHED


@dataclass(frozen=True, slots=True, kw_only=True)
class ChannelSettings:
    """One `[channels.x]`, or the built-in inbox."""

    name: str

    kind: str
    """The file name in `app/channels/`."""

    options: BaseModel = field(repr=False)
    """An `Options` of the kind; may hold secrets."""

    on_uncertain: OnUncertain = "resend"
    """What becomes of a message whose answer was lost, where the provider knows no key by which to tell a repeat: sent
    again, so that it may arrive twice; or dropped, so that it may not arrive."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipient:
    """One `[recipients.x]`: a person or a group on a channel, or the built-in inbox."""

    name: str

    channel: str
    """The name of a channel, which is sure to be there."""

    to: str = field(repr=False)
    """The address on that channel; empty for the inbox, and where the channel's own options say it."""

    timezone: str
    language: Language

    quiet_hours: QuietHours | None = None
    """By the clock in `timezone`: what is owed then is told when they are over."""

    quiet_alerts: bool = False
    """Alerts wait for the end of the quiet hours too."""

    max_items_per_tick: int | None = None
    """Items told in full at once; the others are counted. None: all of them."""

    max_messages_per_day: int | None = None
    """By the calendar in `timezone`; what is owed then is told the next day. None: as many as there are."""

    fallback: str | None = None
    """The name of the recipient who is told in its place while its channel takes nothing or nobody is at its address;
    sure to be there, and another one. Its own fallback is not asked."""

    muted_until: datetime | None = None
    """What is owed is told after that. Only somebody who watches by a command in a chat has said so."""

    @property
    def zone(self) -> tzinfo:
        """`timezone`, which is sure to be known."""
        return UTC if self.timezone == "UTC" else ZoneInfo(self.timezone)  # UTC needs no data


@dataclass(frozen=True, slots=True, kw_only=True)
class Retention:
    """`[retention]`: how long rows are kept."""

    items: timedelta = timedelta(days=45)
    """Counted from the item's last sighting to its source's last complete round."""

    jobs: timedelta = timedelta(days=14)
    messages: timedelta = timedelta(days=90)

    conversations: timedelta = timedelta(days=7)
    """As `[memory]` says it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DatabaseAddress:
    """The database's addresses as the environment has them, not yet read: `stores/database.py` does that."""

    url: str | None = field(default=None, repr=False)
    """None: the embedded PostgreSQL, where it is installed."""

    migration_url: str | None = field(default=None, repr=False)
    """A direct address for migrations; None: `url`."""

    auto_migrate: bool = False
    """Whether a process that finds the schema missing or behind brings it up."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Environment:
    """What the environment says; an empty variable is one that is not set. Secrets do not show in its repr."""

    database_url: str | None = field(default=None, repr=False)
    migration_database_url: str | None = field(default=None, repr=False)

    auto_migrate: bool = False
    """Whether a process that finds the schema missing or behind brings it up."""

    cron_secrets: tuple[bytes, ...] = field(default=(), repr=False)
    """The current one, then the previous one while it is set. Empty only where nobody asked for it."""

    api_token: bytes | None = field(default=None, repr=False)

    qstash_keys: tuple[bytes, ...] = field(default=(), repr=False)
    """Each of them signs rings of QStash, the current one and the next; with one of them, `public_url` is set."""

    config_path: Path
    port: int = 8080
    host: str = "0.0.0.0"  # noqa: S104 - a container is reached from outside

    public_url: str | None = None
    """Without a slash at its end."""

    log_format: LogFormat = "json"

    log_level: str = "INFO"
    """In capitals: DEBUG, INFO, WARNING, ERROR or CRITICAL."""

    heartbeat_url: str | None = field(default=None, repr=False)
    """The address itself is the secret of a dead-man's switch."""

    redis_url: str | None = field(default=None, repr=False)
    """Of the Redis or Valkey that remembers conversations; None: the database does."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Everything at once. Names are keys of the mappings, in the file's order; every name that is used exists."""

    service: Service
    tick: TickSettings
    sources: Mapping[str, SourceSettings]

    channels: Mapping[str, ChannelSettings]
    """With the built-in `inbox`."""

    recipients: Mapping[str, Recipient]
    """With the built-in `inbox`."""

    subscriptions: tuple[Subscription, ...]

    alerts: tuple[str, ...] = (INBOX,)
    """Names of the recipients who are told when something fails, and when it works again."""

    repeat_alerts: timedelta | None = timedelta(hours=24)
    """What stays open is told again after so long; None: never."""

    mask: Mask = field(default=NO_MASK, repr=False, compare=False)
    """Takes every secret that is configured out of a text."""

    secrets: Mask = field(default=NO_MASK, repr=False, compare=False)
    """The same, but for addresses and ids: of what is said to people."""

    mark: str | None = field(default=None, compare=False)
    """Of the file's content as it was read; None: there is none."""

    retention: Retention
    environment: Environment

    reminders: Mapping[str, ReminderSettings] = field(default_factory=dict)

    schedules: Mapping[str, Schedule] = field(default_factory=dict)
    hooks: Mapping[str, HookSettings] = field(default_factory=dict)

    chats: Mapping[str, ChatSettings] = field(default_factory=dict)
    memory: MemorySettings = field(default_factory=MemorySettings)

    calls: Calls | None = None
    """None: no `call_url` job may call anything."""

    read_at: float = field(default_factory=time.monotonic, compare=False)
    """When this process read it, by its monotonic clock."""
