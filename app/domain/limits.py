"""How long things may take."""

from __future__ import annotations

from datetime import timedelta

DEFAULT_TIMEOUT = timedelta(seconds=15)
"""Of a handler that names none."""

GRACE = timedelta(seconds=5)
"""A tick answers by its budget and this much more."""

PINGING = timedelta(seconds=2)
"""What of that a heartbeat may take."""

REPORTING = timedelta(seconds=3)
"""What of that is kept for counting, pinging and answering: every job that a tick starts is over before."""
