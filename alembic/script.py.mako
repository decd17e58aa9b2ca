"""${message}."""

from __future__ import annotations

from alembic import op

revision = ${repr(up_revision)}
down_revision = ${repr(down_revision)}


def upgrade() -> None:
    # What takes as long as a table is large is done beforehand: docs/decisions/0024.
    op.execute(
        """
        SELECT 1
        """,
    )
