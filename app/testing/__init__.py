"""For tests of your handlers: run one alone, drain what was put in, look at what is there. Always a real PostgreSQL.

    async with testing.queue() as queue:
        assert await queue.run("send_receipt", {"order": 17}) == Done({"sent": True})

It needs no particular test runner: docs/guides/testing.md shows it in pytest and in unittest. Nothing of the service
imports it.
"""

from __future__ import annotations

from app.testing.bench import Queue
from app.testing.drained import Drained, FailedJob, JobsFailed
from app.testing.opened import database, queue

__all__ = ["Drained", "FailedJob", "JobsFailed", "Queue", "database", "queue"]
