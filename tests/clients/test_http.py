from __future__ import annotations

from datetime import UTC, datetime, timedelta

import httpx
import pytest

from app.clients.http import failure_of, host_of, json_of, post, retry_after, wait_of
from app.domain.errors import PermanentFailure, RateLimited, TemporaryFailure

NOW = datetime(2026, 10, 21, 7, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("value", "wait"),
    [
        ("120", timedelta(seconds=120)),
        ("Wed, 21 Oct 2026 07:28:00 GMT", timedelta(minutes=28)),
        ("Wed, 21 Oct 2026 07:28:00", timedelta(minutes=28)),
        ("Wed, 21 Oct 2026 06:00:00 GMT", None),
        ("Wed, 21 Oct 2099 06:00:00 GMT", timedelta(days=1)),
        ("999999999999", timedelta(days=1)),
        ("soon", None),
        ("-5", None),
        ("", None),
    ],
)
def test_retry_after_is_read_in_seconds_and_as_a_date(value: str, wait: timedelta | None):
    assert retry_after(httpx.Response(429, headers={"Retry-After": value}), now=NOW) == wait


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        *((status, TemporaryFailure) for status in (408, 425, 500, 503)),
        (429, RateLimited),
        *((status, PermanentFailure) for status in (302, 400, 401, 404)),
    ],
)
def test_a_status_decides_whether_to_try_again(status: int, kind: type[Exception]):
    response = httpx.Response(status, text="a\nb\x07c", request=httpx.Request("POST", "https://e.test/hush"))

    failure = failure_of(response)

    assert type(failure) is kind
    assert str(failure) == f"e.test answered {status}: a b c"


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (httpx.ConnectError("https://e.test/hush"), "e.test could not be reached (ConnectError)"),
        (httpx.ConnectTimeout("https://e.test/hush"), "e.test could not be reached (ConnectTimeout)"),
        (httpx.ReadTimeout("https://e.test/hush"), "e.test did not answer (ReadTimeout)"),
    ],
)
async def test_a_network_failure_names_the_host_alone(error: Exception, told: str):
    def answer(_: httpx.Request) -> httpx.Response:
        raise error

    async with httpx.AsyncClient(transport=httpx.MockTransport(answer)) as http:
        with pytest.raises(TemporaryFailure) as caught:
            await post(http, "https://e.test/hush", content=b"", headers={})

    assert str(caught.value) == told


async def test_an_address_of_another_kind_is_refused():
    async with httpx.AsyncClient() as http:
        with pytest.raises(PermanentFailure, match="the address is not an http or https address"):
            await post(http, "ftp://e.test/hush", content=b"", headers={})


@pytest.mark.parametrize(("url", "host"), [("https://u:p@e.test/x", "e.test"), ("http://[::1", "the address")])
def test_a_host_is_told_without_the_rest(url: str, host: str):
    assert host_of(url) == host


@pytest.mark.parametrize(
    ("text", "told"),
    [('{"a": 1}', {"a": 1}), ("[1]", {}), ("null", {}), ("<html>", {}), ("", {}), ("[" * 60_000, {}), ("\xff", {})],
)
def test_what_is_no_json_object_is_an_empty_one(text: str, told: dict[str, int]):
    assert json_of(httpx.Response(200, content=text.encode("latin-1"))) == told


@pytest.mark.parametrize(
    ("seconds", "wait"),
    [
        (30, timedelta(seconds=30)),
        (0.2, timedelta(seconds=1)),
        (64.57, timedelta(seconds=65)),
        (10**30, timedelta(days=1)),
        (0, None),
        (-1, None),
        (True, None),
        ("30", None),
        (None, None),
        (float("nan"), None),
        (float("inf"), None),
    ],
)
def test_a_wait_of_json_is_a_number_of_seconds(seconds: object, wait: timedelta | None):
    assert wait_of(seconds) == wait
