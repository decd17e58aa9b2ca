"""Log lines on stdout: constant words, and fields beside them."""

from __future__ import annotations

import json
import logging
import sys
from datetime import UTC, datetime

QUIET = ("httpx", "httpcore", "asyncio", "alembic", "sqlalchemy", "uvicorn")
"""Libraries whose INFO lines are not ours: httpx's would name every URL, and a URL may hold a secret."""

STANDARD = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName", "color_message"}


def configure(*, style: str, level: str) -> None:
    """Log to stdout from now on: `json`, one object a line, or `console`, for people."""
    handler = logging.StreamHandler(sys.stdout)
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
        """The line, without its end."""
        at = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        told: dict[str, object] = {
            "at": at.replace("+00:00", "Z"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            **fields(record),
        }
        if record.exc_info:
            told["traceback"] = self.formatException(record.exc_info)
        return json.dumps(told, ensure_ascii=False, default=str)


class Console(logging.Formatter):
    """A line for people, with the traceback below it."""

    def format(self, record: logging.LogRecord) -> str:
        """The line and what belongs to it."""
        at = datetime.fromtimestamp(record.created).astimezone().strftime("%H:%M:%S")
        told = " ".join(f"{name}={value}" for name, value in fields(record).items())
        line = f"{at} {record.levelname.lower():7} {record.getMessage()}{'  ' if told else ''}{told}"
        return f"{line}\n{self.formatException(record.exc_info)}" if record.exc_info else line
