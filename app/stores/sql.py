"""Named statements from the `.sql` file beside each store."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from sqlalchemy import TextClause, text

HEADING = "-- name: "


@cache
def load(store: str) -> dict[str, TextClause]:
    """The statements of `<store>.sql` by name. Read once a process.

    Raises:
        FileNotFoundError: the store has no such file.
    """
    script = (Path(__file__).parent / f"{store}.sql").read_text(encoding="utf-8")
    blocks = script.split(HEADING)[1:]
    return {
        name.strip(): text(body.strip().rstrip(";")) for name, _, body in (block.partition("\n") for block in blocks)
    }
