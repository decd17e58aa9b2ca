"""Expand: what the API's listings read."""

from __future__ import annotations

from app.stores.migrations import run_script

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    run_script("0003_listings.sql")
