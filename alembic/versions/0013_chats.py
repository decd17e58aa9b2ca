"""Expand: conversations, what was said in them, and what is remembered of it."""

from __future__ import annotations

from app.stores.migrations import run_script

revision = "0013"
down_revision = "0012"


def upgrade() -> None:
    run_script("0013_chats.sql")
