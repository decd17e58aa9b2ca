"""Names of sources, channels, recipients and subscriptions: they become keys of rows and words in summaries."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from app.settings.table import Table

NAME = re.compile(r"[a-z0-9_-]{1,64}")

RESERVED_PREFIX = "wakebell"
"""Names that begin so are the service's own."""


def check_name(table: Table) -> None:
    """The name is the last key of the table's own."""
    name = table.keys[-1]
    if not NAME.fullmatch(name):
        offer = re.sub("[^a-z0-9_-]+", "-", name.lower()).strip("-")[:64]
        remedy = f"rename it, for example {offer}" if offer else "rename it"
        what = 'a name holds 1 to 64 of a-z, 0-9, "_" and "-", and nothing else'
        table.problems.add(table.where(), f"{what}; {remedy}")
    elif name.startswith(RESERVED_PREFIX):
        what = f"names that begin with {RESERVED_PREFIX} are the service's own"
        table.problems.add(table.where(), f"{what}; give it another name")
