"""Expand: failed tries are kept, jobs follow on, and people cancel, retry and reschedule; many at once."""

from __future__ import annotations

from app.stores.migrations import run_script

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    for name in ("keeping", "enqueue", "finish", "change"):
        run_script(f"0004_{name}.sql")
