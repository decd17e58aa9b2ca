"""Who takes part."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Contender:
    """One that is measured."""

    name: str

    file: str
    """In `adapters`."""

    where: str
    """The environment it runs in: `service` (what Wakebell needs), `peers`, or `node`."""

    left: str
    """SQL that counts what is not finished: how a trial sees that all was written down."""

    peer: bool = True
    """A product like ours, and not a hand-written loop or ourselves."""


CONTENDERS = (
    Contender(
        name="Wakebell, one tick",
        file="wakebell",
        where="service",
        left="SELECT count(*) FROM wakebell.jobs WHERE type = 'noop' AND status <> 'done'",
        peer=False,
    ),
    Contender(
        name="Wakebell, ticks of 1,000",
        file="wakebell_thousands",
        where="service",
        left="SELECT count(*) FROM wakebell.jobs WHERE type = 'noop' AND status <> 'done'",
        peer=False,
    ),
    Contender(
        name="Procrastinate",
        file="procrastinate",
        where="peers",
        left="SELECT count(*) FROM procrastinate_jobs WHERE status <> 'succeeded'",
    ),
    Contender(
        name="PgQueuer",
        file="pgqueuer",
        where="peers",
        left="SELECT count(*) FROM pgqueuer",
    ),
    Contender(
        name="Oban",
        file="oban",
        where="peers",
        left="SELECT count(*) FROM oban_jobs WHERE state <> 'completed'",
    ),
    Contender(
        name="Chancy",
        file="chancy",
        where="peers",
        left="SELECT count(*) FROM chancy_jobs WHERE state <> 'succeeded'",
    ),
    Contender(
        name="pg-boss",
        file="pgboss",
        where="node",
        left="SELECT count(*) FROM pgboss.job WHERE name = 'noop' AND state <> 'completed'",
    ),
    Contender(
        name="loop over SQLAlchemy",
        file="loop_sqlalchemy",
        where="service",
        left="SELECT count(*) FROM jobs WHERE status <> 'done'",
        peer=False,
    ),
    Contender(
        name="loop over asyncpg",
        file="loop_asyncpg",
        where="service",
        left="SELECT count(*) FROM jobs WHERE status <> 'done'",
        peer=False,
    ),
)
