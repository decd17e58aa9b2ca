"""What docs/guides/jobs-from-outside.md shows works as it stands there."""

from __future__ import annotations

import re
from datetime import timedelta
from pathlib import Path

import asyncpg
import pytest

from app import handlers, settings
from tests.hooks.senders import STANDARD, STRIPE

GUIDE = (Path(__file__).parent.parent / "docs" / "guides" / "jobs-from-outside.md").read_text("utf-8")


def shown(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", GUIDE, re.MULTILINE | re.DOTALL)


def test_its_configuration_is_taken(tmp_path: Path):
    (tmp_path / "wakebell.toml").write_text("\n".join(shown("toml")))
    secrets = {"STRIPE_SIGNING_SECRET": STRIPE, "CALL_URL_SECRET": STANDARD, "EXAMPLE_TOKEN": "Bearer a-token"}

    read = settings.load({"WAKEBELL_CONFIG": str(tmp_path / "wakebell.toml"), **secrets})

    assert list(read.hooks) == ["shop"]
    assert read.calls is not None


def test_its_handler_loads(tmp_path: Path):
    [snippet] = shown("python")
    (tmp_path / "invoice_paid.py").write_text(snippet)

    assert list(handlers.users(tmp_path, budget=timedelta(seconds=25))) == ["invoice_paid"]


async def test_its_grants_are_enough_and_its_transaction_leaves_one_job(database_url: str):
    grants, transaction = shown("sql")
    role = f"shop_{re.sub('[^a-z0-9]+', '_', database_url.partition('?')[0])}"
    connection = await asyncpg.connect(database_url)
    try:
        await connection.execute(
            f"CREATE TABLE people (name text); CREATE ROLE {role}; GRANT INSERT ON people TO {role}"
        )
        await connection.execute(grants.replace("TO shop", f"TO {role}"))
        await connection.execute(f"SET ROLE {role}")
        await connection.execute(transaction)
        await connection.execute("RESET ROLE")
        assert await connection.fetchval("SELECT count(*) FROM wakebell.jobs WHERE type = 'welcome'") == 1
    finally:
        await connection.execute(f"RESET ROLE; DROP OWNED BY {role}; DROP ROLE {role}")
        await connection.close()


@pytest.mark.parametrize("name", ["kind", "secret", "job", "events", "tolerance_seconds", "queue"])
def test_every_key_of_a_hook_is_shown(name: str):
    assert f"\n{name} = " in shown("toml")[0]
