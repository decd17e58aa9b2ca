"""Expand: what a person has used of models, the newest reply token, and what was given up."""

from __future__ import annotations

from app.stores.migrations import run_script

revision = "0014"
down_revision = "0013"


def upgrade() -> None:
    run_script("0014_talking.sql")
