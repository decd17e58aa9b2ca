"""A server by Debian's PostgreSQL: an older one than the embedded, and it compiles plans (JIT)."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

PROGRAMS = next((path.parent for path in sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))), None)
"""Of the oldest that is installed; None: there is none."""

FAST = {"fsync": "off", "full_page_writes": "off", "synchronous_commit": "off", "autovacuum": "off"}


@contextmanager
def debian(**options: str) -> Iterator[str]:
    """The address of its database `postgres`, whose superuser one is. `options` are settings of the server."""
    assert PROGRAMS is not None
    # Not pytest's: nobody else may enter that, and for root PostgreSQL is somebody else.
    folder = Path(tempfile.mkdtemp(prefix="wakebell-debian-"))
    user = _user(folder)
    settings = {"listen_addresses": "", "unix_socket_directories": str(folder), **FAST, **options}
    told = " ".join(f"-c {name}={value}" for name, value in settings.items())
    data, log = folder / "data", folder / "log"
    try:
        _run(
            "initdb", data, "--username=postgres", "--auth=trust", "--encoding=UTF8", "--locale=C", "--no-sync", **user
        )
        _run("pg_ctl", data, "--wait", f"--log={log}", f"--options={told}", "start", **user)
        try:
            yield f"postgresql://postgres@/postgres?host={quote(str(folder))}"
        finally:
            _run("pg_ctl", data, "--wait", "--mode=immediate", "stop", **user)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _user(folder: Path) -> Mapping[str, Any]:
    """PostgreSQL does not run as root; then it runs as Debian's user for it."""
    if os.geteuid() != 0:
        return {}
    entry = pwd.getpwnam("postgres")
    os.chown(folder, entry.pw_uid, entry.pw_gid)
    return {"user": entry.pw_uid, "group": entry.pw_gid, "extra_groups": []}


def _run(program: str, data: Path, *arguments: str, **user: Any) -> None:
    assert PROGRAMS is not None
    # A file and not a pipe: the server inherits it, and a pipe would be read until the server ends.
    with tempfile.TemporaryFile("w+") as told:
        ended = subprocess.run(
            [PROGRAMS / program, f"--pgdata={data}", *arguments],
            check=False,
            cwd=data.parent,
            env={"PATH": os.defpath, "LC_ALL": "C"},
            stdin=subprocess.DEVNULL,
            stdout=told,
            stderr=subprocess.STDOUT,
            **user,
        )
        told.seek(0)
        assert ended.returncode == 0, told.read()
