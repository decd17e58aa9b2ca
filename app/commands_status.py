"""The commands that show how it stands: `status`, `sources` and `messages`."""

from __future__ import annotations

import argparse
import asyncio
import json
from typing import TYPE_CHECKING, Any

from app.commands import asked, columns, cut, plain, second, with_stores

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from contextlib import AbstractContextManager

    from app.commands import AddCommand, Database
    from app.settings import Settings
    from app.stores import Stores

    Configured = Callable[[], AbstractContextManager[Settings]]
    """The whole configuration, whose logs leave stdout alone."""

# Everything else is imported by the command that needs it: `wakebell --help` is to come at once.

SOURCE_COLUMNS = ("source", "status", "items", "last success", "next", "reason")
MESSAGE_COLUMNS = ("id", "recipient", "channel", "kind", "status", "created", "text")
STATUSES = ("queued", "sending", "retrying", "sent", "failed", "uncertain")
NAME_SHOWN = 40
TEXT_SHOWN = 60
MOST_LISTED = 200


def add(command: AddCommand, database: Database, configured: Configured) -> None:
    """Add the parsers of these commands."""
    status = command(
        "status", lambda args: _status(args, configured), "Tell whether all is well. Exit status 1 when it is not."
    )
    sources = command("sources", lambda args: _sources(args, configured), "List the sources and how they are.")
    messages = command(
        "messages", lambda args: _messages(args, database), "List what was told to whom, the newest first."
    )
    messages.add_argument("--status", choices=STATUSES, help="only those that are")
    messages.add_argument("--recipient", metavar="R", help="only those to a recipient")
    messages.add_argument("--channel", metavar="C", help="only those by a channel")
    messages.add_argument("--limit", type=_limit, default=20, metavar="N", help=f"1 to {MOST_LISTED}, default 20")
    for printing in (status, sources, messages):
        printing.add_argument("--json", action="store_true", help="print data as JSON")


def _limit(text: str) -> int:
    if not (text.isascii() and text.isdigit() and 1 <= int(text[:30]) <= MOST_LISTED):
        raise argparse.ArgumentTypeError(f"must be a whole number from 1 to {MOST_LISTED}")
    return int(text)


# -------------------------------------------------------------------------------------------------------------- status


def _status(args: argparse.Namespace, configured: Configured) -> int:
    from app.domain.health import judge  # noqa: PLC0415

    with configured() as settings:

        async def read(stores: Stores) -> Any:
            return await stores.health.read(list(settings.sources))

        facts = asyncio.run(with_stores(settings.environment.database_url, read))
        found = judge(facts, expected_every=settings.tick.expected_every)
    if args.json:
        print(json.dumps({"status": found.status, "checks": found.checks}, ensure_ascii=False))
    else:
        print("\n".join([f"status: {found.status}", *_checks(found.checks)]))
    return 1 if found.status == "fail" else 0


def _checks(checks: Mapping[str, Sequence[Mapping[str, Any]]]) -> list[str]:
    """A line a check, in columns: its name, how it is, what was seen, what to do."""
    lines = []
    for name, [check] in checks.items():
        seen = check.get("observedValue")
        value = ", ".join(map(plain, seen)) if isinstance(seen, list) else "" if seen is None else str(seen)
        unit = check.get("observedUnit", "") if value else ""
        lines.append((name, str(check["status"]), f"{value} {unit}".strip(), plain(str(check.get("output", "")))))
    return columns(lines)


# ------------------------------------------------------------------------------------------------------------- sources


def _sources(args: argparse.Namespace, configured: Configured) -> int:
    from app.api.sources import told  # noqa: PLC0415

    with configured() as settings:

        async def listed(stores: Stores) -> list[dict[str, Any]]:
            known = await stores.listings.list_sources(list(settings.sources))
            return [told(source, known.get(source.name)) for source in settings.sources.values()]

        found = asyncio.run(with_stores(settings.environment.database_url, listed))
    print(json.dumps(found, ensure_ascii=False) if args.json else _table_of_sources(found))
    return 0


def _table_of_sources(found: Sequence[Mapping[str, Any]]) -> str:
    if not found:
        return "no source is configured"
    lines = [SOURCE_COLUMNS]
    for source in found:
        reason = "; ".join(filter(None, [source["reason"], *source["warnings"]]))
        lines.append(
            (
                cut(plain(source["name"]), NAME_SHOWN),
                source["status"],
                str(source["items"]),
                _second(source["last_success_at"]),
                _second(source["next_due_at"]),
                cut(plain(reason), TEXT_SHOWN),
            )
        )
    return "\n".join(columns(lines))


# ------------------------------------------------------------------------------------------------------------ messages


def _messages(args: argparse.Namespace, database: Database) -> int:
    from app.domain.shown import told  # noqa: PLC0415

    async def listed(stores: Stores) -> tuple[list[dict[str, Any]], bool]:
        found: list[dict[str, Any]] = []
        while True:  # a page of long texts ends early: the next one goes on
            page = await stores.listings.list_messages(
                limit=args.limit - len(found),
                before=found[-1]["id"] if found else None,
                status=args.status,
                recipient=args.recipient,
                channel=args.channel,
            )
            found += [told(row) for row in page.rows]
            if not page.more or len(found) >= args.limit:
                return found, page.more

    found, more = asked(database, listed)
    print(json.dumps(found, ensure_ascii=False) if args.json else _table_of_messages(found, more=more))
    return 0


def _table_of_messages(found: Sequence[Mapping[str, Any]], *, more: bool) -> str:
    if not found:
        return "there are no such messages"
    lines = [MESSAGE_COLUMNS]
    for message in found:
        name, channel = cut(plain(message["recipient"]), NAME_SHOWN), cut(plain(message["channel"]), NAME_SHOWN)
        text = cut(plain(message["last_error"] or message["text"]), TEXT_SHOWN)
        created = second(message["created_at"])
        lines.append((str(message["id"]), name, channel, message["kind"], message["status"], created, text))
    return "\n".join([*columns(lines), *(["older ones follow; raise --limit to see them"] if more else [])])


def _second(at: str | None) -> str:
    return "" if at is None else second(at)
