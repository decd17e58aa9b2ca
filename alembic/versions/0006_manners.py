"""Expand: manners towards the hosts that are read."""

from __future__ import annotations

from app.stores.migrations import run_script

revision = "0006"
down_revision = "0005"


def upgrade() -> None:
    run_script("0006_manners.sql")
