"""Expand: quiet hours, caps, quotas and fallbacks of messages."""

from __future__ import annotations

from app.stores.migrations import run_script

revision = "0008"
down_revision = "0007"

SCRIPTS: tuple[str, ...] = ("quota", "compose", "bounds")
"""In this order, each `alembic/sql/0008_<name>.sql`."""


def upgrade() -> None:
    for name in SCRIPTS:
        run_script(f"0008_{name}.sql")
