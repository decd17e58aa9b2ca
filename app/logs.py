"""Log lines: constant words, and fields beside them; what they are about, and no secret in them."""

from __future__ import annotations

import io
import json
import logging
import sys
from contextvars import ContextVar
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from app.domain.masking import NO_MASK

if TYPE_CHECKING:
    from typing import TextIO

    from app.domain.jobs import Job
    from app.domain.masking import Mask

TICK: ContextVar[int | None] = ContextVar("tick", default=None)
"""Id of the tick that this task works for."""

JOB: ContextVar[Job | None] = ContextVar("job", default=None)
"""What this task runs. One setting a job and nothing else: quick ones are run ten thousand a second."""

SUBJECTS = {"fetch_source": ("source", "source"), "send_message": ("message", "message_id")}
"""Of own types: the field of the payload that says what the job is about, and that of its lines."""

QUIET = ("httpx", "httpcore", "asyncio", "alembic", "sqlalchemy", "uvicorn")
"""Libraries whose INFO lines are not ours: httpx's would name every URL, and a URL may hold a secret."""

STANDARD = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName", "color_message"}


def configure(*, style: str, level: str, stream: TextIO | None = None, mask: Mask = NO_MASK) -> None:
    """Log to stdout, or to `stream`, from now on: `json`, one object a line, or `console`, for people."""
    stream = stream or sys.stdout
    if isinstance(stream, io.TextIOWrapper):
        stream.reconfigure(errors="backslashreplace")  # a line that the terminal cannot show is not lost
    handler = logging.StreamHandler(stream)
    handler.setFormatter(JsonLines(mask) if style == "json" else Console(mask))
    handler.addFilter(about)
    logging.basicConfig(handlers=[handler], level=level, force=True)
    for name in QUIET:
        logging.getLogger(name).setLevel(max(logging.WARNING, logging.getLevelName(level)))


def about(record: logging.LogRecord) -> bool:
    """Adds the tick, the job, its type, its source or its message, where the line does not say so itself."""
    tick, job = TICK.get(), JOB.get()
    if tick is not None:
        _add(record, "tick", tick)
    if job is not None:
        _add(record, "job", job.id)
        _add(record, "type", job.type)
        field, name = SUBJECTS.get(job.type, ("", ""))
        if name and isinstance(job.payload, dict) and field in job.payload:  # one that cannot be read is no dict
            _add(record, name, job.payload[field])
    return True


def _add(record: logging.LogRecord, name: str, value: object) -> None:
    if name not in vars(record):
        setattr(record, name, value)


def fields(record: logging.LogRecord) -> dict[str, object]:
    """What was given in `extra`."""
    return {name: value for name, value in vars(record).items() if name not in STANDARD}


class JsonLines(logging.Formatter):
    """One JSON object a line."""

    def __init__(self, mask: Mask = NO_MASK) -> None:
        super().__init__()
        self._mask = mask

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
        try:  # masked before it is JSON: within a number or a name there is nothing to take out
            return json.dumps(_masked(told, self._mask), ensure_ascii=False, default=lambda v: self._mask(str(v)))
        except (TypeError, ValueError, RecursionError):  # a key that is no text, or a value that holds itself
            return json.dumps({name: self._mask(v if isinstance(v, str) else repr(v)) for name, v in told.items()})


def _masked(value: Any, mask: Mask) -> Any:
    match value:
        case str():
            return mask(value)
        case dict():
            return {name: _masked(inner, mask) for name, inner in value.items()}
        case list() | tuple():
            return [_masked(inner, mask) for inner in value]
        case _:
            return value


class Console(logging.Formatter):
    """A line for people, with the traceback below it."""

    def __init__(self, mask: Mask = NO_MASK) -> None:
        super().__init__()
        self._mask = mask

    def format(self, record: logging.LogRecord) -> str:
        """The words first, the fields after them."""
        at = datetime.fromtimestamp(record.created).astimezone().strftime("%H:%M:%S")
        told = " ".join(f"{name}={value}" for name, value in fields(record).items())
        line = f"{at} {record.levelname.lower():7} {record.getMessage()}{'  ' if told else ''}{told}"
        return self._mask(f"{line}\n{self.formatException(record.exc_info)}" if record.exc_info else line)
