"""Expand: drains of one queue, and pauses that say why."""

from __future__ import annotations

from app.stores.migrations import run_script

revision = "0005"
down_revision = "0004"

SCRIPTS: tuple[str, ...] = ("claim", "release", "look")
"""In this order, each `alembic/sql/0005_<name>.sql`."""


def upgrade() -> None:
    for name in SCRIPTS:
        run_script(f"0005_{name}.sql")
