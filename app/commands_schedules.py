"""The command `schedules`: what is queued when."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

from app.commands import columns, plain, second, with_stores

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Sequence
    from contextlib import AbstractContextManager

    from app.commands import AddCommand
    from app.settings import Settings
    from app.stores import Stores

    Configured = Callable[[], AbstractContextManager[Settings]]
    """The whole configuration, whose logs leave stdout alone."""

# Everything else is imported when it is needed: `wakebell --help` is to come at once.

COLUMNS = ("schedule", "when", "job", "last slot", "next", "missed")


def add(command: AddCommand, configured: Configured) -> None:
    """Add the command's parser."""
    listing = command(
        "schedules", lambda args: _schedules(args, configured), "List schedules in words, with their slots."
    )
    listing.add_argument("--json", action="store_true", help="print data as JSON, with the next three slots")


def _schedules(args: argparse.Namespace, configured: Configured) -> int:
    from app import scheduled  # noqa: PLC0415

    with configured() as settings:

        async def listed(stores: Stores) -> list[dict[str, Any]]:
            now, known = await stores.schedules.read()
            return [scheduled.told(s, known.get(name), now=now) for name, s in settings.schedules.items()]

        found = asyncio.run(with_stores(settings.environment.database_url, listed))
    print(json.dumps(found, ensure_ascii=False) if args.json else _table(found))
    return 0


def _table(found: Sequence[dict[str, Any]]) -> str:
    """A line a schedule, in columns."""
    if not found:
        return "no schedule is configured"
    lines = [COLUMNS]
    for one in found:
        last = "" if one["last_slot"] is None else second(one["last_slot"])
        following = "now" if one["due"] else second(one["next"][0]) if one["next"] else "from the next tick on"
        lines.append((one["name"], plain(one["words"]), plain(one["job"]), last, following, str(one["missed"] or "")))
    return "\n".join(columns(lines))
