"""The sections that stand once in the file: `[service]`, `[tick]`, `[retention]`."""

from __future__ import annotations

from datetime import timedelta
from ipaddress import ip_address
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from app.settings.model import Retention, Service, TickSettings
from app.settings.problems import shown
from app.settings.zones import language, timezone

if TYPE_CHECKING:
    from pathlib import Path

    from app.settings.table import Table

MAX_JOBS = 1000
MAX_BUDGET_SECONDS = 300
MAX_FAN_OUT = 10

PRIVATE_NAMES = (".internal", ".local", ".localhost")
"""How names end that no public network leads to."""

LEAST_MINUTES = 0.99 / 60
"""One second; written with few digits (0.0166) it falls a little short."""

MOST_MINUTES = 366 * 24 * 60
MOST_DAYS = 36525

NAME_LENGTH = 100

MOST_GAP_SECONDS = 60

HANDLERS = "handlers"


def read_service(table: Table, folder: Path) -> Service:
    """`folder` is the configuration file's own."""
    service = Service(
        name=_name(table),
        timezone=timezone(table, "UTC"),
        language=language(table, "en"),
        handlers=_handlers(table, folder),
        host_gap=timedelta(
            seconds=table.number(
                "host_gap_seconds", 1, least=0, most=MOST_GAP_SECONDS, rule=f"a number from 0 to {MOST_GAP_SECONDS}"
            )
        ),
        deny_private=table.flag("deny_private"),
    )
    table.close()
    return service


def read_tick(table: Table, public_url: str | None = None) -> TickSettings:
    """The bounds are those of the tick's own parameters. `public_url` is the service's address, where it is known."""
    budget = table.number(
        "budget_seconds", 25, least=1, most=MAX_BUDGET_SECONDS, rule=f"a number from 1 to {MAX_BUDGET_SECONDS}"
    )
    tick = TickSettings(
        max_jobs=table.whole("max_jobs", 100, least=1, most=MAX_JOBS),
        budget=timedelta(seconds=budget),
        expected_every=minutes(table, "expected_every_minutes", 15),
        fan_out=table.whole("fan_out", 0, least=0, most=MAX_FAN_OUT),
    )
    if tick.fan_out and public_url is None:
        table.tell("fan_out", "needs PUBLIC_URL, the address that it rings; set it, or remove the line")
    elif tick.fan_out and _in_the_clear(str(public_url)):
        table.tell("fan_out", "would send CRON_SECRET unencrypted; write https:// in PUBLIC_URL, or remove the line")
    table.close()
    return tick


def read_retention(table: Table) -> Retention:
    """Days, of which fractions are allowed."""
    retention = Retention(
        items=_days(table, "items_days", 45),
        jobs=_days(table, "jobs_days", 14),
        messages=_days(table, "messages_days", 90),
    )
    table.close()
    return retention


def minutes(table: Table, key: str, default: float) -> timedelta:
    """From one second to a year."""
    rule = "a number of at least 0.0167 (one second) and at most a year"
    number = table.number(key, default, least=LEAST_MINUTES, most=MOST_MINUTES, rule=rule)
    return max(timedelta(minutes=number), timedelta(seconds=1))


def _in_the_clear(url: str) -> bool:
    """Whether a secret that is sent there can be read on its way; not on this machine, nor in a private network."""
    address = urlsplit(url)
    host = (address.hostname or "").rstrip(".")
    if address.scheme == "https":
        return False
    try:
        return ip_address(host).is_global
    except ValueError:
        return "." in host and not host.endswith(PRIVATE_NAMES)


def _days(table: Table, key: str, default: float) -> timedelta:
    rule = "a number of days, more than 0 and at most a hundred years"
    return timedelta(days=table.number(key, default, least=1e-6, most=MOST_DAYS, rule=rule))


def _name(table: Table) -> str:
    name = table.text("name", example="gigs") or "wakebell"
    if len(name) > NAME_LENGTH:
        table.tell("name", f"is longer than {NAME_LENGTH} characters; write a shorter one")
    return str(name)


def _handlers(table: Table, folder: Path) -> Path:
    named = table.text("handlers", example=HANDLERS)
    path = (folder / (named or HANDLERS)).absolute()
    if named and named.rstrip("/") != HANDLERS and not path.is_dir():  # that one need not be there, written or not
        table.tell("handlers", f"there is no folder {shown(named)} beside the file; make it, or remove the line")
    return path
