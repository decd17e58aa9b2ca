"""fastfeedparser, with its defaults."""

from __future__ import annotations

import fastfeedparser

Entry = tuple[str | None, str | None, str | None]


def read(body: bytes) -> list[Entry]:
    """Whatever it raises goes up."""
    found = fastfeedparser.parse(body)
    return [tuple(entry.get(name) for name in ("title", "link", "id")) for entry in found.entries]
