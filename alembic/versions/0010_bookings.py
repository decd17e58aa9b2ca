"""Expand: bookings and what is sent before them."""

from __future__ import annotations

from app.stores.migrations import run_script

revision = "0010"
down_revision = "0009"

SCRIPTS: tuple[str, ...] = ("bookings",)
"""In this order, each `alembic/sql/0010_<name>.sql`."""


def upgrade() -> None:
    for name in SCRIPTS:
        run_script(f"0010_{name}.sql")
