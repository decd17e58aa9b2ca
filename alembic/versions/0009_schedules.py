"""Expand: schedules and their slots."""

from __future__ import annotations

from app.stores.migrations import run_script

revision = "0009"
down_revision = "0008"

SCRIPTS: tuple[str, ...] = ("schedules",)
"""In this order, each `alembic/sql/0009_<name>.sql`."""


def upgrade() -> None:
    for name in SCRIPTS:
        run_script(f"0009_{name}.sql")
