"""Expand: alerts."""

from __future__ import annotations

from app.stores.migrations import run_script

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    run_script("0002_alerts.sql")
