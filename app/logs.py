"""Log lines: constant words, and fields beside them."""

from __future__ import annotations

import io
import json
import logging
import sys
from datetime import UTC, datetime
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import TextIO

QUIET = ("httpx", "httpcore", "asyncio", "alembic", "sqlalchemy", "uvicorn")
"""Libraries whose INFO lines are not ours: httpx's would name every URL, and a URL may hold a secret."""

STANDARD = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName", "color_message"}


def configure(*, style: str, level: str, stream: TextIO | None = None) -> None:
    """Log to stdout, or to `stream`, from now on: `json`, one object a line, or `console`, for people."""
    stream = stream or sys.stdout
    if isinstance(stream, io.TextIOWrapper):
        stream.reconfigure(errors="backslashreplace")  # a line that the terminal cannot show is not lost
    handler = logging.StreamHandler(stream)
    handler.setFormatter(JsonLines() if style == "json" else Console())
    logging.basicConfig(handlers=[handler], level=level, force=True)
    for name in QUIET:
        logging.getLogger(name).setLevel(max(logging.WARNING, logging.getLevelName(level)))


def fields(record: logging.LogRecord) -> dict[str, object]:
    """What was given in `extra`."""
    return {name: value for name, value in vars(record).items() if name not in STANDARD}


class JsonLines(logging.Formatter):
    """One JSON object a line."""

    def format(self, record: logging.LogRecord) -> str:
        """What cannot be written as JSON is written as its repr: no record is lost."""
        at = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        told: dict[str, object] = {
            "at": at.replace("+00:00", "Z"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        told |= {
            name: value for name, value in fields(record).items() if name not in told
        }  # who, when, what come first
        if record.exc_info:
            told["traceback"] = self.formatException(record.exc_info)
        try:
            return json.dumps(told, ensure_ascii=False, default=str)
        except (TypeError, ValueError):  # a key that is no text, or a value that holds itself
            return json.dumps({name: v if isinstance(v, str) else repr(v) for name, v in told.items()})


class Console(logging.Formatter):
    """A line for people, with the traceback below it."""

    def format(self, record: logging.LogRecord) -> str:
        """The words first, the fields after them."""
        at = datetime.fromtimestamp(record.created).astimezone().strftime("%H:%M:%S")
        told = " ".join(f"{name}={value}" for name, value in fields(record).items())
        line = f"{at} {record.levelname.lower():7} {record.getMessage()}{'  ' if told else ''}{told}"
        return f"{line}\n{self.formatException(record.exc_info)}" if record.exc_info else line
