"""A TOML table being read: each key is asked for by name and type, and what nobody asked for is refused."""

from __future__ import annotations

import math
import sys
from typing import TYPE_CHECKING, TypeGuard

from app.settings.problems import FromEnvironment, choose, path, shown

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    from app.settings.problems import Problems


class Told:
    """Stands where a value would be whose problem has been told already, so that it is not told twice."""


TOLD = Told()
_ABSENT = object()


class Table:
    """One table. Every reading method answers something of its type even where it tells a problem."""

    def __init__(self, file: str, keys: tuple[str, ...], values: Mapping[str, object], problems: Problems) -> None:
        self.file = file
        self.keys = keys
        self.values = values
        self.problems = problems
        self._asked: list[str] = []

    def where(self, *keys: str) -> str:
        """How a problem names a key of this table."""
        return f"{self.file}: {path(*self.keys, *keys)}"

    def tell(self, key: str, what: str) -> None:
        """A problem with one key."""
        self.problems.add(self.where(key), what)

    def has(self, key: str) -> bool:
        """Whether it stands there, right or wrong."""
        return key in self.values

    def text(self, key: str, *, example: str) -> str | None:
        """A text with something in it, as it stands; None where there is none."""
        value = self._ask(key)
        if value is _ABSENT:
            return None
        if not isinstance(value, str):
            self.tell(key, f'must be a text in quotes, not {shown(value)}; write {key} = "{example}"')
            return None
        if not value.strip() or has_control(value):
            fault = "holds a control character" if value.strip() else "is empty"
            self.tell(key, f'{fault}; write {key} = "{example}"')
            return None
        return value

    def lines(self, key: str, *, example: str) -> str | None:
        """A text of one or more lines, with something in it; None where there is none."""
        value = self._ask(key)
        if value is _ABSENT:
            return None
        if not isinstance(value, str):
            self.tell(key, f'must be a text in quotes, not {shown(value)}; write {key} = """{example}"""')
            return None
        if not value.strip() or has_control("".join(value.split())):
            fault = "holds a control character" if value.strip() else "is empty"
            self.tell(key, f'{fault}; write {key} = """{example}"""')
            return None
        return value

    def number(self, key: str, default: float, *, least: float, most: float, rule: str) -> float:
        """A number in [least, most]; `rule` says so in words: "a number of days, more than 0"."""
        value = self._ask(key)
        if value is _ABSENT:
            return default
        if not is_number(value) or not least <= value <= most:
            self.tell(key, f"must be {rule}, not {shown(value)}; {_remedy(key, value, default)}")
            return default
        return float(value)

    def whole(self, key: str, default: int, *, least: int, most: int) -> int:
        """A whole number in [least, most]."""
        value = self._ask(key)
        if value is _ABSENT:
            return default
        if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
            rule = f"a whole number from {least} to {most}"
            self.tell(key, f"must be {rule}, not {shown(value)}; {_remedy(key, value, default)}")
            return default
        return value

    def flag(self, key: str, *, default: bool = False) -> bool:
        """True or false."""
        value = self._ask(key)
        if value is _ABSENT:
            return default
        if not isinstance(value, bool):
            self.tell(key, f"must be true or false, not {shown(value)}; write {key} = true")
            return default
        return value

    def texts(self, key: str, *, example: str) -> tuple[str, ...] | None:
        """A list of texts, each with something in it; None where the key is not there."""
        value = self._ask(key)
        if value is _ABSENT:
            return None
        if not isinstance(value, list):
            self.tell(key, f'must be a list of texts, not {shown(value)}; write {key} = ["{example}"]')
            return ()
        for element in value:
            if isinstance(element, Told):
                continue
            if not isinstance(element, str):
                self.tell(key, f"must hold only texts, not {shown(element)}; put each in quotes")
            elif not element.strip() or has_control(element):
                fault = "a control character" if element.strip() else "an empty text"
                self.tell(key, f"holds {fault}; remove it")
        return tuple(element for element in value if isinstance(element, str) and element.strip())

    def numbers(self, key: str) -> dict[str, float]:
        """A table of numbers by name; empty where the key is not there."""
        value = self._ask(key)
        if value is _ABSENT:
            return {}
        if not isinstance(value, dict):
            self.tell(key, f"must be a table, not {shown(value)}; write {key} = {{ budget = 500 }}")
            return {}
        for name, bound in value.items():
            if not is_number(bound) and not isinstance(bound, Told):
                self.problems.add(
                    self.where(key, name), f"must be a number, not {shown(bound)}; {_remedy(name, bound, 500)}"
                )
        return {name: float(bound) for name, bound in value.items() if is_number(bound)}

    def lists(self, key: str, *, example: str) -> dict[str, tuple[str, ...]]:
        """Lists of texts by name, without those that are empty; none where the key is not there."""
        value = self._ask(key)
        if value is _ABSENT:
            return {}
        if not isinstance(value, dict):
            self.tell(key, f"must be a table, not {shown(value)}; write {key} = {{ {example} }}")
            return {}
        inner = Table(self.file, (*self.keys, key), value, self.problems)
        found = {name: inner.texts(name, example="one") for name in value}
        return {name: texts for name, texts in found.items() if texts}

    def tables(self, key: str) -> Iterator[Table]:
        """The named tables under a key, in the file's order: `[sources.board]` under `sources`."""
        value = self._ask(key)
        if value is _ABSENT:
            return
        if not isinstance(value, dict):
            self.tell(key, f"must be a table for each name, not {shown(value)}; write [{key}.NAME]")
            return
        for name, values in value.items():
            if isinstance(values, dict):
                yield Table(self.file, (*self.keys, key, name), values, self.problems)
            elif not isinstance(values, Told):
                self.problems.add(
                    self.where(key, name), f"must be a table, not {shown(values)}; write [{key}.NAME] above its keys"
                )

    def table(self, key: str) -> Table:
        """The table under a key; one without keys where it is not there."""
        value = self._ask(key)
        if value is not _ABSENT and not isinstance(value, dict):
            self.tell(key, f"must be a table, not {shown(value)}; write [{key}] above its keys")
        return Table(self.file, (*self.keys, key), value if isinstance(value, dict) else {}, self.problems)

    def close(self) -> None:
        """Refuses by name whatever has not been asked for."""
        for key in self.values:
            if key not in self._asked:
                self.tell(key, unknown(key, self._asked))

    def _ask(self, key: str) -> object:
        self._asked.append(key)
        value = self.values.get(key, _ABSENT)
        return _ABSENT if isinstance(value, Told) else value


def unknown(key: str, known: Collection[str]) -> str:
    """Why a key is refused, and which one was probably meant."""
    return f"there is no such key; {choose(key, known, none='remove it')}"


def is_number(value: object) -> TypeGuard[int | float]:
    """True and false are no numbers, nor is what a float cannot hold."""
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= sys.float_info.max


def has_control(text: str) -> bool:
    """Whether it holds a character that a header, a line of a log or the database would refuse."""
    return any(ord(c) < ord(" ") or ord(c) == 0x7F for c in text)  # noqa: PLR2004 - DEL


def _remedy(key: str, value: object, default: float) -> str:
    if isinstance(value, str) and not isinstance(value, FromEnvironment):
        try:
            number = float(value)
        except ValueError:
            pass
        else:
            if math.isfinite(number):
                return f"write it without quotes: {path(key)} = {value.strip()}"
    return f"write {path(key)} = {default:g}"
