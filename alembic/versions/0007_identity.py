"""Expand: how items are told apart and recognised, and when a source is blind."""

from __future__ import annotations

from app.stores.migrations import run_script

revision = "0007"
down_revision = "0006"


def upgrade() -> None:
    run_script("0007_identity.sql")
