"""Reading what a provider has delivered: of each value only what is of the type that it should be.

Whoever holds the secret may send anything, and providers add to their events without notice. So nothing in here raises
but for a body that is no JSON object.
"""

from __future__ import annotations

import hashlib
import json
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, NoReturn

from app.domain import textcut
from app.domain.chats import Malformed
from app.domain.text import UNWANTED

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

TEXT_LIMIT = 5_000
"""Characters of one thing said; the providers' own limits are 5,000 (LINE), 4,096 and 2,000."""

LONGEST_NAME = 255
"""Characters of an id. What is longer is kept by its digest, or not at all."""

MOST_NAMES = 100
"""Marks in one text, or things attached to one, that are looked at: Telegram has 100 at most, LINE 20."""

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
LAST_SECOND = 253_402_300_799
"""Of the year 9999."""

NO_JSON = "the body is no JSON object"


def document(raw: bytes) -> dict[str, Any]:
    """The JSON object in a body.

    Raises:
        Malformed: there is none.
    """
    try:
        told = json.loads(raw.decode("utf-8"), parse_constant=_no_constant)
    except (ValueError, RecursionError):  # no UTF-8, no JSON, a number of thousands of digits, a nesting without end
        raise Malformed(NO_JSON) from None
    if not isinstance(told, dict):
        raise Malformed(NO_JSON)
    return told


def table(value: object) -> dict[str, Any]:
    """The object itself; an empty one where it is none."""
    return value if isinstance(value, dict) else {}


def tables(value: object) -> list[dict[str, Any]]:
    """The objects in a list; none where it is no list."""
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


def name(value: object) -> str | None:
    """An id, or another short word of the provider's, as it can be kept; whole numbers as their digits."""
    if isinstance(value, int) and not isinstance(value, bool):
        value = str(value)
    return value if isinstance(value, str) and 0 < len(value) <= LONGEST_NAME and value.isprintable() else None


def event_id(value: object, event: Mapping[str, Any], *, without: Iterable[str] = ()) -> str:
    """The event's own id; where it has none that can be kept, one of its content, but for the keys in `without`.

    Raises:
        Malformed: its content is nested too deeply.
    """
    if (own := name(value)) is not None:
        return own
    if isinstance(value, str) and value:
        return _digest(value)
    left_out = set(without)
    content = {key: inner for key, inner in event.items() if key not in left_out}
    try:
        return _digest(json.dumps(content, sort_keys=True))
    except RecursionError:
        raise Malformed(NO_JSON) from None


def written(value: object) -> str:
    """A text as it came, as far as it can matter: marks in it are counted on that; empty where it is none."""
    return value[: TEXT_LIMIT * 4] if isinstance(value, str) else ""


def text(value: object) -> str:
    """What somebody has written, with its lines; empty where it is no text.

    Without control characters, halves of characters, and marks that turn what follows around.
    """
    kept = UNWANTED.sub("", written(value).replace("\r\n", "\n").replace("\r", "\n")).strip()
    return textcut.shorten(kept[: TEXT_LIMIT + 100], limit=TEXT_LIMIT, characters=TEXT_LIMIT)


def worded(word: str, more: str = "") -> str:
    """What stands for something that is no text, with what was written beside it."""
    return text(f"[{word}] {more}")


def instant(value: object, *, per_second: int) -> datetime | None:
    """A time that is told as a whole number since 1970."""
    if not isinstance(value, int) or isinstance(value, bool) or not 0 < value <= LAST_SECOND * per_second:
        return None
    return EPOCH + timedelta(seconds=value // per_second, microseconds=value % per_second * 1_000_000 // per_second)


def piece(whole: str, start: object, length: object) -> str:
    """A part of a text as LINE and Telegram name it, in UTF-16 code units; empty where there is none such."""
    if not isinstance(start, int) or not isinstance(length, int) or start < 0 or length <= 0:
        return ""
    units = whole.encode("utf-16-le", "surrogatepass")
    if 2 * (start + length) > len(units):
        return ""
    return units[2 * start : 2 * (start + length)].decode("utf-16-le", "replace")


def without_names(whole: str, spans: Iterable[tuple[int, int]]) -> str:
    """The text without those parts of it, each named as for `piece`, that begin with `@`."""
    units = whole.encode("utf-16-le", "surrogatepass")
    for start, length in sorted(set(spans), reverse=True):
        if piece(whole, start, length).startswith("@"):
            units = units[: 2 * start] + units[2 * (start + length) :]
    return units.decode("utf-16-le", "replace")


def _digest(content: str) -> str:
    return f"sha256-{hashlib.sha256(content.encode('utf-8', 'surrogatepass')).hexdigest()}"


def _no_constant(constant: str) -> NoReturn:
    raise ValueError(constant)  # NaN and Infinity, which Python reads and JSON does not have
