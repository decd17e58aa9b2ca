"""Two replicas behind a real nginx, as `deploy/` has it set up."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx
import pytest

from tests.fakes.nginx import NEEDED, PROGRAM, Balancer, accepted, balancer, free_port, name_server
from tests.flow.service import Service, until
from tests.flow.stage import Stage

pytestmark = pytest.mark.skipif(PROGRAM is None, reason=NEEDED)

ASKED = 400


async def ask(front: Balancer, count: int = ASKED) -> list[int]:
    """So many requests, some at once; the status of each answer."""
    async with httpx.AsyncClient(trust_env=False, timeout=30, limits=httpx.Limits(max_connections=8)) as http:
        answers = await asyncio.gather(*(http.get(f"{front.url}/healthz") for _ in range(count)))
    return [answer.status_code for answer in answers]


@asynccontextmanager
async def fixed(stage: Stage) -> AsyncIterator[tuple[Balancer, list[Service]]]:
    replicas = [await stage.serve(), await stage.serve()]
    changes = {f"127.0.0.1:808{place}": f"127.0.0.1:{replica.port}" for place, replica in enumerate(replicas, 1)}
    async with balancer("nginx.conf", changes) as front:
        yield front, replicas


async def test_both_serve_about_half_at_fixed_addresses(stage: Stage):
    async with fixed(stage) as (front, replicas):
        assert set(await ask(front)) == {200}

        served = front.served()
        assert set(served) == {f"127.0.0.1:{replica.port}" for replica in replicas}
        assert all(0.4 * ASKED <= count <= 0.6 * ASKED for count in served.values()), served


async def test_one_that_is_killed_is_missed_by_nobody_who_asks_after(stage: Stage):
    async with fixed(stage) as (front, replicas):
        await ask(front, 20)

        replicas[0].kill()
        await replicas[0].ended()

        assert set(await ask(front, 100)) == {200}


@pytest.mark.parametrize("configuration", ["nginx.conf", "nginx-names.conf"])
async def test_a_configuration_is_taken_as_it_is_though_no_replica_is_there_yet_nor_its_name(configuration: str):
    assert await accepted(configuration)


async def test_both_serve_about_half_where_one_name_stands_for_them_and_a_new_address_is_found(stage: Stage):
    port = free_port()
    first, second = [await stage.serve_at(host, port) for host in ("127.0.0.1", "127.0.0.2")]
    addresses: list[str] = []
    async with name_server(addresses) as names:
        changes = {
            "resolver 127.0.0.11 valid=10s": f"resolver 127.0.0.1:{names} valid=1s",
            "set $wakebell wakebell;": "set $wakebell wakebell.test;",
            "$wakebell:8080": f"$wakebell:{port}",
        }
        async with balancer("nginx-names.conf", changes) as front:

            async def found() -> bool:
                return set(await ask(front, 1)) == {200}

            assert set(await ask(front, 5)) == {502}, "nobody has the name"
            addresses[:] = ["127.0.0.1", "127.0.0.2"]
            await until(found, told="whoever has the name by now answers")
            before = front.served()
            assert set(await ask(front)) == {200}
            served = front.served() - before
            assert all(0.4 * ASKED <= served[f"{host}:{port}"] <= 0.6 * ASKED for host in addresses), served

            third = await stage.serve_at("127.0.0.3", port)
            addresses[:] = ["127.0.0.3"]
            for gone in (first, second):
                gone.kill()
                await gone.ended()

            await until(found, told="the replica at the new address answers")
            assert front.served()[f"127.0.0.3:{port}"] >= 1
            third.kill()
