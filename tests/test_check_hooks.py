"""What `wakebell check` tells of hooks and of `call_url`."""

from __future__ import annotations

import base64
from pathlib import Path

import pytest

from app import check

SECRET = "whsec_" + base64.b64encode(bytes(range(32))).decode()
CONFIGURATION = """
[hooks.shop]
kind = "stripe"
secret = "env:STRIPE"
job = "invoice_paid"
events = ["invoice.paid", "invoice.failed"]

[hooks.code]
kind = "github"
secret = "env:STRIPE"
job = "pushed"

[call_url]
hosts = ["api.example.com", "*.example.org"]
private_hosts = ["localhost:3000"]
secret = "env:SECRET"
"""
HANDLER = "from pydantic import BaseModel\nclass Payload(BaseModel): ...\nasync def handle(payload, ctx): ...\n"


@pytest.fixture
def environ(tmp_path: Path, database_url: str) -> dict[str, str]:
    (tmp_path / "wakebell.toml").write_text(CONFIGURATION)
    (tmp_path / "handlers").mkdir()
    (tmp_path / "handlers" / "invoice_paid.py").write_text(HANDLER)
    return {
        "DATABASE_URL": database_url,
        "CRON_SECRET": "a-cron-secret-of-thirty-characters",
        "WAKEBELL_CONFIG": str(tmp_path / "wakebell.toml"),
        "STRIPE": "whsec_stripes-own-form",
        "SECRET": SECRET,
        "PUBLIC_URL": "https://gigs.example",
    }


async def test_each_hook_is_told_with_its_address_and_what_nobody_handles(environ: dict[str, str]):
    found = await check.run(environ)

    assert found.problems == []
    shop = "hook shop: stripe at https://gigs.example/api/hooks/shop"
    assert f"{shop}; invoice.failed, invoice.paid becomes a job invoice_paid" in found.lines
    assert "hook code: github at https://gigs.example/api/hooks/code; every event becomes a job pushed" in found.lines
    assert "hook code: there is no handler pushed; its events are kept and wait until there is one" in found.lines
    assert not any("no handler invoice_paid" in line for line in found.lines)
    assert found.lines[-1] == "it will start; the lines above say which jobs nobody handles"
    assert "own-form" not in str(found)


async def test_where_calls_may_go_is_told_and_call_url_is_no_file(environ: dict[str, str]):
    found = await check.run(environ)

    told = "call_url: may call api.example.com, *.example.org; and in private networks localhost:3000"
    assert told in found.lines
    assert [line for line in found.lines if line.startswith("handler ")] == [
        "handler invoice_paid: handlers/invoice_paid.py"
    ]


async def test_without_an_address_of_its_own_the_path_is_told(environ: dict[str, str]):
    del environ["PUBLIC_URL"]

    found = await check.run(environ)

    assert any("at /api/hooks/shop (set PUBLIC_URL to see its whole address)" in line for line in found.lines)
