"""Puts what the readers read together: the whole configuration, or every problem at once."""

from __future__ import annotations

from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING

from app.settings.audience import names_in, read_alerts, read_recipients, read_subscriptions
from app.settings.calls import read_calls
from app.settings.chats import ChatSettings, read_chats, read_memory
from app.settings.environment import config_path_of, read_environment
from app.settings.file import read_file
from app.settings.hooks import read_hooks
from app.settings.kinds import address_check, fields_of, needs_address, read_channels, read_sources
from app.settings.marks import mark_of
from app.settings.masks import mask_of, secrets_of
from app.settings.model import (
    ChannelSettings,
    Settings,
    SourceSettings,
)
from app.settings.problems import Problems
from app.settings.reminders import read_reminders
from app.settings.schedules import read_schedules
from app.settings.sections import read_retention, read_service, read_tick
from app.settings.table import Table

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping


def load(environ: Mapping[str, str], *, need: Collection[str] = ()) -> Settings:
    """The whole configuration.

    Args:
        environ: the variables, as `from_process` gives them.
        need: names of variables that the caller cannot do without: who serves needs `CRON_SECRET`.

    Raises:
        ConfigError: with every problem of the environment and of the file, and never a secret.
    """
    problems = Problems()
    path = config_path_of(environ)
    environment = read_environment(environ, path, problems, need=need)
    root = read_file(path, environ, problems) or Table(str(path), (), {}, problems)
    service = read_service(root.table("service"), path.parent)
    sources = read_sources(root, deny_private=service.deny_private)
    channels = read_channels(root)
    addressed = dict.fromkeys(names_in(root, "channels"), False)
    addressed |= {name: needs_address(channel) for name, channel in channels.items()}
    checks = {name: check for name, channel in channels.items() if (check := address_check(channel))}
    recipients = read_recipients(root, service, addressed, checks)
    tick = read_tick(root.table("tick"), environment.public_url)
    alerts, repeat_alerts = read_alerts(root.table("alerts"), recipients)
    memory = read_memory(root.table("memory"))
    chats = read_chats(root, channels, names_in(root, "channels"), service, path.parent)
    kinds: list[SourceSettings | ChannelSettings | ChatSettings]
    kinds = [*sources.values(), *channels.values(), *chats.values()]
    settings = Settings(
        service=service,
        tick=tick,
        sources=MappingProxyType(sources),
        channels=MappingProxyType(channels),
        recipients=MappingProxyType(recipients),
        subscriptions=tuple(
            read_subscriptions(root, names_in(root, "sources"), recipients, fields_of(sources), path.parent)
        ),
        alerts=alerts,
        repeat_alerts=repeat_alerts,
        mask=mask_of(environment, root.values, kinds),
        secrets=secrets_of(environment, root.values, kinds),
        mark=mark_of(path),
        retention=replace(read_retention(root.table("retention")), conversations=memory.keep),
        environment=environment,
        reminders=MappingProxyType(read_reminders(root)),
        schedules=MappingProxyType(read_schedules(root, service.timezone, tick.expected_every)),
        hooks=MappingProxyType(read_hooks(root)),
        calls=read_calls(root),
        chats=MappingProxyType(chats),
        memory=memory,
    )
    problems.finish()
    return settings
