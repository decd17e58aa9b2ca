"""The clocks of a process as a test wants them: off from its birth, or jumping while it lives."""

from __future__ import annotations

import dataclasses
import functools
import importlib
import mmap
import re
import struct
import sys
import time
from collections.abc import Callable
from datetime import datetime, timedelta, tzinfo
from pathlib import Path
from types import BuiltinFunctionType
from typing import Any

import app

VARIABLE = "CLOCKS_OF_THE_TESTS"
"""Names the file that a process out of the nursery goes by."""

ASKING = re.compile(r"datetime\.now\(|\btime\.time|monotonic")

OFF = struct.Struct("dd")
"""Seconds by which the wall clock and the monotonic one are off."""


class Clocks:
    """What a test sets them by. Processes that were told of the file see it at once."""

    def __init__(self, path: Path, *, wall: timedelta = timedelta(0)) -> None:
        self._path = path
        self.set(wall=wall)

    @property
    def environ(self) -> dict[str, str]:
        return {VARIABLE: str(self._path)}

    def set(self, *, wall: timedelta = timedelta(0), monotonic: timedelta = timedelta(0)) -> None:
        """From now on they are off by so much."""
        mode = "r+b" if self._path.exists() else "wb"  # in place: the processes have it mapped
        with self._path.open(mode) as file:
            file.write(OFF.pack(wall.total_seconds(), monotonic.total_seconds()))


def follow(path: str) -> None:
    """In this process, for everything of the service and for the event loop."""
    with Path(path).open("rb") as file:
        off = mmap.mmap(file.fileno(), OFF.size, access=mmap.ACCESS_READ)
    shifted: dict[Any, Any] = {datetime: _shifted(off)}
    for name, place in (("time", 0), ("monotonic", 1)):
        shifted |= {getattr(time, name): _clock(name, off, place)}
        shifted |= {getattr(time, f"{name}_ns"): _clock(f"{name}_ns", off, place, unit=1_000_000_000)}
    import_those_that_ask()
    modules = [module for name, module in sys.modules.items() if name == "app" or name.startswith("app.")]
    for module in [*modules, time]:
        for name, value in list(vars(module).items()):
            if isinstance(value, BuiltinFunctionType | type) and value in shifted:
                setattr(module, name, shifted[value])
            elif dataclasses.is_dataclass(value):
                _change_defaults(value, shifted)


def _change_defaults(kind: Any, shifted: dict[Any, Any]) -> None:
    """A dataclass keeps the factories of its defaults in a closure."""
    for cell in getattr(kind.__init__, "__closure__", None) or ():
        if isinstance(cell.cell_contents, BuiltinFunctionType) and cell.cell_contents in shifted:
            cell.cell_contents = shifted[cell.cell_contents]


def _clock(name: str, off: mmap.mmap, place: int, *, unit: int = 1) -> Callable[[], float]:
    real = getattr(time, name)
    return lambda: real() + type(real())(OFF.unpack_from(off)[place] * unit)


class _Kind(type):
    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, datetime)


def _shifted(off: mmap.mmap) -> type:
    class Shifted(datetime, metaclass=_Kind):
        @classmethod
        def now(cls, tz: tzinfo | None = None) -> Any:
            return datetime.now(tz) + timedelta(seconds=OFF.unpack_from(off)[0])

    return Shifted


@functools.cache
def import_those_that_ask() -> None:
    """What is imported later would have the real clocks. Whoever bears processes may do it for all of them."""
    root = Path(app.__path__[0])
    for path in root.rglob("*.py"):
        if ASKING.search(path.read_text("utf-8")) and path.parent.name != "dev":
            parts = path.relative_to(root.parent).with_suffix("").parts
            importlib.import_module(".".join(parts).removesuffix(".__init__"))
