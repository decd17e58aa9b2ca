"""Problems are collected and told together: a person mends a configuration once, not once for each mistake."""

from __future__ import annotations

import difflib
import math
import re
from typing import TYPE_CHECKING, Self

from app.domain.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Iterable

SHOWN_LENGTH = 32
"""Characters. A longer text may be a token in the wrong place and is not repeated; the longest time zone has 32."""

LARGE = 10**15
"""Numbers from here on are not repeated: they may have thousands of digits."""


class FromEnvironment(str):
    """A text that `"env:NAME"` stood for. It is never repeated in a problem."""

    __slots__ = ("variable",)

    variable: str

    def __new__(cls, text: str, *, variable: str) -> Self:
        """`variable` is its name."""
        made = super().__new__(cls, text)
        made.variable = variable
        return made


class Problems:
    """The problems found so far, in the order in which they were found."""

    def __init__(self) -> None:
        self._sentences: list[str] = []

    def add(self, where: str, what: str) -> None:
        """`what` says what is wrong and, after a semicolon, what to change. The same sentence is told once."""
        sentence = f"{where}: {what}"
        if sentence not in self._sentences:
            self._sentences.append(sentence)

    def finish(self) -> None:
        """Raises ConfigError with all of them; nothing, where there are none."""
        if self._sentences:
            raise ConfigError(self._sentences)


def shown(value: object) -> str:
    """A value as a problem may show it: short, on one line, and never what may be a secret."""
    match value:
        case FromEnvironment():
            told = f"what the variable {value.variable} holds"
        case str() if len(value) > SHOWN_LENGTH or "://" in value:
            told = "the text that stands there"
        case str():
            told = quoted(value)
        case bool():
            told = "true" if value else "false"
        case int() | float():
            told = "so large a number" if LARGE <= abs(value) < math.inf else str(value)
        case list():
            told = "a list"
        case dict():
            told = "a table"
        case _:
            told = "a date or a time"
    return told


def quoted(text: str) -> str:
    """In quotes, without control characters."""
    return '"' + "".join(c if c.isprintable() else "?" for c in text) + '"'


def path(*keys: str) -> str:
    """Keys as TOML writes them: `sources.board`, `sources."My board"`."""
    return ".".join(key if re.fullmatch("[A-Za-z0-9_-]+", key) else quoted(key[:SHOWN_LENGTH]) for key in keys)


def nearest(name: str, known: Iterable[str]) -> str | None:
    """The name that was probably meant."""
    close = difflib.get_close_matches(name.lower(), list(known), n=1)
    return close[0] if close else None


def choose(name: str, known: Iterable[str], *, none: str) -> str:
    """What to write instead of `name`: the nearest of the known ones, and which there are; `none` where none is."""
    names = sorted(known)
    if not names:
        return none
    meant = nearest(name, names)
    listed = "there is only" if len(names) == 1 else "there are"
    told = f"{listed} {', '.join(names)}"
    return f'did you mean "{meant}"? ({told})' if meant else told
