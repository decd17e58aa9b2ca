"""A kind's `Options` read from a table, its complaints told in our words and without any value."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from app.settings.problems import FromEnvironment
from app.settings.table import Told, unknown

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    from pydantic import BaseModel
    from pydantic_core import ErrorDetails

    from app.settings.table import Table

HIDDEN_LENGTH = 8
"""Characters. Texts as long as this are struck out of what a validator says, whether or not they are secrets."""

REMEDY = re.compile(r"[;:] ")
"""A validator's sentence that has two parts says in the second what to change."""

SENTENCES = {
    "missing": "is missing; write it",
    "string_type": "must be a text; put it in quotes",
    "bool_type": "must be true or false; write it without quotes",
    "list_type": 'must be a list; write it like ["one", "two"]',
    "tuple_type": 'must be a list; write it like ["one", "two"]',
    "set_type": 'must be a list; write it like ["one", "two"]',
    "frozen_set_type": 'must be a list; write it like ["one", "two"]',
    "dict_type": 'must be a table; write it like { name = "value" }',
    "model_type": 'must be a table; write it like { name = "value" }',
    "model_attributes_type": 'must be a table; write it like { name = "value" }',
    "int_type": "must be a whole number; write it without quotes and without a fraction",
    "float_type": "must be a number; write it without quotes",
    "finite_number": "must be a number; infinity is none",
    "url_parsing": "must be an address; write it like https://example.com/path",
    "url_scheme": "must be an http or https address; write it like https://example.com/path",
    "url_type": "must be an address; write it like https://example.com/path",
    "string_too_short": "is too short; write more",
}


def read_options(table: Table, options: type[BaseModel], *, own: Collection[str]) -> BaseModel | None:
    """The options; None where there is a problem, which is told. `own` are the table's keys that are not the kind's.

    Strict as JSON is: a number in quotes is no number, and true is none.
    """
    values = {key: value for key, value in table.values.items() if key not in own}
    told = set(_told(values, ()))
    try:
        read = options.model_validate_json(json.dumps(_without_told(values), default=str), strict=True)
    except ValidationError as error:
        for detail in error.errors(include_url=False):
            keys = _keys(detail, values)
            if not _follows(keys, told):
                table.problems.add(table.where(*keys), _sentence(detail, values, {*own, *options.model_fields}))
        return None
    return None if told else read


def _sentence(detail: ErrorDetails, values: Mapping[str, object], known: Collection[str]) -> str:
    if detail["type"] == "extra_forbidden":
        keys = detail["loc"]
        return unknown(str(keys[0]), known) if len(keys) == 1 else "there is no such key; remove it"
    if detail["type"] in SENTENCES:
        return SENTENCES[detail["type"]]
    said = _struck(detail["msg"].removeprefix("Value error, ").removeprefix("Assertion failed, "), values)
    for theirs, ours in (("Input should be ", "must be "), ("should have", "must have"), ("Input ", "")):
        said = said.replace(theirs, ours)
    remedy = "" if REMEDY.search(said) else "; change it"
    return f"{said[:1].lower()}{said[1:]}{remedy}"


def _struck(said: str, values: object) -> str:
    """Without the values that a validator has put into its sentence."""
    for text in sorted(_secrets(values), key=len, reverse=True):
        said = said.replace(text, "…")
    return said


def _secrets(value: object) -> Iterator[str]:
    match value:
        case FromEnvironment():
            yield value
        case str() if len(value) >= HIDDEN_LENGTH:
            yield value
        case dict():
            for inner in value.values():
                yield from _secrets(inner)
        case list():
            for inner in value:
                yield from _secrets(inner)


def _keys(detail: ErrorDetails, values: object) -> tuple[str, ...]:
    """The keys that the user has written; pydantic adds names of its own for the branches of a union."""
    keys: list[str] = []
    for key in detail["loc"]:
        if isinstance(values, dict) and (key in values or detail["type"] == "missing"):
            keys.append(str(key))
            values = values.get(key)
        elif isinstance(values, list) and isinstance(key, int) and key < len(values):
            values = values[key]
    return tuple(keys)


def _told(value: object, keys: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    """Where a value is missing whose problem has been told already."""
    match value:
        case Told():
            yield keys
        case dict():
            for key, inner in value.items():
                yield from _told(inner, (*keys, key))
        case list():
            for inner in value:
                yield from _told(inner, keys)


def _follows(keys: tuple[str, ...], told: Collection[tuple[str, ...]]) -> bool:
    """Whether a problem there may only follow from one that has been told."""
    return any(keys[: len(other)] == other or other[: len(keys)] == keys for other in told)


def _without_told(value: Any) -> Any:
    match value:
        case dict():
            return {key: _without_told(inner) for key, inner in value.items() if not isinstance(inner, Told)}
        case list():
            return [_without_told(inner) for inner in value if not isinstance(inner, Told)]
        case _:
            return value
