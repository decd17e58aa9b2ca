"""The queue; what is watched, owed and told; ticks."""

from __future__ import annotations

from app.stores.migrations import run_script

revision = "0001"
down_revision = None


def upgrade() -> None:
    run_script("0001_queue.sql")
    run_script("0001_watching.sql")
