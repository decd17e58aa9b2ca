"""The commands about queues: `queues`, `pause`, `resume` and `limit`."""

from __future__ import annotations

import argparse
import dataclasses
import json
import re
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from app.commands import asked, columns, cut, plain, second
from app.domain.errors import ServiceError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from app.commands import AddCommand, Database
    from app.stores import Stores
    from app.stores.queues import QueueChange, StoredQueue

# Everything else is imported by the command that needs it: `wakebell --help` is to come at once.

COLUMNS = ("queue", "due", "running", "limits", "paused until", "reason")
NAME_SHOWN = 40
REASON_SHOWN = 60
MOST_COUNTED = 10_000

LENGTH = re.compile(r"(\d{1,9}(?:\.\d{1,3})?)([smhd])")
LONGEST = 3650 * 86400
SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400}


def add(command: AddCommand, database: Database) -> None:
    """Add the parsers of these commands."""
    queues = command("queues", lambda args: _queues(args, database), "List queues: what is due, limits and pauses.")
    queues.add_argument("--own", action="store_true", help="the service's own too: fetching, sending, pruning")

    pause = command("pause", lambda args: _pause(args, database), "Start no job of a queue for a while.")
    pause.add_argument("queue", metavar="QUEUE", help="one of yours; what runs may end")
    until = pause.add_mutually_exclusive_group()
    until.add_argument("--until", metavar="T", help="an instant: 2026-11-30T09:00:00Z; default: until resumed")
    until.add_argument("--for", dest="length", type=_length, metavar="L", help="30s, 10m, 2h or 1d from now")
    pause.add_argument("--reason", required=True, metavar="TEXT", help="for whoever finds it paused")

    resume = command("resume", lambda args: _resume(args, database), "End the pause of a queue.")
    resume.add_argument("queue", metavar="QUEUE", help="one of yours")

    limit = command("limit", lambda args: _limit(args, database), "Limit how many jobs of a queue run or start.")
    limit.add_argument("queue", metavar="QUEUE", help="one of yours")
    limit.add_argument("--max-running", type=int, metavar="N", help="at once, over all replicas")
    limit.add_argument("--max-starts", type=int, metavar="N", help="within any time of the length --per")
    limit.add_argument("--per", type=_length, metavar="L", help="60s, 10m, 2h or 1d")
    limit.add_argument("--none", action="store_true", help="take all limits away")
    for printing in (queues, pause, resume, limit):
        printing.add_argument("--json", action="store_true", help="print data as JSON")


def _length(text: str) -> timedelta:
    found = LENGTH.fullmatch(text)
    seconds = float(found[1]) * SECONDS[found[2]] if found else 0
    if not 0 < seconds <= LONGEST:
        raise argparse.ArgumentTypeError("must be a length of time such as 30s, 10m, 2h or 1d, at most 3650d")
    return timedelta(seconds=seconds)


# ------------------------------------------------------------------------------------------------------------- running


def _queues(args: argparse.Namespace, database: Database) -> int:
    from app import queue_changes  # noqa: PLC0415

    async def shown(stores: Stores) -> str:
        found = await stores.queues.all(own=args.own)
        return (
            json.dumps([queue_changes.shown(queue) for queue in found], ensure_ascii=False)
            if args.json
            else _table(found)
        )

    print(asked(database, shown))
    return 0


def _pause(args: argparse.Namespace, database: Database) -> int:
    from app import queue_changes  # noqa: PLC0415
    from app.stores.queues import Pause  # noqa: PLC0415

    until = queue_changes.FOREVER if args.until is None else args.until
    change = queue_changes.read({"paused_until": until, "reason": args.reason})
    if args.length is not None and isinstance(change.pause, Pause):  # from now by the database's clock
        change = dataclasses.replace(change, pause=dataclasses.replace(change.pause, until=args.length))
    queue = _changed(args, database, change)
    if args.json:
        print(json.dumps(queue, ensure_ascii=False))
        return 0
    until = queue["paused_until"]
    shown = "until it is resumed" if until == queue_changes.FOREVER else f"until {second(until)}"
    print(f"queue {plain(queue['name'])} is paused {shown}; {_jobs(queue['due'])} due in it")
    return 0


def _resume(args: argparse.Namespace, database: Database) -> int:
    from app import queue_changes  # noqa: PLC0415

    queue = _changed(args, database, queue_changes.read({"paused_until": None}))
    told = f"queue {plain(queue['name'])} is not paused; {_jobs(queue['due'])} due in it"
    print(json.dumps(queue, ensure_ascii=False) if args.json else told)
    return 0


def _limit(args: argparse.Namespace, database: Database) -> int:
    from app import queue_changes  # noqa: PLC0415

    wanted = {"max_running": args.max_running, "max_starts": args.max_starts, "period_seconds": _seconds(args.per)}
    given = {name: value for name, value in wanted.items() if value is not None}
    if bool(given) == args.none:
        raise ServiceError("give --max-running, --max-starts with --per, or --none alone")
    queue = _changed(args, database, queue_changes.read(wanted if args.none else given))
    limits = _limits(queue) or "no limits"
    print(json.dumps(queue, ensure_ascii=False) if args.json else f"queue {plain(queue['name'])} has {limits}")
    return 0


def _changed(args: argparse.Namespace, database: Database, change: QueueChange) -> dict[str, Any]:
    from app import queue_changes  # noqa: PLC0415

    name = queue_changes.changeable_name(args.queue)

    async def changed(stores: Stores) -> dict[str, Any]:
        return queue_changes.shown(await queue_changes.make(stores.queues, name, change))

    queue: dict[str, Any] = asked(database, changed)
    return queue


# ------------------------------------------------------------------------------------------------------------- printing


def _table(queues: Sequence[StoredQueue]) -> str:
    """A line a queue, in columns."""
    from app import queue_changes  # noqa: PLC0415

    if not queues:
        return "no queue has jobs, limits or a pause"
    lines = [COLUMNS]
    for queue in map(queue_changes.shown, queues):
        until = queue["paused_until"]
        shown = until if until in {None, queue_changes.FOREVER} else second(until)
        reason = cut(plain(queue["reason"] or ""), REASON_SHOWN)
        name = cut(plain(queue["name"]), NAME_SHOWN)
        lines.append((name, _count(queue["due"]), str(queue["running"]), _limits(queue), shown or "", reason))
    return "\n".join(columns(lines))


def _limits(queue: Mapping[str, Any]) -> str:
    """`at most 3 at once, 10 in any 60 s`, or nothing."""
    parts = []
    if queue["max_running"] is not None:
        parts.append(f"{queue['max_running']} at once")
    if queue["max_starts"] is not None:
        parts.append(f"{queue['max_starts']} in any {queue['period_seconds']:g} s")
    return f"at most {', '.join(parts)}" if parts else ""


def _jobs(due: int) -> str:
    return "1 job is" if due == 1 else f"{_count(due)} jobs are"


def _count(due: int) -> str:
    return f"{due}+" if due >= MOST_COUNTED else str(due)


def _seconds(length: timedelta | None) -> float | None:
    return None if length is None else length.total_seconds()
