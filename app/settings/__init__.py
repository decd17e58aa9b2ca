"""wakebell.toml and the environment, read into frozen settings, or every problem at once.

    environ --> environment.py --------------------------------------.
       |                                                              +--> Settings, or ConfigError
       `--> file.py --> sections.py | kinds.py | audience.py ---------'
            (TOML, "env:NAME" read)

A reader tells what is wrong to `Problems` and goes on with something of the right type, so that one mistake does
not hide the next. To serve a further section: its name in `file.SECTIONS`, a reader, a field in `Settings`.
"""

from __future__ import annotations

from importlib import import_module
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from app.settings.dotenv import read_dotenv, write_missing
from app.settings.environment import from_process, heartbeat_url_of, listening, load_database

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from app.settings.addresses import address_of
    from app.settings.chats import ChatSettings
    from app.settings.hooks import HookSettings
    from app.settings.kinds import fingerprint_of
    from app.settings.marks import mark_of
    from app.settings.memory import MemorySettings
    from app.settings.model import (
        EVERYTHING,
        INBOX,
        ChannelSettings,
        DatabaseAddress,
        Environment,
        Language,
        LogFormat,
        Recipient,
        Retention,
        Service,
        Settings,
        SourceSettings,
        TickSettings,
    )
    from app.settings.reminders import ReminderSettings

__all__ = [
    "EVERYTHING",
    "INBOX",
    "ChannelSettings",
    "ChatSettings",
    "DatabaseAddress",
    "Environment",
    "HookSettings",
    "Language",
    "LogFormat",
    "MemorySettings",
    "Recipient",
    "ReminderSettings",
    "Retention",
    "Service",
    "Settings",
    "SourceSettings",
    "TickSettings",
    "address_of",
    "fingerprint_of",
    "from_process",
    "heartbeat_url_of",
    "listening",
    "load",
    "load_database",
    "mark_of",
    "read_dotenv",
    "write_missing",
]

MODULES = MappingProxyType(
    {
        "EVERYTHING": "app.settings.model",
        "INBOX": "app.settings.model",
        "ChannelSettings": "app.settings.model",
        "ChatSettings": "app.settings.chats",
        "DatabaseAddress": "app.settings.model",
        "Environment": "app.settings.model",
        "HookSettings": "app.settings.hooks",
        "Language": "app.settings.model",
        "LogFormat": "app.settings.model",
        "MemorySettings": "app.settings.memory",
        "Recipient": "app.settings.model",
        "ReminderSettings": "app.settings.reminders",
        "Retention": "app.settings.model",
        "Service": "app.settings.model",
        "Settings": "app.settings.model",
        "SourceSettings": "app.settings.model",
        "TickSettings": "app.settings.model",
        "address_of": "app.settings.addresses",
        "fingerprint_of": "app.settings.kinds",
        "mark_of": "app.settings.marks",
    }
)
"""Where what is not needed to open a port is found: it is imported by who asks for it first."""


def __getattr__(name: str) -> Any:
    if name not in MODULES:
        raise AttributeError(name)
    return getattr(import_module(MODULES[name]), name)


def load(environ: Mapping[str, str], *, need: Collection[str] = ()) -> Settings:
    """The whole configuration.

    Args:
        environ: the variables, as `from_process` gives them.
        need: names of variables that the caller cannot do without: who serves needs `CRON_SECRET`.

    Raises:
        ConfigError: with every problem of the environment and of the file, and never a secret.
    """
    from app.settings.whole import load as load_whole  # noqa: PLC0415

    return load_whole(environ, need=need)
