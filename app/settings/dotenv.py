"""The file `.env`: KEY=value lines beside the configuration file, for secrets on a developer's machine."""

from __future__ import annotations

import os
import re
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from app.domain.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Mapping

LINE = re.compile(r"(?:export\s+)?(?P<key>[A-Za-z_][A-Za-z0-9_]*)\s*=\s*(?P<value>.*)", re.DOTALL)
SINGLE = re.compile(r"'(?P<text>[^']*)'\s*(?:#.*)?")
DOUBLE = re.compile(r'"(?P<text>(?:[^"\\]|\\.)*)"\s*(?:#.*)?')
COMMENT = re.compile(r"(?:^|\s)#.*")
ESCAPE = re.compile(r"\\(.)")
ESCAPED = {"n": "\n", "r": "\r", "t": "\t"}
PLAIN = re.compile(r"[A-Za-z0-9_./:@%+,=-]+")


def read_dotenv(path: Path) -> dict[str, str]:
    r"""The variables of the file, the last of two with one name; none where there is no file.

    Understood are `export ` before a name, comments, 'single quotes' (as they stand) and "double quotes" (with
    `\n`, `\"`, `\\`). A `#` begins a comment at the start of a value or after a space. Nothing is substituted.

    Raises:
        ConfigError: the file cannot be read, or lines of it cannot; each is named by its number, none is repeated.
    """
    if not path.is_file():  # a folder of that name is somebody's virtual environment
        return {}
    try:
        text = path.read_text("utf-8-sig")
    except UnicodeDecodeError:
        raise ConfigError([f"{path}: is not UTF-8; save it again as UTF-8"]) from None
    except OSError as error:
        raise ConfigError([f"{path}: cannot be read ({error.strerror}); change its permissions"]) from error
    variables: dict[str, str] = {}
    problems: list[str] = []
    for number, line in enumerate(text.split("\n"), start=1):
        stripped = line.strip()
        if not stripped or stripped.startswith("#"):
            continue
        found = LINE.fullmatch(stripped)
        if found is None:
            problems.append(f"{path}: line {number}: is not KEY=value; write it so, or put # before it")
            continue
        value = _value(found["value"])
        if value is None:
            problems.append(f"{path}: line {number}: the quotes do not match; close them at the end of the value")
        else:
            variables[found["key"]] = value
    if problems:
        raise ConfigError(problems)
    return variables


def write_missing(path: Path, values: Mapping[str, str]) -> dict[str, str]:
    """Append the variables that the file does not set yet, or sets to nothing; answers what the file says then.

    The rest of the file stays byte for byte. The file is replaced in one step, so that a killed process leaves the
    old one or the new one, and is readable by its owner alone (0600).

    Raises:
        ConfigError: the file cannot be read or written.
    """
    there = read_dotenv(path)
    missing = {key: value for key, value in values.items() if not there.get(key)}
    if not missing:
        return there
    target = Path(os.path.realpath(path))  # a link stays a link
    try:
        old = target.read_bytes() if target.exists() else b""
        end = b"" if not old or old.endswith(b"\n") else b"\n"
        lines = "".join(f"{key}={_written(value)}\n" for key, value in missing.items())
        _replace(target, old + end + lines.encode())
    except OSError as error:
        problem = f"{path}: cannot be written ({error.strerror}); change its permissions, or set {', '.join(missing)}"
        raise ConfigError([problem]) from error
    return there | missing


def _value(written: str) -> str | None:
    """None when a quote is not closed or something follows it."""
    if written.startswith("'"):
        single = SINGLE.fullmatch(written)
        return single["text"] if single else None
    if written.startswith('"'):
        double = DOUBLE.fullmatch(written)
        return ESCAPE.sub(lambda found: ESCAPED.get(found[1], found[1]), double["text"]) if double else None
    return COMMENT.sub("", written, count=1).strip()


def _written(value: str) -> str:
    if PLAIN.fullmatch(value):
        return value
    escaped = value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\r", "\\r")
    return f'"{escaped}"'


def _replace(target: Path, content: bytes) -> None:
    descriptor, name = tempfile.mkstemp(dir=target.parent, prefix=f"{target.name}.")  # made with mode 0600
    temporary = Path(name)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
