"""A PostgreSQL for the length of this process, with nothing in it: for tests. Its folder goes with it."""

from __future__ import annotations

import atexit
import functools
import os
import shutil
import tempfile
import threading
from contextlib import suppress
from pathlib import Path

from app.dev import postgres
from app.domain.errors import ServiceError

PREFIX = "wakebell-testing-"

# Nothing here has to outlive a power cut.
FAST = {"fsync": "off", "full_page_writes": "off", "synchronous_commit": "off", "autovacuum": "off"}


_STARTING = threading.Lock()


def server() -> str:
    """The server's URL. The first call starts it, which takes a second or two and blocks.

    Raises:
        ServiceError: what stands in the way and what to change: the extra is not installed, for one.
    """
    with _STARTING:
        return _start()


@functools.cache
def _start() -> str:
    postgres.programs()
    _remove_left_behind()
    folder = Path(tempfile.mkdtemp(prefix=PREFIX))
    folder.chmod(0o755)  # as root, PostgreSQL runs as another user
    (folder / "owner").write_text(str(os.getpid()))
    atexit.register(_remove, folder, os.getpid())
    return postgres.start(folder / "postgres", options=FAST).url


def _remove(folder: Path, owner: int) -> None:
    if os.getpid() != owner:  # a fork of the process that started it
        return
    data = folder / "postgres"
    if data.exists():
        with suppress(ServiceError):
            postgres.find(data).stop()
    shutil.rmtree(folder, ignore_errors=True)


def _remove_left_behind() -> None:
    """Stop the servers of processes that were killed."""
    for told in Path(tempfile.gettempdir()).glob(f"{PREFIX}*/owner"):
        with suppress(OSError, ValueError):
            owner = int(told.read_text())
            if told.stat().st_uid == os.geteuid() and not _alive(owner):
                _remove(told.parent, os.getpid())


def _alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return True
