"""The workflows of GitHub Actions; above all the shell that rings, run as a runner would run it."""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
import signal
import sys
from collections import deque
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

from tests.fakes.http_server import HttpServer, Request, for_ever, send

ROOT = Path(__file__).parent.parent
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
TICK = ROOT / ".github" / "workflows" / "tick.yml"

SECRET = "the-cron-secret-of-the-tests"

pytestmark = pytest.mark.skipif(
    not all(map(shutil.which, ("bash", "curl", "jq"))), reason="needs bash, curl and jq, as GitHub's machines have them"
)


def summary(*, remaining: int = 0, status: str = "ok") -> dict[str, Any]:
    """A tick's answer, with a name and an error in it."""
    return {
        "tick": 812,
        "status": status,
        "started_at": "2026-11-30T09:07:02Z",
        "duration_ms": 1840,
        "budget_exhausted": False,
        "sources": {"due": 3, "fetched": 2},
        "jobs": {"claimed": 9, "done": 8, "remaining": remaining},
        "pruned": 12,
        "next_due_at": "2026-11-30T09:30:00Z",
        "alerts": {"open": 1, "opened": 1, "resolved": 0},
        "errors": ["source secret_board: HTTP 403"],
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    status: int = 200
    body: object = field(default_factory=summary)
    headers: dict[str, str] = field(default_factory=dict)


WAKING = Answer(status=503, body={"title": "Service Unavailable"}, headers={"Retry-After": "1"})


class Door(HttpServer):
    """The service as its caller sees it: answers in order, the last one again and again."""

    def __init__(self) -> None:
        super().__init__()
        self.answers: deque[Answer] = deque([Answer()])
        self.rings: list[Request] = []
        self.rung = asyncio.Event()
        self.hangs = False

    async def answer(self, request: Request, wire: asyncio.StreamWriter) -> None:
        self.rings.append(request)
        self.rung.set()
        if self.hangs:
            await for_ever()
        answer = self.answers.popleft() if len(self.answers) > 1 else self.answers[0]
        body = answer.body if isinstance(answer.body, bytes) else json.dumps(answer.body).encode()
        await send(wire, answer.status, body, headers=answer.headers)


@pytest.fixture
async def door() -> AsyncIterator[Door]:
    async with Door() as door:
        yield door


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """A run of the step."""

    status: int
    output: str
    summary: str

    @property
    def counts(self) -> list[dict[str, Any]]:
        """What the summary tells of each ring."""
        return [json.loads(block) for block in re.findall(r"```json\n(.*?)\n```", self.summary, re.DOTALL)]


class Runner:
    """Runs the step as GitHub does."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._summary = folder / "summary.md"
        self._script = folder / "step.sh"
        self._script.write_text(script(TICK), "utf-8")
        self.path = os.environ["PATH"]

    def impatient(self) -> None:
        """Tries that fail are repeated for a second, and not for minutes."""
        tools = self._folder / "tools"
        tools.mkdir()
        (tools / "curl").write_text(f'#!/bin/sh\nexec {shutil.which("curl")} "$@" --retry-max-time 1\n')
        (tools / "curl").chmod(0o755)
        self.path = f"{tools}{os.pathsep}{self.path}"

    async def start(self, url: str, secret: str) -> asyncio.subprocess.Process:
        self._summary.write_text("")
        return await asyncio.create_subprocess_exec(
            *("bash", "--noprofile", "--norc", "-eo", "pipefail", str(self._script)),
            env={
                "PATH": self.path,
                "HOME": str(self._folder),
                "GITHUB_STEP_SUMMARY": str(self._summary),
                "WAKEBELL_URL": url,
                "CRON_SECRET": secret,
            },
            start_new_session=True,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )

    async def run(self, url: str, secret: str = SECRET) -> Run:
        process = await self.start(url, secret)
        output, _ = await process.communicate()
        assert process.returncode is not None
        return Run(status=process.returncode, output=output.decode(), summary=self._summary.read_text("utf-8"))


@pytest.fixture
def runner(tmp_path: Path) -> Runner:
    return Runner(tmp_path)


def script(workflow: Path) -> str:
    """The shell of a workflow's last step."""
    _, _, lines = workflow.read_text("utf-8").partition("        run: |\n")
    return dedent(lines)


def command_lines_of(pid: int) -> list[str]:
    """Of a process and all that come from it, as every process of the machine may read them."""
    folder = Path(f"/proc/{pid}")
    try:
        lines = [(folder / "cmdline").read_bytes().replace(b"\0", b" ").decode()]
        children = (folder / "task" / str(pid) / "children").read_text().split()
    except OSError:  # it has ended: the pipe's writer, say
        return []
    return [*lines, *(line for child in children for line in command_lines_of(int(child)))]


async def test_a_repository_without_settings_ends_green_and_says_what_to_set(runner: Runner):
    run = await runner.run("", "")

    assert run.status == 0
    assert re.search(r"^::notice .*WAKEBELL_URL.*CRON_SECRET", run.output, re.MULTILINE)


@pytest.mark.parametrize(
    ("url", "secret", "missing"), [("https://a.example", "", "CRON_SECRET"), ("", "s", "WAKEBELL_URL")]
)
async def test_half_of_the_settings_is_a_failure(runner: Runner, url: str, secret: str, missing: str):
    run = await runner.run(url, secret)

    assert run.status == 1
    assert re.search(rf"^::error .*{missing} is not", run.output, re.MULTILINE)


@pytest.mark.parametrize(
    "url", ["http://bell.example", "bell.example", "ftp://bell.example", "http://127.0.0.1.example"]
)
async def test_the_secret_does_not_travel_in_the_clear(runner: Runner, url: str):
    run = await runner.run(url)

    assert run.status == 1
    assert "must begin with https://" in run.output


async def test_one_ring_is_one_post_with_the_secret_and_its_summary_holds_counts_alone(runner: Runner, door: Door):
    run = await runner.run(f"{door.url}/\n")

    [ring] = door.rings
    assert (run.status, ring.method, ring.path, ring.body) == (0, "POST", "/api/cron/tick", b"")
    assert ring.headers["authorization"] == f"Bearer {SECRET}"
    [counts] = run.counts
    assert counts["jobs"] == {"claimed": 9, "done": 8, "remaining": 0}
    assert (counts["tick"], counts["errors"], counts["budget_exhausted"]) == (812, 1, False)
    assert "secret_board" not in run.output + run.summary
    assert SECRET not in run.output + run.summary


@pytest.mark.parametrize(
    ("given", "sent"),
    [
        (f"{SECRET}\n", SECRET),
        (f"{SECRET}\r\n", SECRET),
        ("with \"quotes\" and 'others'", "with \"quotes\" and 'others'"),
        (r"back\slashes\n and $(words) `such` %s", r"back\slashes\n and $(words) `such` %s"),
    ],
)
async def test_the_secret_arrives_as_it_is(runner: Runner, door: Door, given: str, sent: str):
    run = await runner.run(door.url, given)

    assert run.status == 0
    assert door.rings[0].headers["authorization"] == f"Bearer {sent}"


@pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")
async def test_the_secret_is_on_no_command_line(runner: Runner, door: Door):
    door.hangs = True
    process = await runner.start(door.url, SECRET)
    await door.rung.wait()

    lines = command_lines_of(process.pid)
    os.killpg(process.pid, signal.SIGKILL)
    await process.communicate()

    assert door.rings[0].headers["authorization"] == f"Bearer {SECRET}"
    assert [line for line in lines if "curl" in line and door.url in line]
    assert [line for line in lines if SECRET in line] == []


async def test_it_rings_again_while_work_remains(runner: Runner, door: Door):
    door.answers = deque(Answer(body=summary(remaining=remaining)) for remaining in (7, 5, 2, 0))

    run = await runner.run(door.url)

    assert run.status == 0
    assert [counts["jobs"]["remaining"] for counts in run.counts] == [7, 5, 2, 0]
    assert len(door.rings) == 4


async def test_it_rings_ten_times_at_most(runner: Runner, door: Door):
    door.answers = deque([Answer(body=summary(remaining=3))])

    run = await runner.run(door.url)

    assert run.status == 0
    assert len(door.rings) == 10
    assert "::notice title=More is due::After 10 rings 3 jobs wait" in run.output


async def test_a_service_that_wakes_is_asked_again(runner: Runner, door: Door):
    door.answers = deque([WAKING, WAKING, Answer()])

    run = await runner.run(door.url)

    assert run.status == 0
    assert len(door.rings) == 3
    assert len(run.counts) == 1


async def test_a_database_that_stays_away_fails(runner: Runner, door: Door):
    runner.impatient()
    door.answers = deque([WAKING])

    run = await runner.run(door.url)

    assert run.status == 1
    assert "HTTP 503: the database" in run.output


async def test_a_refused_connection_is_tried_again_and_then_fails(runner: Runner):
    runner.impatient()
    async with Door() as door:
        gone = door.url

    run = await runner.run(gone)

    assert run.status == 1
    assert run.output.count("Connection refused") + run.output.count("Failed to connect") >= 1
    assert re.search(r"^::error .*Nothing answered at WAKEBELL_URL", run.output, re.MULTILINE)


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (Answer(status=500, body=summary(status="failed")), "the batch itself broke"),
        (Answer(status=401, body={"title": "Unauthorized"}), "CRON_SECRET here is not the service's"),
        (Answer(status=404, body=b"<html>no such app</html>"), "not the address of a Wakebell"),
        (Answer(status=405, body=b""), "not the address of a Wakebell"),
        (Answer(status=308, body=b"", headers={"Location": "https://elsewhere.example/"}), "a redirect"),
        (Answer(status=502, body=b"bad gateway"), "HTTP 502"),
        (Answer(body=b"<html>a parking page</html>"), "no summary of a tick"),
        (Answer(body={"hello": "world"}), "no summary of a tick"),
        (Answer(body=b""), "no summary of a tick"),
        (Answer(body=b"::stop-commands::x\n::add-mask::a"), "no summary of a tick"),
    ],
)
async def test_what_is_no_batch_that_ran_fails_and_says_what_to_do(
    runner: Runner, door: Door, answer: Answer, told: str
):
    runner.impatient()
    door.answers = deque([answer])

    run = await runner.run(door.url)

    assert run.status == 1
    assert re.search(rf"^::error title=The tick failed::.*{told}", run.output, re.MULTILINE)
    assert "**The tick failed.** " in run.summary
    assert "stop-commands" not in run.output
    assert SECRET not in run.output + run.summary


async def test_a_batch_of_which_a_part_failed_ends_green_with_a_warning(runner: Runner, door: Door):
    door.answers = deque([Answer(body=summary(status="partial"))])

    run = await runner.run(door.url)

    assert run.status == 0
    assert "::warning title=Part of the tick failed::" in run.output


def test_the_workflow_that_rings_keeps_its_promises():
    text = TICK.read_text("utf-8")

    [cron] = re.findall(r'- cron: "([\d,]+) \* \* \* \*"', text)
    minutes = [int(minute) for minute in cron.split(",")]
    assert minutes == [7, 22, 37, 52]
    assert "\npermissions: {}\n" in text
    assert "\n  cancel-in-progress: false\n" in text
    assert "\n  workflow_dispatch:\n" in text
    assert "uses:" not in text
    [limit] = re.findall(r"timeout-minutes: (\d+)", text)
    seconds = {
        name: int(value) for name, value in re.findall(r"(most_seconds=|--retry-max-time |--max-time )(\d+)", text)
    }
    assert sum(seconds.values()) < int(limit) * 60
    assert len(seconds) == 3


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_every_action_is_pinned_and_every_job_is_limited(path: Path):
    text = path.read_text("utf-8")

    assert [
        used for used in re.findall(r"uses: (.*)", text) if not re.fullmatch(r"\S+@[0-9a-f]{40} # v?[\d.]+", used)
    ] == []
    assert text.count("actions/checkout@") == text.count("persist-credentials: false")
    assert text.count("runs-on:") == text.count("timeout-minutes:") > 0
    assert "\npermissions: {}\n" in text
    assert re.findall(r"^ +contents: (?!read$).*", text, re.MULTILINE) == []


def test_the_checks_run_the_same_command_as_everybody():
    assert '- run: bash .ci/run "$TARGET"\n' in (ROOT / ".github" / "workflows" / "ci.yml").read_text("utf-8")
