"""A text `"env:NAME"`, anywhere in the configuration file, stands for what the environment variable NAME holds."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from app.settings.problems import FromEnvironment, path, quoted
from app.settings.table import TOLD

if TYPE_CHECKING:
    from collections.abc import Mapping

    from app.settings.problems import Problems

PREFIX = "env:"
NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")

PLACEHOLDER = re.compile(r"U?(?:\.{3}|…)")
"""What the README writes where a value belongs."""

WITHIN = re.compile(r"[A-Za-z]+ env:[A-Za-z_][A-Za-z0-9_]*")
"""`Bearer env:TOKEN`: written in hope, and sent to the other side as it stands if nobody says so."""


def resolve(value: object, environ: Mapping[str, str], file: str, keys: tuple[str, ...], problems: Problems) -> object:
    """The value with every reference in it read, at any depth; TOLD where the environment does not have it.

    Whitespace at the ends of a variable is dropped: a secret that came from a file often brings a line's end along.
    """
    match value:
        case dict():
            return {key: resolve(inner, environ, file, (*keys, key), problems) for key, inner in value.items()}
        case list():
            return [resolve(inner, environ, file, keys, problems) for inner in value]
        case str():
            return _text(value, environ, f"{file}: {path(*keys)}", problems)
        case _:
            return value


def _text(text: str, environ: Mapping[str, str], where: str, problems: Problems) -> object:
    if WITHIN.fullmatch(text.strip()):
        name = text.rpartition(PREFIX)[2].strip()
        problems.add(
            where, f'"{PREFIX}{name}" must be the whole text; put the words before it into the variable {name}'
        )
        return TOLD
    if not text.startswith(PREFIX):
        return text
    name = text.removeprefix(PREFIX).strip()
    if not NAME.fullmatch(name):
        problems.add(where, f'{quoted(PREFIX)} must be followed by the name of a variable; write "env:NAME"')
        return TOLD
    value = environ.get(name, "").strip()
    fault = _fault(value, is_set=name in environ)
    if fault is not None:
        problems.add(where, f"the environment variable {name} {fault}")
        return TOLD
    return FromEnvironment(value, variable=name)


def _fault(value: str, *, is_set: bool) -> str | None:
    if not value:
        return f"is {'empty' if is_set else 'not set'}; set it"
    if PLACEHOLDER.fullmatch(value):
        return "holds a placeholder; put the real value there"
    if not value.isascii() and any("\ud800" <= c <= "\udfff" for c in value):
        return "is not UTF-8; set it again"
    return None
