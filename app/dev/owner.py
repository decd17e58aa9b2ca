"""One `wakebell dev` in a folder at a time: it owns the database there, and stops it whoever has started it."""

from __future__ import annotations

import fcntl
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, TYPE_CHECKING

from app.domain.errors import ServiceError

if TYPE_CHECKING:
    from collections.abc import Iterator

FILE = Path(".wakebell/dev.lock")
"""Locked for as long as its process lives, however that ends; what stands in it is the port that is served."""


class Owner:
    """What the one that is there tells to others."""

    def __init__(self, file: IO[str]) -> None:
        self._file = file

    def serves(self, port: int) -> None:
        """Say where, for whoever comes second."""
        self._file.write(f"{port}\n")
        self._file.flush()


@contextmanager
def owned(path: Path = FILE) -> Iterator[Owner]:
    """This process is the one, until the end of the `with`.

    Raises:
        ServiceError: another one is, and where it serves; or the folder cannot be written to.
    """
    try:
        if not path.parent.is_dir():
            path.parent.mkdir(parents=True)
            path.parent.chmod(0o755)  # whatever the umask: the database's system user passes through
        file = path.open("a+")
    except OSError as error:
        raise ServiceError(f"{path} cannot be written: {error.strerror}.") from error
    with file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.seek(0)
            port = file.read().strip()
            where = f", on port {port}" if port else ""
            raise ServiceError(f"`make run` is already running in this folder{where}: stop it first") from None
        file.truncate(0)
        yield Owner(file)
        file.truncate(0)


def present(path: Path = FILE) -> bool:
    """Whether there is one."""
    with suppress(FileNotFoundError), path.open() as file:
        try:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False
