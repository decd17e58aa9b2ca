"""The proofs of the queue's store again, through a transaction pooler that has two connections for each database.

What sets the stage and looks behind it goes straight to the server; those who put in, claim and finish do not.
"""

from __future__ import annotations

import asyncio
import functools
from collections.abc import AsyncIterator, Iterator
from types import ModuleType
from urllib.parse import urlsplit

import asyncpg
import hypothesis
import pytest

from tests.fakes.pooler import PROGRAM, Pooler, pooler
from tests.stores import (
    test_jobs,
    test_jobs_deadlocks,
    test_jobs_keeping,
    test_jobs_many,
    test_jobs_model,
    test_jobs_queues,
    test_jobs_races,
    test_jobs_rescue,
    test_jobs_turn,
    test_queue_cases,
    test_queues,
)

pytestmark = pytest.mark.skipif(PROGRAM is None, reason="needs pgbouncer, of Debian's package of that name")

PROOFS: tuple[ModuleType, ...] = (
    test_jobs,
    test_jobs_deadlocks,
    test_jobs_keeping,
    test_jobs_many,
    test_jobs_model,
    test_jobs_queues,
    test_jobs_races,
    test_jobs_rescue,
    test_jobs_turn,
    test_queue_cases,
    test_queues,
)

globals().update(
    (f"{module.__name__.rpartition('.')[2]}_{name.removeprefix('test_')}", test)
    for module in PROOFS
    for name, test in vars(module).items()
    if name.startswith("test_")
)


@pytest.fixture(scope="session")
def way(server_url: str) -> Iterator[Pooler]: ...
