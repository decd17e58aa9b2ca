"""The command `unblock`: somebody who was not reached any more is there again."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING

from app.commands import plain, with_stores
from app.domain.errors import ServiceError

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable
    from contextlib import AbstractContextManager

    from app.commands import AddCommand
    from app.settings import Settings
    from app.stores import Stores

    Configured = Callable[[], AbstractContextManager[Settings]]
    """The whole configuration, whose logs leave stdout alone."""

# Everything else is imported when it is needed: `wakebell --help` is to come at once.


def add(command: AddCommand, configured: Configured) -> None:
    """Add the command's parser."""
    about = "Write to a recipient again who had blocked the service, or was not there."
    unblock = command("unblock", lambda args: _unblock(args, configured), about)
    unblock.add_argument("recipient", metavar="RECIPIENT", help="a name in [recipients.*]")
    unblock.add_argument("--json", action="store_true", help="print data as JSON")


def _unblock(args: argparse.Namespace, configured: Configured) -> int:
    from app.settings import address_of  # noqa: PLC0415

    with configured() as settings:
        recipient = settings.recipients.get(args.recipient)
        if recipient is None:
            known = ", ".join(settings.recipients)
            raise ServiceError(f'the configuration has no recipient "{plain(args.recipient)}"; it has {known}')
        address = address_of(settings, recipient)

        async def unblocked(stores: Stores) -> bool:
            return await stores.reach.unblock(address=address, name=recipient.name)

        changed = asyncio.run(with_stores(settings.environment.database_url, unblocked))
    if args.json:
        print(json.dumps({"recipient": recipient.name, "unblocked": changed}, ensure_ascii=False))
    elif changed:
        print(f"{recipient.name} is written to again; the next tick tells what is owed")
    else:
        print(f"{recipient.name} was not blocked")
    return 0
