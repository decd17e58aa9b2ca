"""Bodies of requests: JSON objects, read no further than they may be long."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, NoReturn

from starlette.requests import ClientDisconnect

from app.api.errors import Problem
from app.stores.text import clean

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from fastapi import Request
    from pydantic import ValidationError
    from pydantic_core import ErrorDetails

MOST_BYTES = 512 * 1024
"""Of a whole body, unless its door says otherwise."""

MAYBE_JSON = frozenset(
    {"", "text/json", "text/plain", "application/octet-stream", "application/x-www-form-urlencoded"},
)
"""What programs send with JSON when nobody told them to name it; the last is what curl names."""

HIDDEN_LENGTH = 8
"""Characters. Texts as long as this are struck out of what a validator says, whether or not they are secrets."""

MOST_ERRORS = 5


async def json_object(request: Request, *, most_bytes: int = MOST_BYTES) -> dict[str, Any]:
    """The body as a dictionary. A body that is too long is refused before the rest of it has come.

    Raises:
        Problem: 413 too long, 415 clearly not JSON, 400 not JSON after all, 422 JSON but no object.
    """
    _refuse_other_kinds(request)
    raw = await _read(request, most_bytes)
    try:
        parsed = json.loads(raw, parse_constant=_no_constant)
    except RecursionError:
        raise Problem(422, "Unprocessable Content", "the body is nested too deeply") from None
    except ValueError as error:  # no JSON, no UTF-8, or a number of thousands of digits
        raise Problem(400, "Bad Request", f"the body is not JSON{_place(error)}") from None
    if not isinstance(parsed, dict):
        raise Problem(422, "Unprocessable Content", "the body must be a JSON object: {…}")
    return parsed


def refusal(error: ValidationError, *, within: str = "", hidden: Any = None) -> Problem:
    """422 that names each field without its value.

    Args:
        error: what the model said.
        within: the field that was validated, when it was not the whole body.
        hidden: what a validator of somebody else's may have quoted: its texts are struck out.
    """
    texts = sorted(set(_texts(hidden)), key=len, reverse=True)
    found = error.errors(include_url=False, include_context=False, include_input=False)
    lines = [_line(e, within, texts) for e in found[:MOST_ERRORS]]
    if len(found) > MOST_ERRORS:
        lines.append(f"and {len(found) - MOST_ERRORS} more")
    return Problem(422, "Unprocessable Content", clean("; ".join(lines)))


def _line(error: ErrorDetails, within: str, hidden: Iterable[str]) -> str:
    field = ".".join([*([within] if within else []), *map(str, error["loc"])]) or "the body"
    if error["type"] == "extra_forbidden":
        return f"{field}: there is no such field; remove it"
    said = error["msg"].removeprefix("Value error, ").removeprefix("Assertion failed, ")
    for text in hidden:
        said = said.replace(text, "…")
    return f"{field}: {said}"


def storable(words: str) -> str:
    """A text as it is, when PostgreSQL can hold it; a ValueError else."""
    if "\x00" in words:
        raise ValueError("holds a NUL character, which PostgreSQL cannot store")
    if any("\ud800" <= letter <= "\udfff" for letter in words):
        raise ValueError("holds half of a surrogate pair, which is no character")
    return words


def _refuse_other_kinds(request: Request) -> None:
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind not in MAYBE_JSON and kind != "application/json" and not kind.endswith("+json"):
        detail = f"the body is said to be {clean(kind, limit=100)}; send JSON with `Content-Type: application/json`"
        raise Problem(415, "Unsupported Media Type", detail)
    if request.headers.get("content-encoding", "identity").strip().lower() not in {"", "identity"}:
        raise Problem(415, "Unsupported Media Type", "send the body as it is, without Content-Encoding")


async def _read(request: Request, most_bytes: int) -> bytes:
    said = request.headers.get("content-length", "")
    if said.isascii() and said.isdigit() and int(said[:20]) > most_bytes:
        raise _too_long(most_bytes)
    read = bytearray()
    try:
        async for chunk in request.stream():
            read += chunk
            if len(read) > most_bytes:
                raise _too_long(most_bytes)
    except ClientDisconnect:
        raise Problem(400, "Bad Request", "the body ended before it was complete") from None
    return bytes(read)


def _too_long(most_bytes: int) -> Problem:
    return Problem(413, "Content Too Large", f"the body must be at most {most_bytes // 1024} KiB")


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def _place(error: ValueError) -> str:
    if isinstance(error, json.JSONDecodeError):
        return f": {error.msg} at line {error.lineno}, column {error.colno}"
    return ""


def _texts(value: Any) -> Iterator[str]:
    match value:
        case str() if len(value) >= HIDDEN_LENGTH:
            yield value
        case dict():
            for inner in value.values():
                yield from _texts(inner)
        case list():
            for inner in value:
                yield from _texts(inner)
