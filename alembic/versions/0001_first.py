"""The queue; what is watched, owed and told; ticks."""

from __future__ import annotations

from app.stores.migrations import run_script

revision = "0001"
down_revision = None


def upgrade() -> None:
    for name in ("queue", "enqueue", "claim", "finish", "park", "watching"):
        run_script(f"0001_{name}.sql")
