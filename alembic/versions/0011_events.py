"""Expand: inbound events, kept once."""

from __future__ import annotations

from app.stores.migrations import run_script

revision = "0011"
down_revision = "0010"

SCRIPTS: tuple[str, ...] = ("events",)
"""In this order, each `alembic/sql/0011_<name>.sql`."""


def upgrade() -> None:
    for name in SCRIPTS:
        run_script(f"0011_{name}.sql")
