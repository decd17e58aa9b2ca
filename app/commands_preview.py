"""The command `preview`: a source as a tick would read it, for people."""

from __future__ import annotations

import asyncio
import json
import sys
from typing import TYPE_CHECKING, Any

from app.commands import columns, cut, plain
from app.domain.errors import ServiceError

if TYPE_CHECKING:
    import argparse
    from collections.abc import Collection, Iterator, Mapping

    from app.commands import AddCommand

# Everything else is imported when it is needed: `wakebell --help` is to come at once.

TITLE_SHOWN = 100
VALUE_SHOWN = 60


def add(command: AddCommand) -> None:
    """Add the command's parser."""
    about = "Read a source now; show its items, who would hear of them and why, and the messages. Sends nothing."
    preview = command("preview", _preview, about)
    preview.add_argument("source", metavar="SOURCE", help="a name in [sources.*]; no database is needed")
    preview.add_argument(
        "--validate", action="store_true", help="ask LINE whether it would take the messages; that sends nothing either"
    )
    preview.add_argument("--json", action="store_true", help="print data as JSON")


def _preview(args: argparse.Namespace) -> int:
    """A failing source is told as data too, where that is asked for, and by the exit status."""
    from app import logs, preview, settings  # noqa: PLC0415

    configured = settings.load(settings.from_process())
    environment = configured.environment
    # What a server would log, the preview says itself.
    level = environment.log_level if environment.log_level == "DEBUG" else "CRITICAL"
    logs.configure(style=environment.log_format, level=level, stream=sys.stderr, mask=configured.mask)
    found = asyncio.run(preview.run(configured, args.source, validate=args.validate))
    if args.json:
        print(json.dumps(found, ensure_ascii=False))
    if found["status"] != "ok":
        raise ServiceError(f"source {args.source}: {found['reason']}")
    if not args.json:
        asking = {asked.name for asked in configured.subscriptions if asked.hears(args.source)}
        print("\n".join(_lines(found, asking)))
    return 0


def _lines(found: Mapping[str, Any], asking: Collection[str]) -> Iterator[str]:
    """`asking` are the subscriptions to this source: of others it need not be said for each item that they are not."""
    items, messages = found["items"], found["messages"]
    heard = sum(any(match["matched"] for match in item["matches"]) for item in items)
    shown = f"{len(items)} item{'' if len(items) == 1 else 's'}, {heard} of them for somebody"
    yield f"source {found['source']}: {found['reason'] or shown}"
    yield from (f"  odd: {plain(warning)}" for warning in found["warnings"])
    if items and not asking:
        yield "  no subscription is to this source"
    for item in items:
        yield ""
        yield from _item(item, asking)
    if messages:
        yield ""
        yield "Were all of it new, one tick would send:"
    for message in messages:
        yield from _message(message)


def _item(item: Mapping[str, Any], asking: Collection[str]) -> Iterator[str]:
    yield cut(plain(item["title"]), TITLE_SHOWN) or "(no title)"
    yield f"  key        {plain(item['key'])}"
    for name in ("link", "published"):
        if item[name]:
            yield f"  {name:10} {plain(item[name])}"
    texts = {"text": " ".join(item["text"].split()), **item["fields"]}
    yield from (
        f"  {plain(name):10} {cut(plain(str(value)), VALUE_SHOWN)}" for name, value in texts.items() if value != ""
    )
    matches = [match for match in item["matches"] if match["subscription"] in asking]
    verdicts = [("yes" if match["matched"] else "no", match["subscription"], plain(match["why"])) for match in matches]
    if verdicts:
        yield from (f"  {line}" for line in columns(verdicts))


def _message(message: Mapping[str, Any]) -> Iterator[str]:
    parts = message["parts"]
    for number, part in enumerate(parts, 1):
        of = f", part {number} of {len(parts)}" if len(parts) > 1 else ""
        limit = f"at most {part['limit']:,}" if part["limit"] is not None else "no limit"
        yield ""
        yield f"to {message['recipient']} by {message['channel']}{of}; length {part['length']:,}, {limit}"
        yield from (f"  | {plain(line)}".rstrip() for line in part["text"].splitlines())
    if message.get("refused") is not None:
        yield f"  refused: {plain(message['refused'])}"
