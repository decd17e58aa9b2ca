"""JSON into the database and out: what PostgreSQL cannot hold is refused in a payload and taken out of a result."""

from __future__ import annotations

import json
import math
import re
from typing import TYPE_CHECKING, Any

from app.stores.text import ERROR_LENGTH, clean

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


SUSPECT = re.compile(r"\\u(?:0000|d[89a-f])|NaN|Infinity")
"""In JSON of ASCII alone: what may be a character that PostgreSQL cannot store, or no number. Looked at closer then."""

DEEPEST = 200
"""Levels below a payload itself: one with so many is not handed out by a claim (`jobs.sql`), and is refused here."""

TOO_DEEP = f"is nested too deeply; it may have fewer than {DEEPEST} levels"

CONTAINERS = (dict, list, tuple)

UNREADABLE = "nested too deeply to be read"

_encoded = json.JSONEncoder(separators=(",", ":")).encode


def payload_text(payload: Mapping[str, Any]) -> str:
    """A payload as JSON.

    Raises:
        ValueError: what in it cannot be stored, by its path: `payload.customer.names[2]`.
    """
    if is_deep(payload):
        raise ValueError(f"payload: {TOO_DEEP}")
    return json_text("payload", payload)


def is_deep(value: Any, levels: int = DEEPEST) -> bool:
    """Whether anything in it stands so many levels below it; one that holds itself does."""
    for inner in value.values() if isinstance(value, dict) else value:
        if levels == 1 or (isinstance(inner, CONTAINERS) and is_deep(inner, levels - 1)):
            return True
    return False


def json_text(place: str, value: Any) -> str:
    """JSON that PostgreSQL can store. Fast for what is made of JSON's own types, the rest is looked at closely.

    Raises:
        ValueError: what in it cannot be stored, by its path, which begins with `place`.
    """
    try:
        if _is_plain(value):
            told = _encoded(value)
            if not SUSPECT.search(told):
                return told
        for path, fault in _faults(place, value):
            raise ValueError(f"{path}: {fault}")
        return _encoded(value)
    except RecursionError:
        raise ValueError(f"{place}: is nested too deeply") from None


def result_text(result: Any) -> str | None:
    """A handler's result as JSON: whatever it is, it must not keep the job from being finished.

    One that is longer than 2,000 characters becomes the beginning of its text.
    """
    if result is None:
        return None
    try:
        told = json.dumps(_cleaned(result), allow_nan=False)
    except RecursionError:
        told = '"nested too deeply to be kept"'
    except Exception:  # noqa: BLE001 - __str__ and __repr__ are the handler's own code
        try:
            told = json.dumps(clean(repr(result)))
        except Exception:  # noqa: BLE001
            told = json.dumps(f"a {type(result).__name__} that cannot be put into words")
    return told if len(told) <= ERROR_LENGTH else json.dumps(clean(told))


def json_value(stored: str | None) -> Any:
    """What stored JSON says, as text out of the database: one driver hands jsonb over as text, the next as values.

    A number too long for Python stays the text of its digits, and what is nested too deeply becomes words: SQL may put
    such in, and it must not stop who reads.
    """
    try:
        return None if stored is None else _decoded(stored)
    except RecursionError:
        return UNREADABLE


def json_shown(stored: str | None) -> Any:
    """The same for people and programs: words already from the depth on at which nobody is handed it."""
    value = json_value(stored)
    return UNREADABLE if isinstance(value, dict | list) and is_deep(value) else value


def _whole(digits: str) -> int | str:
    try:
        return int(digits)
    except ValueError:  # more than 4,300 of them
        return digits


def _fraction(digits: str) -> float | str:
    number = float(digits)
    return number if math.isfinite(number) else digits


_decoded = json.JSONDecoder(parse_int=_whole, parse_float=_fraction).decode
"""Made once: to make one for each of a thousand payloads takes longer than to read them."""


def _is_plain(value: Any) -> bool:
    """Whether it is made of JSON's own types, and only its characters and numbers may be wrong: most payloads are."""
    kind = type(value)
    if kind is dict:
        for key, inner in value.items():
            if type(key) is not str or not (type(inner) in SCALARS or _is_plain(inner)):
                return False
        return True
    if kind is list:
        return all(type(inner) in SCALARS or _is_plain(inner) for inner in value)
    return kind in SCALARS


SCALARS = frozenset({str, int, float, bool, type(None)})


def _faults(path: str, value: Any) -> Iterator[tuple[str, str]]:
    match value:
        case dict():
            for key, inner in value.items():
                yield from _faults_of_key(path, key)
                yield from _faults(f"{path}.{key}", inner)
        case list() | tuple():
            for index, inner in enumerate(value):
                yield from _faults(f"{path}[{index}]", inner)
        case str() if "\x00" in value:
            yield path, "holds a NUL character, which PostgreSQL cannot store"
        case str() if not _encodable(value):
            yield path, "holds half of a surrogate pair, which is no character"
        case float() if not math.isfinite(value):
            yield path, "is not a finite number, which JSON does not have"
        case None | bool() | int() | float() | str():
            pass
        case _:
            yield path, f"is of the type {type(value).__name__}, which JSON does not have"


def _faults_of_key(path: str, key: Any) -> Iterator[tuple[str, str]]:
    if not isinstance(key, str):
        yield path, f"has the key {key!r}, which is not a text"
    elif "\x00" in key or not _encodable(key):
        yield path, f"has the key {key!a}, which PostgreSQL cannot store"


def _encodable(words: str) -> bool:
    return not any("\ud800" <= letter <= "\udfff" for letter in words)


def _cleaned(value: Any) -> Any:
    if isinstance(value, str):
        return clean(value, limit=ERROR_LENGTH)
    if isinstance(value, dict):
        return {clean(str(key)): _cleaned(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_cleaned(inner) for inner in value]
    if value is None or isinstance(value, bool | int | float):
        return value
    return clean(str(value), limit=ERROR_LENGTH)
