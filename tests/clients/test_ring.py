"""The ring at the service's own address."""

from __future__ import annotations

from datetime import timedelta

import httpx
import pytest

from app.clients import ring
from app.domain.errors import Failure, PermanentFailure, TemporaryFailure
from tests.fakes.replica import DRAINED, Replica
from tests.flow.service import free_port

SECRET = "s3cr3t-token-ünïcode"


async def rung(url: str, *, patience: float = 30, queue: str | None = None) -> dict[str, int]:
    async with httpx.AsyncClient(trust_env=False, follow_redirects=True) as http:
        counted = await ring.ring(
            http,
            url,
            SECRET.encode(),
            budget=timedelta(seconds=22.96),
            max_jobs=40,
            patience=timedelta(seconds=patience),
            queue=queue,
        )
        return dict(counted)


async def test_it_asks_for_a_drain_and_tells_what_that_counted():
    async with Replica() as replica:
        counted = await rung(replica.url)

    assert counted == DRAINED["jobs"]
    [request] = replica.rung
    assert (request.method, request.path.partition("?")[0]) == ("POST", "/api/cron/drain")
    assert request.headers["authorization"].encode("latin-1") == f"Bearer {SECRET}".encode()
    assert request.headers["wakebell-depth"] == "1"
    assert replica.asked == [{"budget": "23.0", "max_jobs": "40"}]


async def test_a_queue_is_named_as_it_is():
    async with Replica() as replica:
        await rung(f"{replica.url}/below/a/path", queue="wakebell.replies & more")

    assert replica.asked[0]["queue"] == "wakebell.replies & more"
    assert replica.rung[0].path.startswith("/below/a/path/api/cron/drain?")


@pytest.mark.parametrize(
    ("does", "error", "words"),
    [
        (301, PermanentFailure, "127.0.0.1 answered 301: write into PUBLIC_URL where it leads to"),
        (308, PermanentFailure, "127.0.0.1 answered 308: write into PUBLIC_URL where it leads to"),
        (401, PermanentFailure, "127.0.0.1 answered 401: it has another CRON_SECRET, or asks for a password"),
        (404, TemporaryFailure, "127.0.0.1 answered 404"),
        (503, TemporaryFailure, "127.0.0.1 answered 503"),
        (b"<html>", PermanentFailure, "127.0.0.1 did not answer as this service does; PUBLIC_URL must be its own"),
        (b"[]", PermanentFailure, "did not answer as this service does"),
        (b'{"jobs": 3}', PermanentFailure, "did not answer as this service does"),
        (b'{"jobs": {"claimed": null}}', PermanentFailure, "did not answer as this service does"),
        (b"[" * 100_000, PermanentFailure, "did not answer as this service does"),
        ("hang up", TemporaryFailure, "127.0.0.1 could not be reached"),
    ],
)
async def test_what_is_no_drain_is_told_without_the_secret_and_led_nowhere(
    does: int | bytes | str, error: type[Failure], words: str
):
    async with Replica(does) as replica:
        with pytest.raises(error) as caught:
            await rung(replica.url)

    assert words in str(caught.value)
    assert "s3cr3t" not in f"{caught.value!r} {caught.value.__cause__!r}"
    assert len(replica.rung) == 1


async def test_a_replica_that_is_dead_is_told():
    with pytest.raises(TemporaryFailure, match=r"127\.0\.0\.1 could not be reached \(ConnectError\)"):
        await rung(f"http://127.0.0.1:{free_port()}")


async def test_it_is_given_up_when_patience_ends():
    async with Replica("hang") as replica:
        with pytest.raises(TemporaryFailure, match=r"127\.0\.0\.1 did not answer in time"):
            await rung(replica.url, patience=0.05)
