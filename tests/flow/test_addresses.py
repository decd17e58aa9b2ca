"""Whatever a provider hands out is taken as it stands, and what cannot be reached is told and answered 503 soon."""

from __future__ import annotations

import asyncio
import socket

import pytest

from tests.fakes.pooler import NEEDED, PROGRAM, pooler
from tests.fakes.proxy import Proxy
from tests.flow.service import Service, free_port
from tests.flow.stage import Stage
from tests.flow.test_hooks import HANDLER, HOOK
from tests.hooks.senders import STANDARD, standard

FOREIGN = "channel_binding=prefer&pgbouncer=true&gssencmode=disable&keepalives=1&connection_limit=1&supa=base-pooler.x"


async def test_every_scheme_and_every_key_of_other_drivers_will_do(stage: Stage):
    stage.feeds.add("board", "Old")
    async with Proxy(stage.database_url) as way:
        place = way.url.partition("://")[2]
        ticks = [
            stage.bear("tick", DATABASE_URL=f"{scheme}://{place}?{query}")
            for scheme, query in (
                ("postgres", f"sslmode=disable&{FOREIGN}"),
                ("postgresql", "sslmode=prefer"),
                ("postgresql+asyncpg", ""),
                ("postgresql+psycopg2", "application_name=mine&connect_timeout=5"),
            )
        ]

        assert [await tick.ended() for tick in ticks] == [0] * 4

    assert all(key in ticks[0].log for key in ("channel_binding", "pgbouncer", "keepalives", "supa"))


async def test_what_no_driver_knows_keeps_it_from_starting(stage: Stage):
    for query, words in (("sslmode=nonsense", 'sslmode "nonsense" is not known'), ("foo=bar", 'the key "foo" is not')):
        process = stage.bear("serve", DATABASE_URL=f"postgres://app:s3cr3t@db.example/app?{query}")

        assert await process.ended() == 1
        assert words in process.log
        assert "s3cr3t" not in process.log


@pytest.mark.direct
async def test_what_cannot_be_reached_is_answered_503_in_time_and_told(stage: Stage):
    with socket.create_server(("127.0.0.7", 0)) as hole:
        async with Proxy(stage.database_url) as way:
            nowhere = f"postgres://app:s3cr3t@[::1]:{free_port()}/gigs"
            silent = f"postgres://app:s3cr3t@127.0.0.7:{hole.getsockname()[1]}/gigs?connect_timeout=1"
            urls = {
                nowhere: "::1/gigs could not be reached (Connection refused) by IPv6; check host and port in "
                "DATABASE_URL, or put the provider's pooled address there, which has IPv4 too",
                silent: "127.0.0.7/gigs did not answer in time by IPv4; check host and port in DATABASE_URL, or put "
                "the provider's pooled address there",
                f"{way.url}?sslmode=require": "and this service do not agree on TLS: it offers none",
                way.url.replace("//postgres@", "//nobody_here:s3cr3t@"): "refused the sign-in; check user and password",
            }
            services = await asyncio.gather(*(stage.serve(DATABASE_URL=url) for url in urls))
            before = way.connections

            answers = await asyncio.gather(*(service.ring() for service in services))

            assert way.connections == before + 2  # TLS and the sign-in: tried once each

    for service, answer, words in zip(services, answers, urls.values(), strict=True):
        assert answer.status_code == 503
        assert int(answer.headers["retry-after"]) > 0
        assert answer.elapsed.total_seconds() < 15
        assert words in service.log
        assert "s3cr3t" not in service.log + answer.text


@pytest.mark.skipif(PROGRAM is None, reason=NEEDED)
async def test_ten_events_at_once_are_kept_once_by_a_pooler_that_takes_three_clients(stage: Stage):
    stage.more = HOOK
    stage.handler("sold", HANDLER)
    left = [f"evt_{number}" for number in range(10)]
    async with pooler(stage.database_url, max_client_conn=3) as way:
        service = await stage.serve(DATABASE_URL=way.url, HOOK_SECRET=STANDARD)

        while left:  # as whoever is told to does
            left = await refused(service, left)

    assert await stage.sql.fetchval("SELECT count(*) FROM wakebell.events") == 10
    assert await stage.sql.fetchval("SELECT count(*) FROM wakebell.jobs WHERE type = 'sold'") == 10


async def refused(service: Service, names: list[str]) -> list[str]:
    """Those of the events, told all at once, that are to be told again."""
    told = []
    for name in names:
        raw, headers = standard({"type": "sold", "data": {"amount": 1}}, name=name)
        told.append(service.ask("POST", "/api/hooks/shop", content=raw, headers=headers))
    answers = await asyncio.gather(*told)
    assert {answer.status_code for answer in answers} <= {200, 202, 503}
    return [name for name, answer in zip(names, answers, strict=True) if answer.status_code == 503]
