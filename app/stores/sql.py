"""Named statements from the `.sql` file beside each store, and how their parameters are written for PostgreSQL."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

HEADING = "-- name: "

PARAMETER = re.compile(r"(?<![:\w\\]):(\w+)(?!:)")
"""`:name` as SQLAlchemy reads it: not a cast, nor what stands behind a backslash."""


class Statement:
    """One statement with `:name` for each of its parameters."""

    __slots__ = ("_driver", "text")

    def __init__(self, text: str) -> None:
        self.text = text
        self._driver: tuple[str, tuple[str, ...]] | None = None

    def __str__(self) -> str:
        return self.text

    @property
    def driver(self) -> tuple[str, tuple[str, ...]]:
        """As PostgreSQL takes it, and the names of its parameters in the order of their numbers."""
        if self._driver is None:  # with its first use: a start has hundreds of them, and a tick needs a few
            numbers: dict[str, int] = {}
            written = PARAMETER.sub(lambda found: f"${numbers.setdefault(found[1], len(numbers) + 1)}", self.text)
            self._driver = written.replace("\\:", ":"), tuple(numbers)
        return self._driver

    def given(self, params: Mapping[str, Any] | None) -> tuple[Any, ...]:
        """The values in the order of their numbers.

        Raises:
            KeyError: there is none for a parameter.
        """
        return tuple((params or {})[name] for name in self.driver[1])


def text(words: str) -> Statement:
    """A statement that stands in a store itself."""
    return Statement(words)


@cache
def load(store: str) -> dict[str, Statement]:
    """The statements of `<store>.sql` by name. Read once a process.

    Raises:
        FileNotFoundError: the store has no such file.
    """
    script = (Path(__file__).parent / f"{store}.sql").read_text(encoding="utf-8")
    blocks = script.split(HEADING)[1:]
    return {
        name.strip(): Statement(body.strip().rstrip(";"))
        for name, _, body in (block.partition("\n") for block in blocks)
    }
