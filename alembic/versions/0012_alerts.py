"""Expand: further kinds of alerts, acknowledged and muted."""

from __future__ import annotations

from app.stores.migrations import run_script

revision = "0012"
down_revision = "0011"

SCRIPTS: tuple[str, ...] = ("incidents",)
"""In this order, each `alembic/sql/0012_<name>.sql`."""


def upgrade() -> None:
    for name in SCRIPTS:
        run_script(f"0012_{name}.sql")
