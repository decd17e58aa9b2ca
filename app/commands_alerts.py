"""The commands about alerts: `alerts`, `ack`, `mute` and `unmute`."""

from __future__ import annotations

import argparse
import json
from typing import TYPE_CHECKING, Any

from app.commands import asked, columns, cut, plain, second
from app.domain.errors import ServiceError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from app.commands import AddCommand, Database
    from app.stores import Stores

# Everything else is imported by the command that needs it: `wakebell --help` is to come at once.

COLUMNS = ("id", "alert", "count", "since", "state", "reason")
KEY_SHOWN = 60
REASON_SHOWN = 60
MOST_LISTED = 200


def add(command: AddCommand, database: Database) -> None:
    """Add the parsers of these commands."""
    alerts = command("alerts", lambda args: _alerts(args, database), "List what is wrong now, and what is muted.")
    alerts.add_argument("--all", action="store_true", help="those that are over too, the newest first")
    alerts.add_argument("--limit", type=_limit, default=50, metavar="N", help=f"1 to {MOST_LISTED}, default 50")

    ack = command("ack", lambda args: _ack(args, database), "Take an alert on: it is not told again while it is open.")
    ack.add_argument("alert", metavar="KEY", help="its key, as `wakebell alerts` shows it; or its number")

    mute = command("mute", lambda args: _mute(args, database), "Tell nothing of an alert for a while; open or not yet.")
    mute.add_argument("pattern", metavar="KEY", help="its key: source_failing:board; * stands for anything")
    until = mute.add_mutually_exclusive_group(required=True)
    until.add_argument("--for", dest="length", metavar="L", help="30m, 8h or 2d from now")
    until.add_argument("--until", metavar="T", help="an instant: 2026-11-30T09:00:00Z")

    unmute = command("unmute", lambda args: _unmute(args, database), "End a mute now.")
    unmute.add_argument("pattern", metavar="KEY", help="as it was muted")
    for printing in (alerts, ack, mute, unmute):
        printing.add_argument("--json", action="store_true", help="print data as JSON")


def _limit(text: str) -> int:
    if not (text.isascii() and text.isdigit() and 1 <= int(text[:30]) <= MOST_LISTED):
        raise argparse.ArgumentTypeError(f"must be a whole number from 1 to {MOST_LISTED}")
    return int(text)


# ------------------------------------------------------------------------------------------------------------- running


def _alerts(args: argparse.Namespace, database: Database) -> int:
    from app import muting  # noqa: PLC0415

    async def listed(stores: Stores) -> dict[str, Any]:
        page = await stores.incidents.list_alerts(limit=args.limit, opened=None if args.all else True)
        mutes = await stores.incidents.list_mutes()
        return {
            "alerts": [muting.shown(alert) for alert in page.rows],
            "mutes": [muting.shown(mute) for mute in mutes],
            "more": page.more,
        }

    found = asked(database, listed)
    print(json.dumps(found, ensure_ascii=False) if args.json else _table(found))
    return 0


def _ack(args: argparse.Namespace, database: Database) -> int:
    from app import muting  # noqa: PLC0415

    named = int(args.alert) if args.alert.isascii() and args.alert.isdigit() and len(args.alert) < 19 else args.alert  # noqa: PLR2004 - a bigint

    async def acknowledged(stores: Stores) -> dict[str, Any]:
        return muting.shown(await muting.acknowledge(stores.incidents, named))

    alert = asked(database, acknowledged)
    print(
        json.dumps(alert, ensure_ascii=False)
        if args.json
        else f"{plain(alert['key'])} is not told again while it is open"
    )
    return 0


def _mute(args: argparse.Namespace, database: Database) -> int:
    from app import muting  # noqa: PLC0415
    from app.domain.shown import instant  # noqa: PLC0415

    pattern, until = muting.read({"pattern": args.pattern, "for": args.length, "until": args.until})

    async def muted(stores: Stores) -> str:
        return instant(await muting.mute(stores.incidents, pattern, until))

    told = asked(database, muted)
    words = f"{plain(pattern)} is recorded and not told until {second(told)}"
    print(json.dumps({"pattern": pattern, "until": told}, ensure_ascii=False) if args.json else words)
    return 0


def _unmute(args: argparse.Namespace, database: Database) -> int:
    async def unmuted(stores: Stores) -> bool:
        return await stores.incidents.unmute(args.pattern)

    if not asked(database, unmuted):
        raise ServiceError(f"nothing is muted by {plain(args.pattern)}; `wakebell alerts` lists what is")
    words = f"{plain(args.pattern)} is told again"
    print(json.dumps({"pattern": args.pattern, "until": None}, ensure_ascii=False) if args.json else words)
    return 0


# ------------------------------------------------------------------------------------------------------------- printing


def _table(found: Mapping[str, Any]) -> str:
    """A line an alert, in columns; then what is muted."""
    lines = _listed(found["alerts"]) if found["alerts"] else ["nothing is wrong"]
    if found["more"]:
        lines.append("older ones follow; raise --limit to see them")
    lines += [f"muted until {second(mute['until'])}: {plain(mute['pattern'])}" for mute in found["mutes"]]
    return "\n".join(lines)


def _listed(alerts: Sequence[Mapping[str, Any]]) -> list[str]:
    lines = [COLUMNS]
    for alert in alerts:
        key = cut(plain(alert["key"]), KEY_SHOWN)
        reason = cut(plain(alert["reason"] or ""), REASON_SHOWN)
        lines.append((str(alert["id"]), key, str(alert["failures"]), second(alert["opened_at"]), _state(alert), reason))
    return columns(lines)


def _state(alert: Mapping[str, Any]) -> str:
    if alert["resolved_at"] is not None:
        return f"over {second(alert['resolved_at'])}"
    if alert["muted_until"] is not None:
        return "muted"
    return "open" if alert["acknowledged_at"] is None else "acknowledged"
