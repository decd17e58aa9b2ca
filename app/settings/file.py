"""The configuration file as it was written: TOML, with the environment's texts put in."""

from __future__ import annotations

import re
import tomllib
from typing import TYPE_CHECKING, Any

from app.settings.references import resolve
from app.settings.table import Table, unknown

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from app.settings.problems import Problems

SECTIONS = (
    "service",
    "tick",
    "sources",
    "channels",
    "recipients",
    "subscriptions",
    "alerts",
    "chats",
    "memory",
    "retention",
    "schedules",
    "reminders",
    "hooks",
    "call_url",
)
"""What this version serves. A new section moves up here and gets a reader in `__init__.py`."""

BEGINNING = """write one that begins with
[sources.jobs]
kind = "feed"
url = "https://jobs.example/feed.xml"
or set WAKEBELL_CONFIG to the path of yours"""

END = "end of document"
POSITION = re.compile(rf"(?P<what>.*) \(at (?P<place>line \d+, column \d+|{END})\)", re.DOTALL)
OVERWRITTEN = "Cannot overwrite a value"
TWICE = re.compile(r"Cannot declare \((?P<keys>.*)\) twice")


def read_file(path: Path, environ: Mapping[str, str], problems: Problems) -> Table | None:
    """The sections that this version serves; None where there is no file to be read, which is told as a problem."""
    document = _parse(path, problems)
    if document is None:
        return None
    for section in document:
        if section not in SECTIONS:
            problems.add(Table(str(path), (), {}, problems).where(section), unknown(section, SECTIONS))
    served = {section: document[section] for section in SECTIONS if section in document}
    values = {key: resolve(value, environ, str(path), (key,), problems) for key, value in served.items()}
    return Table(str(path), (), values, problems)


def _parse(path: Path, problems: Problems) -> dict[str, Any] | None:
    text = ""
    try:
        text = path.read_text("utf-8-sig")  # editors on Windows put a mark at the beginning
        return tomllib.loads(text)
    except FileNotFoundError:
        problems.add(str(path), f"there is no such file (in {path.absolute().parent}); {' '.join(BEGINNING.split())}")
    except OSError as error:
        problems.add(str(path), f"cannot be read ({error.strerror}); it must be a file that this user may read")
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        problems.add(str(path), f"line {line}: is not UTF-8; save the file as UTF-8")
    except tomllib.TOMLDecodeError as error:
        problems.add(str(path), _syntax(str(error), lines=text.rstrip().count("\n") + 1))
    except (ValueError, RecursionError):  # a number of thousands of digits, brackets in thousands of brackets
        problems.add(str(path), "holds a number or a nesting that is too large; remove it")
    return None


def _syntax(told: str, *, lines: int) -> str:
    """A parser's sentence as ours, the line first; `lines` is the number of the last one."""
    found = POSITION.fullmatch(told)
    what = found["what"] if found else told
    place = found["place"] if found and found["place"] != END else f"line {lines}, where the file ends"
    twice = TWICE.fullmatch(what)
    if twice:
        name = ".".join(re.findall(r"'([^']*)'", twice["keys"]))
        return f"{place}: [{name}] stands there a second time; join the two, or give one another name"
    if what == OVERWRITTEN:
        return f"{place}: a key stands there a second time; remove one of the two"
    return f"{place}: is not TOML: {what[:1].lower()}{what[1:]}; mend that line (a text needs quotes)"
