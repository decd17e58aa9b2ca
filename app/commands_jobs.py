"""The commands about jobs: `jobs`, `enqueue`, `retry` and `cancel`."""

from __future__ import annotations

import argparse
import asyncio
import json
from typing import TYPE_CHECKING, Any, NoReturn

from app.commands import asked as asked_database
from app.commands import columns, cut, plain, second, with_stores
from app.domain.errors import ServiceError
from app.domain.jobs import OWN_PREFIX

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from contextlib import AbstractContextManager

    from app.commands import AddCommand, Database
    from app.settings import Settings
    from app.stores import Stores
    from app.stores.jobs import StoredJob

    Configured = Callable[[], AbstractContextManager[Settings]]
    """The whole configuration, whose logs leave stdout alone."""

# Everything else is imported by the command that needs it: `wakebell --help` is to come at once.

STATUSES = ("pending", "running", "done", "failed", "cancelled")
COLUMNS = ("id", "type", "status", "attempts", "run_after", "last error")
ERROR_SHOWN = 60
TYPE_SHOWN = 40
MOST_LISTED = 1000


def add(command: AddCommand, database: Database, configured: Configured) -> None:
    """Add the parsers of these commands."""
    jobs = command("jobs", lambda args: _jobs(args, database), "List jobs, the newest first; or show one.")
    jobs.add_argument("id", nargs="?", type=_id, metavar="ID", help="show this one, with its failures")
    jobs.add_argument("--status", choices=STATUSES, help="only those that are")
    jobs.add_argument("--type", metavar="T", help="only those of a type")
    jobs.add_argument("--queue", metavar="Q", help="only those in a queue")
    jobs.add_argument("--own", action="store_true", help="the service's own work too: fetching, sending, pruning")
    jobs.add_argument("--limit", type=_limit, default=20, metavar="N", help=f"1 to {MOST_LISTED}, default 20")

    enqueue = command("enqueue", lambda args: _enqueue(args, configured), "Put in a job for a handler of yours.")
    enqueue.add_argument("type", metavar="TYPE", help="the file name of its handler, without .py")
    enqueue.add_argument("payload", metavar="JSON", help="its payload, a JSON object")
    enqueue.add_argument("--queue", metavar="Q", help='default: "default"')
    enqueue.add_argument("--priority", type=int, metavar="N", help="0 to 100; each step ranks a minute sooner")
    enqueue.add_argument("--run-after", metavar="T", help="not before this instant: 2026-11-30T09:00:00Z")
    enqueue.add_argument("--unique-key", metavar="K", help="at most one job of the type that has not ended")
    enqueue.add_argument("--serial-key", metavar="K", help="one after the other, in order")

    retry = command("retry", lambda args: _retry(args, database), "Run a job again now, or all failed ones of a type.")
    which = retry.add_mutually_exclusive_group(required=True)
    which.add_argument("id", nargs="?", type=_id, metavar="ID", help="the job's number")
    which.add_argument("--type", metavar="T", help="all that failed of this type, at most 1000 at once")

    cancel = command("cancel", lambda args: _cancel(args, database), "Cancel a job that has not started.")
    cancel.add_argument("id", type=_id, metavar="ID", help="the job's number")
    for printing in (jobs, enqueue, retry, cancel):
        printing.add_argument("--json", action="store_true", help="print data as JSON")


def _id(text: str) -> int:
    if not (text.isascii() and text.isdigit()):
        raise argparse.ArgumentTypeError("must be the number of a job")
    return int(text[:30])


def _limit(text: str) -> int:
    if not (text.isascii() and text.isdigit() and 1 <= int(text[:30]) <= MOST_LISTED):
        raise argparse.ArgumentTypeError(f"must be a whole number from 1 to {MOST_LISTED}")
    return int(text)


# ------------------------------------------------------------------------------------------------------------- running


def _jobs(args: argparse.Namespace, database: Database) -> int:
    from app import upkeep  # noqa: PLC0415

    if args.id is not None and (args.status or args.type or args.queue):
        raise ServiceError("a job's ID goes with no filter; leave --status, --type and --queue out")

    async def shown(stores: Stores) -> str:
        if args.id is not None:
            whole = upkeep.shown(await upkeep.get(stores.jobs, args.id))
            return json.dumps(whole, ensure_ascii=False) if args.json else _described(whole)
        found, more = await _listed(stores, args)
        return (
            json.dumps([upkeep.shown(job) for job in found], ensure_ascii=False)
            if args.json
            else _table(found, more=more)
        )

    print(asked_database(database, shown))
    return 0


async def _listed(stores: Stores, args: argparse.Namespace) -> tuple[list[StoredJob], bool]:
    """So many jobs, and whether older ones follow. A page of long payloads ends early: the next one goes on."""
    from app.asked import own_types  # noqa: PLC0415

    own = args.own or (args.queue or "").startswith(OWN_PREFIX) or args.type in own_types()
    found: list[StoredJob] = []
    while True:
        page = await stores.listings.list_jobs(
            limit=min(args.limit - len(found), 200),
            before=found[-1].id if found else None,
            status=args.status,
            type=args.type,
            queue=args.queue,
            own=own,
        )
        found += page.rows
        if not page.more or len(found) >= args.limit:
            return found, page.more


def _enqueue(args: argparse.Namespace, configured: Configured) -> int:
    from app import asked, handlers, upkeep  # noqa: PLC0415

    given = {
        "type": args.type,
        "payload": _payload(args.payload),
        "queue": args.queue,
        "priority": args.priority,
        "run_after": args.run_after,
        "unique_key": args.unique_key,
        "serial_key": args.serial_key,
    }
    with configured() as settings:
        new = asked.read(given, handlers.known_to(settings))

        async def put_in(stores: Stores) -> tuple[bool, dict[str, Any]]:
            added = await asked.put_in(stores.jobs, new)
            return added.created, upkeep.shown(await upkeep.get(stores.jobs, added.id))

        created, job = asyncio.run(with_stores(settings.environment.database_url, put_in))
    if args.json:
        print(json.dumps({**job, "created": created}, ensure_ascii=False))
    elif created:
        print(f"job {job['id']} is put in: {job['type']}, due {second(job['run_after'])}")
    else:
        print(f"job {job['id']} has that unique_key already; it is {job['status']}, and no other was put in")
    return 0


def _retry(args: argparse.Namespace, database: Database) -> int:
    from app import upkeep  # noqa: PLC0415

    async def retried(stores: Stores) -> tuple[Any, str]:
        if args.id is not None:
            job = await upkeep.retry(stores.jobs, args.id)
            return upkeep.shown(job), f"job {job.id} will run with the next tick"
        count = await stores.jobs.retry_all(args.type, limit=upkeep.MOST_RETRIED)
        more = "; there may be more, retry once more" if count == upkeep.MOST_RETRIED else ""
        jobs = "job" if count == 1 else "jobs"
        words = f"{count} failed {jobs} of the type {plain(args.type)} will run again with the next tick{more}"
        return {"retried": count}, words

    data, words = asked_database(database, retried)
    print(json.dumps(data, ensure_ascii=False) if args.json else words)
    return 0


def _cancel(args: argparse.Namespace, database: Database) -> int:
    from app import upkeep  # noqa: PLC0415

    async def cancelled(stores: Stores) -> dict[str, Any]:
        return upkeep.shown(await upkeep.cancel(stores.jobs, args.id))

    job = asked_database(database, cancelled)
    print(json.dumps(job, ensure_ascii=False) if args.json else f"job {job['id']} is cancelled")
    return 0


def _payload(text: str) -> Any:
    try:
        return json.loads(text, parse_constant=_no_constant)
    except RecursionError:
        raise ServiceError("the payload is nested too deeply") from None
    except json.JSONDecodeError as error:
        place = f"{error.msg} at line {error.lineno}, column {error.colno}"
        raise ServiceError(f"the payload is not JSON: {place}") from None
    except ValueError:  # no number, or one of thousands of digits
        raise ServiceError("the payload is not JSON: it holds a number that is none") from None


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


# ------------------------------------------------------------------------------------------------------------- printing


def _table(jobs: Sequence[StoredJob], *, more: bool) -> str:
    """A line a job, in columns."""
    from app.domain.shown import instant  # noqa: PLC0415

    if not jobs:
        return "there are no such jobs"
    lines = [COLUMNS]
    for job in jobs:
        attempts = f"{job.attempts - job.crashes}/{job.max_attempts}"
        due = second(instant(job.run_after))
        error = cut(plain(job.last_error or ""), ERROR_SHOWN)
        lines.append((str(job.id), cut(plain(job.type), TYPE_SHOWN), _state(job), attempts, due, error))
    return "\n".join([*columns(lines), *(["older ones follow; raise --limit to see them"] if more else [])])


def _state(job: StoredJob) -> str:
    if job.status != "pending":
        return job.status
    if job.held:
        return "pending (type unknown)"
    return "pending (in line)" if job.waiting else "pending"


def _described(job: Mapping[str, Any]) -> str:
    """A line for each side of one job, then its failures, the newest first."""
    sides = [(name, value) for name, value in job.items() if name not in {"failures", "then"} and value is not None]
    lines = [
        f"{name:13} {plain(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))}"
        for name, value in sides
    ]
    lines += [f"{'then':13} {json.dumps(job['then'], ensure_ascii=False)}"] if job["then"] else []
    for failure in reversed(job["failures"]):
        lines.append("")
        lines.append(f"attempt {failure['attempt']} failed at {second(failure['at'])}: {plain(failure['error'] or '')}")
        lines += [f"    {plain(line)}" for line in (failure["traceback"] or "").splitlines()]
    return "\n".join(lines)
