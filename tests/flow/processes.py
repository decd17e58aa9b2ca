"""Processes of the service: commands as a person starts them, and children of a process that has imported it."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import threading
from abc import ABC, abstractmethod
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

import psutil

ROOT = Path(__file__).parents[2]

PATIENCE = 60.0
"""Seconds until a fact that should come true is given up: no measure, only an end."""

KEPT = frozenset({"PATH", "HOME", "LANG", "LC_ALL", "TZ", "TMPDIR"})
"""What a process gets of the environment of the person who runs the tests."""


class Process(ABC):
    """One process, and what it says."""

    def __init__(self, log: Path) -> None:
        self._log = log

    @property
    def log(self) -> str:
        return self._log.read_text("utf-8", "replace") if self._log.exists() else ""

    @property
    @abstractmethod
    def alive(self) -> bool: ...

    @abstractmethod
    def send(self, number: int) -> None:
        """A signal."""

    @abstractmethod
    def wait(self) -> int:
        """Its exit status, once it has one; the number of the signal that killed it, below zero."""

    async def ended(self) -> int:
        """`wait`, while the stubs go on answering."""
        return await asyncio.to_thread(self.wait)

    @property
    @abstractmethod
    def pid(self) -> int: ...

    async def stands_still(self) -> None:
        """Once it is suspended."""
        async with asyncio.timeout(PATIENCE):
            while psutil.Process(self.pid).status() != psutil.STATUS_STOPPED:  # noqa: ASYNC110 - no event tells of it
                await asyncio.sleep(0.01)

    def suspend(self) -> None:
        """As a host does it: in the middle of whatever it does."""
        self.send(signal.SIGSTOP)

    def resume(self) -> None:
        self.send(signal.SIGCONT)

    def kill(self) -> None:
        """As the host does it: without a word."""
        self.send(signal.SIGKILL)

    def term(self) -> None:
        self.send(signal.SIGTERM)

    def clear_away(self) -> None:
        if self.alive:
            self.kill()
        self.wait()


class Command(Process):
    """`python -m app ...`, or another program of Python."""

    def __init__(
        self,
        arguments: list[str],
        *,
        folder: Path,
        log: Path,
        environ: Mapping[str, str],
        program: tuple[str, str] = ("-m", "app"),
    ) -> None:
        super().__init__(log)
        with log.open("wb") as output:
            self._process = subprocess.Popen(
                [sys.executable, *program, *arguments],
                cwd=folder,
                env={**inherited(), **environ},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
            )

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def alive(self) -> bool:
        return self._process.poll() is None

    def send(self, number: int) -> None:
        self._process.send_signal(number)

    def wait(self) -> int:
        return self._process.wait(PATIENCE)


class Nursery:
    """Bears processes that are alive at once: each would spend a second on its imports."""

    def __init__(self) -> None:
        self._zygote = subprocess.Popen(
            [sys.executable, "-m", "tests.flow.zygote"],
            cwd=ROOT,
            env=inherited(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self._born: list[int] = []
        self._ended: dict[int, int] = {}
        self._news = threading.Condition()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def bear(
        self,
        arguments: list[str],
        *,
        folder: Path,
        log: Path,
        environ: Mapping[str, str],
        die_at: str | int | None,
    ) -> Child:
        order = {
            "arguments": arguments,
            "environ": {**inherited(), **environ},
            "folder": str(folder),
            "log": str(log),
            "die_at": die_at,
        }
        assert self._zygote.stdin is not None
        with self._news:
            self._zygote.stdin.write(json.dumps(order) + "\n")
            self._zygote.stdin.flush()
            assert self._news.wait_for(lambda: self._born, PATIENCE), "nothing is born any more"
            return Child(self, self._born.pop(), log)

    def status(self, pid: int) -> int | None:
        return self._ended.get(pid)

    def wait(self, pid: int) -> int:
        with self._news:
            assert self._news.wait_for(lambda: pid in self._ended, PATIENCE), f"process {pid} does not end"
            return self._ended[pid]

    def close(self) -> None:
        assert self._zygote.stdin is not None
        assert self._zygote.stdout is not None
        self._zygote.stdin.close()
        self._zygote.wait()
        self._reader.join()
        self._zygote.stdout.close()

    def _read(self) -> None:
        assert self._zygote.stdout is not None
        for line in self._zygote.stdout:
            what, pid, *status = line.split()
            with self._news:
                if what == "born":
                    self._ended.pop(int(pid), None)  # of an earlier process with this number
                    self._born.append(int(pid))
                else:
                    self._ended[int(pid)] = int(status[0])
                self._news.notify_all()


class Child(Process):
    """A process out of the nursery."""

    def __init__(self, nursery: Nursery, pid: int, log: Path) -> None:
        super().__init__(log)
        self._nursery = nursery
        self._pid = pid

    @property
    def pid(self) -> int:
        return self._pid

    @property
    def alive(self) -> bool:
        return self._nursery.status(self._pid) is None

    def send(self, number: int) -> None:
        # It may have ended while the word of it is still on its way.
        with suppress(ProcessLookupError):
            if self.alive:
                os.kill(self._pid, number)

    def wait(self) -> int:
        return self._nursery.wait(self._pid)


def inherited() -> dict[str, str]:
    """The environment of a process that has no setting yet."""
    kept = {name: value for name, value in os.environ.items() if name in KEPT}
    return {**kept, "PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": "1"}
