"""The environments that contenders run in, made once under `.wakebell/bench` and kept.

All Python contenders run on the same version: the newest of a few that this machine has, since one peer needs 3.12.
`BENCH_PYTHON` names another interpreter.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import zlib
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / ".wakebell" / "bench"
REQUIREMENTS = ROOT / "bench" / "requirements.txt"
LOCK = ROOT / "requirements.lock"
PACKAGE = ROOT / "bench" / "package.json"

VERSIONS = ("3.13", "3.12")
LEAST_NODE = 20


def interpreters() -> dict[str, list[str]]:
    """The command for each environment; those that cannot be had are missing, and why is printed."""
    python = _python()
    commands = {"service": [sys.executable] if _version(python) == _version(sys.executable) else venv_of(python, LOCK)}
    makers: dict[str, Callable[[], list[str]]] = {"peers": partial(venv_of, python, REQUIREMENTS), "node": _node}
    for where, made in makers.items():
        try:
            commands[where] = made()
        except (OSError, subprocess.CalledProcessError) as error:
            print(f"left out: what runs in {where} ({error})", flush=True)  # noqa: T201 - a command prints
    return commands


def _python() -> str:
    chosen = os.environ.get("BENCH_PYTHON")  # noqa: TID251 - of this command alone
    if chosen:
        return chosen
    pyenv = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv") / "versions"  # noqa: TID251
    for version in VERSIONS:
        found = [f"python{version}", *map(str, sorted(pyenv.glob(f"{version}.*/bin/python"), reverse=True))]
        for candidate in found:
            if shutil.which(candidate) and _version(candidate) == version:
                return candidate
    return sys.executable


def _version(python: str) -> str:
    asked = [python, "-c", "import sys; print('%d.%d' % sys.version_info[:2])"]
    return subprocess.run(asked, check=False, capture_output=True, text=True).stdout.strip()  # noqa: S603


def venv_of(python: str, requirements: Path) -> list[str]:
    """The command of an interpreter that has what the file names; made once, and kept."""
    made_from = f"{_version(python)} {zlib.crc32(requirements.read_bytes())}"
    name = "service" if requirements == LOCK else "peers"
    folder = FOLDER / f"{name}-{_version(python)}"
    stamp = folder / "made-from"
    command = [str(folder / "bin" / "python")]
    if not (stamp.exists() and stamp.read_text() == made_from):
        print(f"making {folder.relative_to(ROOT)}", flush=True)  # noqa: T201
        _run([python, "-m", "venv", "--clear", str(folder)])
        quiet = ["--quiet", "--disable-pip-version-check", "--require-hashes"]
        _run([*command, "-m", "pip", "install", *quiet, "-r", str(requirements)])
        stamp.write_text(made_from)
    return command


def _node() -> list[str]:
    node, npm = shutil.which("node"), shutil.which("npm")
    if node is None or npm is None:
        raise FileNotFoundError("no node and npm here")
    told = subprocess.run([node, "--version"], check=True, capture_output=True, text=True).stdout  # noqa: S603
    if int(told.lstrip("v").partition(".")[0]) < LEAST_NODE:
        raise FileNotFoundError(f"node is {told.strip()}, and {LEAST_NODE} is needed")
    folder = FOLDER / "node"
    wanted, stamp = PACKAGE.read_text(), folder / "made-from"
    if not (stamp.exists() and stamp.read_text() == wanted):
        print(f"making {folder.relative_to(ROOT)}", flush=True)  # noqa: T201
        folder.mkdir(parents=True, exist_ok=True)
        shutil.copy(PACKAGE, folder)
        _run([npm, "install", "--ignore-scripts", "--no-package-lock", "--no-audit", "--no-fund", "--silent"], folder)
        stamp.write_text(wanted)
    return [node]


def _run(command: list[str], folder: Path = ROOT) -> None:
    subprocess.run(command, check=True, cwd=folder, stdin=subprocess.DEVNULL)  # noqa: S603 - as written above
