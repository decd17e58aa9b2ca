"""The commands about conversations: `conversations`, `resume-conversation` and `forget-conversation`."""

from __future__ import annotations

import argparse
import asyncio
import json
from typing import TYPE_CHECKING, Any

from app.commands import columns, cut, plain, second, with_stores
from app.domain.errors import ServiceError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from contextlib import AbstractContextManager

    from app.commands import AddCommand
    from app.settings import Settings
    from app.stores import Stores

    Configured = Callable[[], AbstractContextManager[Settings]]
    """The whole configuration, whose logs leave stdout alone: it says where conversations are remembered."""

# Everything else is imported by the command that needs it: `wakebell --help` is to come at once.

COLUMNS = ("id", "chat", "person", "turns", "last", "paused until")
PERSON_SHOWN = 40
MOST_LISTED = 200


def add(command: AddCommand, configured: Configured) -> None:
    """Add the parsers of these commands."""
    about = "List who is talked with, without what was said."
    listing = command("conversations", lambda args: _conversations(args, configured), about)
    listing.add_argument("--chat", metavar="CHAT", help="of this [chats.CHAT] alone")
    listing.add_argument("--paused", action="store_true", help="only those in which a person of yours has taken over")
    listing.add_argument("--limit", type=_limit, default=50, metavar="N", help=f"1 to {MOST_LISTED}, default 50")

    about = "Answer again in a conversation that a person of yours has taken over."
    resume = command("resume-conversation", lambda args: _resume(args, configured), about)
    about = "Forget a person: what was said, what waits for a reply, what they watch for."
    forget = command("forget-conversation", lambda args: _forget(args, configured), about)
    for named in (resume, forget):
        named.add_argument("conversation", type=_id, metavar="ID", help="as `wakebell conversations` shows it")
    for printing in (listing, resume, forget):
        printing.add_argument("--json", action="store_true", help="print data as JSON")


def _limit(text: str) -> int:
    if not (text.isascii() and text.isdigit() and 1 <= int(text[:30]) <= MOST_LISTED):
        raise argparse.ArgumentTypeError(f"must be a whole number from 1 to {MOST_LISTED}")
    return int(text)


def _id(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < 19):  # noqa: PLR2004 - a bigint
        raise argparse.ArgumentTypeError("must be a number, as `wakebell conversations` shows it")
    return int(text)


# ------------------------------------------------------------------------------------------------------------- running


def _conversations(args: argparse.Namespace, configured: Configured) -> int:
    from app import memories  # noqa: PLC0415

    async def listed(settings: Settings, stores: Stores) -> dict[str, Any]:
        paused = True if args.paused else None
        page = await memories.listed(settings, stores, limit=args.limit, chat=args.chat, paused=paused)
        return {"conversations": [memories.shown(talk) for talk in page.rows], "more": page.more}

    found = _asked(configured, listed)
    print(json.dumps(found, ensure_ascii=False) if args.json else _table(found))
    return 0


def _resume(args: argparse.Namespace, configured: Configured) -> int:
    async def resumed(_: Settings, stores: Stores) -> bool:
        return await stores.talks.resume(args.conversation)

    if not _asked(configured, resumed):
        raise _unknown(args.conversation)
    words = f"the service answers in conversation {args.conversation} again"
    print(json.dumps({"id": args.conversation, "paused_until": None}) if args.json else words)
    return 0


def _forget(args: argparse.Namespace, configured: Configured) -> int:
    from app import memories  # noqa: PLC0415

    async def forgotten(settings: Settings, stores: Stores) -> bool:
        return await memories.forget(settings, stores, args.conversation)

    if not _asked(configured, forgotten):
        raise _unknown(args.conversation)
    told = {"id": args.conversation, "forgotten": True}
    print(json.dumps(told) if args.json else f"conversation {args.conversation} is forgotten")
    return 0


def _asked(configured: Configured, question: Callable[[Settings, Stores], Any]) -> Any:
    with configured() as settings:
        return asyncio.run(with_stores(settings.environment.database_url, lambda stores: question(settings, stores)))


def _unknown(conversation: int) -> ServiceError:
    return ServiceError(f"there is no conversation {conversation}; `wakebell conversations` lists them")


# ------------------------------------------------------------------------------------------------------------ printing


def _table(found: Mapping[str, Any]) -> str:
    """A line a conversation, in columns."""
    if not found["conversations"]:
        return "there is no conversation"
    lines = _lines(found["conversations"])
    return "\n".join([*lines, "older ones follow; raise --limit to see them"] if found["more"] else lines)


def _lines(talks: Sequence[Mapping[str, Any]]) -> list[str]:
    cells = [COLUMNS]
    for talk in talks:
        person = cut(plain(talk["person"] or ""), PERSON_SHOWN)
        last, paused = (second(at) if at else "" for at in (talk["last_at"], talk["paused_until"]))
        cells.append((str(talk["id"]), talk["chat"], person, str(talk["turns"]), last, paused))
    return columns(cells)
