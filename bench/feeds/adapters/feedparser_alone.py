"""feedparser as it is read about first: with all it does by default."""

from __future__ import annotations

import feedparser

Entry = tuple[str | None, str | None, str | None]


def read(body: bytes) -> list[Entry]:
    """Whatever it raises goes up."""
    found = feedparser.parse(body)
    if not found.entries and not found.version:
        raise ValueError("no feed")
    # Not entry.get: it answers for missing names with others.
    return [(dict.get(entry, "title"), dict.get(entry, "link"), dict.get(entry, "id")) for entry in found.entries]
