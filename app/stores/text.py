"""What PostgreSQL's `text` and `jsonb` cannot hold is taken out before it gets there."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

ERROR_LENGTH = 2000
"""Characters of an error that are kept: enough for a reason, too few to fill a disk."""


def clean(words: str, *, limit: int = ERROR_LENGTH) -> str:
    """Without NUL and lone surrogates, at most `limit` characters."""
    kept = words.replace("\x00", "").encode("utf-8", "replace").decode("utf-8")
    return kept if len(kept) <= limit else kept[: limit - 1] + "…"


def array(names: Sequence[str]) -> str:
    """A text array as one string parameter: a bound array costs ten round trips at its first use."""
    return "{" + ",".join(json.dumps(name, ensure_ascii=False) for name in names) + "}"
