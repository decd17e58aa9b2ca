"""The commands that the guides give to whoever rings, run by a shell against the real service."""

from __future__ import annotations

import asyncio
import json
import shutil
from pathlib import Path

import pytest

from tests.fakes.http_server import HttpServer, Request, send
from tests.fakes.qstash import CURRENT, claims, token
from tests.flow.service import SECRET, free_port
from tests.flow.stage import Stage
from tests.test_kits import PAGES, blocks

BELL = "https://my-bell.fly.dev"

pytestmark = pytest.mark.skipif(not all(map(shutil.which, ("bash", "curl"))), reason="needs bash and curl")


class Upstash(HttpServer):
    """QStash's own API."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[Request] = []

    async def answer(self, request: Request, wire: asyncio.StreamWriter) -> None:
        self.asked.append(request)
        await send(wire, 200, b'{"scheduleId": "wakebell-tick"}')


async def run(script: str, folder: Path, **environ: str) -> str:
    process = await asyncio.create_subprocess_exec(
        *("bash", "-euo", "pipefail", "-c", script),
        env={"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": str(folder), **environ},
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    told, wrong = await process.communicate()
    assert process.returncode == 0, wrong.decode()
    return told.decode()


def rings() -> list[str]:
    """Blocks that ring the service itself."""
    found = [block for page in PAGES for block in blocks(page, "sh") if "curl" in block and "/api/cron/tick" in block]
    return [block for block in found if "upstash" not in block and "gcloud" not in block]


async def test_each_of_them_rings_once_and_so_does_qstash(stage: Stage, tmp_path: Path):
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    service = await stage.serve_at("127.0.0.1", port, PUBLIC_URL=url, QSTASH_CURRENT_SIGNING_KEY=CURRENT)
    (tmp_path / ".wakebell").write_text(f"CRON_SECRET='{SECRET}'\nWAKEBELL_URL='{url}'\n")

    told = [await run(block.replace(BELL, url), tmp_path, CRON_SECRET=SECRET) for block in rings()]

    path = "/api/cron/tick?budget=20"
    signed = {"Upstash-Signature": token(claims(f"{url}{path}", b"{}"))}
    answer = await service.ask("POST", path, headers=signed, content=b"{}")

    assert [json.loads(summary)["tick"] for summary in told] == [1, 2]
    assert (answer.status_code, answer.json()["tick"]) == (200, 3)


async def test_the_schedule_at_qstash_names_the_service_and_no_secret_of_it(tmp_path: Path):
    [block] = [block for page in PAGES for block in blocks(page, "sh") if "v2/schedules" in block]
    script = block.replace("read -rs QSTASH_TOKEN", "QSTASH_TOKEN=a-token-of-qstash")
    async with Upstash() as upstash:
        await run(script.replace("https://qstash.upstash.io", upstash.url), tmp_path)

    [asked] = upstash.asked
    assert (asked.method, asked.path) == ("POST", f"/v2/schedules/{BELL}/api/cron/tick")
    assert asked.headers["authorization"] == "Bearer a-token-of-qstash"
    assert asked.headers["upstash-cron"] == "7,22,37,52 * * * *"
    assert asked.headers["upstash-timeout"] == "120s"
    assert not [name for name in asked.headers if name.startswith("upstash-forward")]
