from __future__ import annotations

import asyncio
import base64
import dataclasses
import json
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest
from pydantic import ValidationError
from standardwebhooks import Webhook

from app import context, handlers
from app.clients import calls as client
from app.context import Context, Deadline
from app.domain.calls import Calls
from app.domain.errors import PermanentFailure, TemporaryFailure
from app.domain.jobs import Done, Job, Snooze
from app.handlers import call_url
from tests.api.doors import NOWHERE
from tests.fakes.batches import a_service
from tests.fakes.http_server import HttpServer, Request, for_ever, head, send
from tests.fakes.outside import Internet

SECRET = "whsec_" + base64.b64encode(bytes(range(32))).decode()
NEXT = "whsec_" + base64.b64encode(bytes(24)).decode()

CONFIGURATION = """
[call_url]
hosts = ["api.example.com", "*.example.org"]
private_hosts = ["{stub}", "localhost"]
secret = {secret}

[call_url.headers]
"{stub}" = {{ Authorization = "Bearer configured-token" }}
"api.example.com" = {{ Authorization = "Bearer configured-token" }}
"""

JOB = Job(
    id=17,
    type="call_url",
    payload={"url": "https://api.example.com/"},
    queue="default",
    attempt=1,
    crashes=0,
    max_attempts=4,
    token=1,
    lease_until=datetime(2026, 11, 30, tzinfo=UTC),
)

Answer = Callable[[Request, asyncio.StreamWriter], Awaitable[None]]


class Stub(HttpServer):
    """Answers as it is told, and remembers what it was asked."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[Request] = []
        self.answers: list[Answer] = []

    def will(self, status: int, body: bytes = b"", **headers: str) -> None:
        told = {name.replace("_", "-"): value for name, value in headers.items()}

        async def answer(_: Request, wire: asyncio.StreamWriter) -> None:
            await send(wire, status, body, headers=told)

        self.answers.append(answer)

    async def answer(self, request: Request, wire: asyncio.StreamWriter) -> None:
        self.asked.append(request)
        await (self.answers.pop(0) if self.answers else _ok)(request, wire)


async def _ok(_: Request, wire: asyncio.StreamWriter) -> None:
    await send(wire, 200, b"thanks")


@pytest.fixture
async def stub() -> AsyncIterator[Stub]:
    async with Stub() as stub:
        yield stub


@pytest.fixture
def internet(stub: Stub, monkeypatch: pytest.MonkeyPatch) -> Internet:
    """Names of the internet lead to the stub."""
    internet = Internet(stub.url)
    monkeypatch.setattr(context, "guarded", internet.guarded)
    return internet


@pytest.fixture(autouse=True)
def made_up() -> None:
    """No kind is: what is run here has none."""


@pytest.fixture
async def ctx(tmp_path: Path, stub: Stub, internet: Internet) -> AsyncIterator[Context]:
    text = CONFIGURATION.format(stub=stub.url.removeprefix("http://"), secret=json.dumps([SECRET, NEXT]))
    async with httpx.AsyncClient(trust_env=False, verify=False) as http:
        yield Context(
            service=a_service(NOWHERE, tmp_path, text),
            http=http,
            deadline=Deadline(timedelta(seconds=25)),
            max_jobs=9,
            trigger="test",
        )


Call = Callable[..., Awaitable[dict[str, Any]]]


@pytest.fixture
def call(ctx: Context, stub: Stub) -> Call:
    """Run a job of its own, and tell what would be written down. Without a payload: the last one once more."""
    jobs: list[Job] = []

    async def once(**payload: Any) -> dict[str, Any]:
        if payload:
            whole = {"url": f"{stub.url}/in?key=hidden", **payload}
            jobs.append(dataclasses.replace(JOB, id=JOB.id + len(jobs), payload=whole))
        told = await ended(ctx.of(jobs[-1]))
        assert "hidden" not in json.dumps([told["result"], told["error"]])
        return told

    return once


async def ended(ctx: Context) -> dict[str, Any]:
    """As `app/attempt.py` writes it down."""
    told = {"status": "pending", "wait": None, "result": None, "error": None}
    try:
        outcome = await call_url.handle(call_url.Payload.model_validate(ctx.current_job.payload), ctx)
    except TemporaryFailure as error:
        return {**told, "error": str(error), "wait": error.retry_after}
    except (PermanentFailure, ValidationError) as error:
        return {**told, "status": "failed", "error": str(error)}
    if isinstance(outcome, Snooze):
        return {**told, "wait": outcome.delay}
    assert isinstance(outcome, Done)
    return {**told, "status": "done", "result": outcome.result}


async def test_a_call_is_made_and_its_answer_kept(call: Call, stub: Stub):
    row = await call(body={"text": "ไทย"}, headers={"X-More": "yes"})

    [asked] = stub.asked
    assert (asked.method, asked.path, asked.body) == ("POST", "/in?key=hidden", '{"text":"ไทย"}'.encode())
    assert asked.headers["content-type"] == "application/json"
    assert asked.headers["x-more"] == "yes"
    assert (row["status"], row["result"]) == ("done", {"status": 200, "body": "thanks"})


@pytest.mark.parametrize(
    ("payload", "sent", "kind"),
    [
        ({"body": "a=b"}, b"a=b", "text/plain; charset=utf-8"),
        ({"body": "<a/>", "headers": {"Content-Type": "text/xml"}}, b"<a/>", "text/xml"),
        ({"body": [1, None]}, b"[1,null]", "application/json"),
        ({"body": False}, b"false", "application/json"),
        ({"method": "PUT"}, b"", None),
        ({"method": "GET"}, b"", None),
    ],
)
async def test_a_body_is_json_a_text_or_nothing(
    call: Call, stub: Stub, payload: dict[str, Any], sent: bytes, kind: str | None
):
    row = await call(**payload)

    assert row["status"] == "done"
    assert (stub.asked[0].body, stub.asked[0].headers.get("content-type")) == (sent, kind)


async def test_the_standards_own_library_believes_it_by_either_secret(call: Call, stub: Stub):
    await call(body={"a": 1})

    [asked] = stub.asked
    for secret in (SECRET, NEXT):
        assert Webhook(secret).verify(asked.body, dict(asked.headers)) == {"a": 1}
    with pytest.raises(Exception, match="No matching signature"):
        Webhook("whsec_" + "B" * 32).verify(asked.body, dict(asked.headers))


async def test_a_repeat_keeps_its_id_and_has_a_time_of_its_own(call: Call, stub: Stub, monkeypatch: pytest.MonkeyPatch):
    stub.will(503)
    await call(body=1)
    later = time.time() + 60
    monkeypatch.setattr(time, "time", lambda: later)

    row = await call()

    first, second = (request.headers for request in stub.asked)
    assert row["status"] == "done"
    assert first["webhook-id"] == second["webhook-id"] != ""
    assert int(second["webhook-timestamp"]) > int(first["webhook-timestamp"])
    assert first["webhook-signature"] != second["webhook-signature"]


async def test_two_jobs_have_two_ids(call: Call, stub: Stub):
    await call(body=1)
    await call(body=1)

    assert len({request.headers["webhook-id"] for request in stub.asked}) == 2


@pytest.mark.parametrize("status", [408, 425, 429, 500, 502, 503, 599])
async def test_what_may_pass_is_tried_again(call: Call, stub: Stub, status: int):
    stub.will(status, b"not now", Retry_After="600")

    row = await call(body=1)

    assert (row["status"], row["error"]) == ("pending", f"127.0.0.1 answered {status}: not now")
    assert row["wait"] == timedelta(seconds=600)


@pytest.mark.parametrize("status", [400, 401, 403, 404, 410, 422])
async def test_what_will_not_pass_is_given_up(call: Call, stub: Stub, status: int):
    stub.will(status, b"no")

    row = await call(body=1)

    assert (row["status"], row["error"]) == ("failed", f"127.0.0.1 answered {status}: no")


async def test_accepted_with_a_time_is_not_done_yet(call: Call, stub: Stub):
    stub.will(202, Retry_After="120")

    row = await call(body=1)

    assert row["status"] == "pending"
    assert row["error"] is None
    assert row["wait"] == timedelta(seconds=120)


@pytest.mark.parametrize("said", [b"0", b"-5", b"1.5", b"", b"soon", b"Mon, 01 Dec 2025 00:00:00 GMT", b"\xe9\xff"])
async def test_accepted_with_a_time_that_is_none_is_asked_again_soon(call: Call, stub: Stub, said: bytes):
    stub.answers = [_raw(b"HTTP/1.1 202 Accepted\r\nRetry-After: " + said + b"\r\nContent-Length: 0\r\n\r\n")]

    row = await call(body=1)

    assert (row["status"], row["error"], row["wait"]) == ("pending", None, timedelta(seconds=1))


@pytest.mark.parametrize("name", [b"Date", b"Retry-After", b"X-Other"])
@pytest.mark.parametrize("said", [b"\xe9", b"\xff\xff", "über".encode()])
async def test_a_header_that_is_no_ascii_undoes_no_success(call: Call, stub: Stub, name: bytes, said: bytes):
    rest = name + b": " + said + b"\r\nContent-Length: 2\r\n\r\nok"
    stub.answers = [_raw(b"HTTP/1.1 200 OK\r\n" + rest), _raw(b"HTTP/1.1 503 Away\r\n" + rest)]

    done, away = await call(body=1), await call(body=1)

    assert (done["status"], done["result"]) == ("done", {"status": 200, "body": "ok"})
    assert (away["status"], away["error"]) == ("pending", "127.0.0.1 answered 503: ok")


def _raw(answer: bytes) -> Answer:
    async def write(_: Request, wire: asyncio.StreamWriter) -> None:
        wire.write(answer)
        await wire.drain()

    return write


@pytest.mark.parametrize(
    "address", ["http://[::1]:3000/in", "https://[2606:2800:220:1::1]/", "https://xn--bcher-kva.example/"]
)
def test_an_answer_counts_whatever_its_address_looks_like(address: str):
    payload = call_url.Payload(url=address)

    def outcome(status: int) -> Any:
        url = httpx.URL(address)
        answer = client.Answer(url=url, status=status, headers=httpx.Headers(), location="", words="ok")
        return call_url._outcome(payload, answer, "ok")

    assert outcome(200) == Done({"status": 200, "body": "ok"})
    with pytest.raises(TemporaryFailure, match="answered 503: ok"):
        outcome(503)


async def test_no_proxy_of_the_environment_sees_a_call(call: Call, stub: Stub, monkeypatch: pytest.MonkeyPatch):
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"):
        monkeypatch.setenv(name, "http://user:word@127.0.0.1:9")
    monkeypatch.delenv("NO_PROXY", raising=False)
    monkeypatch.delenv("no_proxy", raising=False)

    row = await call(body=1)

    assert (row["status"], len(stub.asked)) == ("done", 1)


async def test_a_body_that_trickles_past_a_small_budget_undoes_no_success(ctx: Context, stub: Stub):
    async def trickle(_: Request, wire: asyncio.StreamWriter) -> None:
        wire.write(head(200, {"Content-Length": "1000"}) + b"beginning")
        await wire.drain()
        await for_ever()

    stub.answers = [trickle]
    short = dataclasses.replace(ctx.service.handlers["call_url"], timeout=timedelta(seconds=1))
    service = dataclasses.replace(ctx.service, handlers={"call_url": short})
    job = dataclasses.replace(JOB, payload={"url": stub.url})

    async with asyncio.timeout(client.ANSWER_SECONDS - 1):  # what the answer's own bound would not keep
        row = await ended(dataclasses.replace(ctx, service=service).of(job))

    assert (row["status"], row["result"]) == ("done", {"status": 200, "body": "beginning"})


@pytest.mark.parametrize(("payload", "headers"), [({}, {}), ({"success": [202]}, {"Retry_After": "120"})])
async def test_accepted_is_done_without_a_time_or_where_that_is_said(
    call: Call, stub: Stub, payload: dict[str, Any], headers: dict[str, str]
):
    stub.will(202, b"", **headers)

    assert (await call(body=1, **payload))["status"] == "done"


@pytest.mark.parametrize(
    ("success", "status", "became"),
    [
        ([200], 200, "done"),
        (["200-204", 404], 404, "done"),
        ([200], 204, "pending"),
        (["400-499"], 429, "done"),
        ([200], 404, "failed"),
    ],
)
async def test_success_is_what_the_job_says(call: Call, stub: Stub, success: list[Any], status: int, became: str):
    stub.will(status)

    assert (await call(method="DELETE", success=success))["status"] == became


async def test_configured_headers_are_sent_and_seen_nowhere(call: Call, stub: Stub):
    async def echo(request: Request, wire: asyncio.StreamWriter) -> None:
        await send(wire, 200, json.dumps(dict(request.headers)).encode())

    async def refuse(request: Request, wire: asyncio.StreamWriter) -> None:
        await send(wire, 403, request.headers["authorization"].encode())

    stub.answers = [echo, refuse]

    echoed, refused = await call(body=1), await call(body=1)

    assert stub.asked[0].headers["authorization"] == "Bearer configured-token"
    assert '"authorization": "…"' in echoed["result"]["body"]
    assert refused["error"] == "127.0.0.1 answered 403: …"


async def test_configured_headers_are_seen_in_no_other_spelling(ctx: Context, stub: Stub):
    value = "Basic " + base64.b64encode(b'someone:pa/ss"word').decode()
    places = ctx.settings.calls.places if ctx.settings.calls else ()
    keys = ctx.settings.calls.keys if ctx.settings.calls else ()
    given = Calls(places=places, keys=keys, headers=tuple((place, {"authorization": value}) for place in places))
    service = dataclasses.replace(ctx.service, settings=dataclasses.replace(ctx.settings, calls=given))
    spelt = [
        "someone",
        'pa/ss"word',
        r"pa\/ss\"word",
        r"pa\u002fss\u0022word",
        "pa%2fss%22word",
        value.replace("=", r"\u003D"),
    ]
    stub.will(200, " | ".join(spelt).encode())
    job = dataclasses.replace(JOB, payload={"url": stub.url})

    row = await ended(dataclasses.replace(ctx, service=service).of(job))

    assert row["result"]["body"] == "… | … | … | … | … | …"


async def test_a_long_answer_is_an_excerpt(call: Call, stub: Stub):
    stub.will(200, "ไ".encode() * 5000)

    row = await call(body=1)

    assert row["result"]["status"] == 200
    assert row["result"]["body"].endswith("…")


async def test_what_is_no_text_is_not_kept(call: Call, stub: Stub):
    stub.will(200, b"\x89PNG\x00\x00")
    stub.will(200, b"\x1f\x8b\x08", Content_Encoding="gzip")
    stub.will(200, "นี่".encode("cp874"), Content_Type="text/plain; charset=windows-874")
    stub.will(200, b"caf\xe9", Content_Type="text/plain; charset=no-such-thing")

    rows = [await call(body=1) for _ in range(4)]

    assert [row["result"]["body"] for row in rows] == ["", "", "นี่", "café"]


async def test_a_body_without_end_is_cut(call: Call, stub: Stub):
    sent = 0

    async def endless(_: Request, wire: asyncio.StreamWriter) -> None:
        nonlocal sent
        wire.write(head(200, {"Connection": "close"}))
        while True:
            wire.write(b"x" * 10_000)
            await wire.drain()
            sent += 1

    stub.answers = [endless]

    row = await call(body=1)

    assert row["status"] == "done"
    assert row["result"]["body"].startswith("xxx")


async def test_a_body_that_trickles_is_not_waited_for(call: Call, stub: Stub, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(client, "ANSWER_SECONDS", 0.05)

    async def trickle(_: Request, wire: asyncio.StreamWriter) -> None:
        wire.write(head(200, {"Content-Length": "1000"}) + b"beginning")
        await wire.drain()
        await for_ever()

    stub.answers = [trickle]

    row = await call(body=1)

    assert (row["status"], row["result"]) == ("done", {"status": 200, "body": "beginning"})


async def test_an_answer_that_does_not_come_is_not_waited_for(call: Call, stub: Stub):
    async def silence(_: Request, wire: asyncio.StreamWriter) -> None:
        await for_ever()

    async def half(_: Request, wire: asyncio.StreamWriter) -> None:
        wire.write(b"HTTP/1.1 200 OK\r\nX-")
        await wire.drain()
        await for_ever()

    stub.answers = [silence, half]

    for _ in range(2):
        row = await call(body=1, timeout_seconds=0.05)
        assert (row["status"], row["error"]) == ("pending", "127.0.0.1 did not answer within 0.05 s")


async def test_whoever_hangs_up_is_called_again(call: Call, stub: Stub):
    async def hang_up(_: Request, wire: asyncio.StreamWriter) -> None:
        wire.transport.abort()

    stub.answers = [hang_up]

    row = await call(body=1)

    assert row["status"] == "pending"
    assert row["error"].startswith("127.0.0.1 did not answer (")


async def test_what_is_no_http_is_tried_again(call: Call, stub: Stub):
    async def noise(_: Request, wire: asyncio.StreamWriter) -> None:
        wire.write(b"SSH-2.0-OpenSSH_9.9\r\n")
        await wire.drain()

    stub.answers = [noise]

    assert (await call(body=1))["status"] == "pending"


# ------------------------------------------------------------------------------------------------------ where it leads


async def test_a_public_host_on_the_list_is_called_at_its_public_address(call: Call, stub: Stub, internet: Internet):
    row = await call(url="https://api.example.com/v1", body=1)

    assert row["status"] == "done"
    assert internet.connected == ["93.184.216.34"]
    assert stub.asked[0].headers["host"] == "api.example.com"


@pytest.mark.parametrize(
    ("url", "told"),
    [
        ("https://evil.example/", "url: evil.example is none of the hosts in [call_url] hosts; write it there"),
        ("https://api.example.com:8443/", "url: api.example.com is none of the hosts"),
        ("http://api.example.com/", "url: must begin with https://; only a host in [call_url] private_hosts is called"),
        ("https://example.org/", "url: example.org is none of the hosts"),
        ("https://127.0.0.1/", "url: 127.0.0.1 is none of the hosts"),
        ("https://2130706433/", "url: 2130706433 is none of the hosts"),
        ("https://[::1]/", "url: ::1 is none of the hosts"),
        ("https://api.example.com.evil.example/", "url: api.example.com.evil.example is none of the hosts"),
        ("https://api.example.com\\@evil.example/", "url"),
    ],
)
async def test_what_is_not_on_the_list_is_not_called(call: Call, stub: Stub, internet: Internet, url: str, told: str):
    row = await call(url=url, body=1)

    assert row["status"] == "failed"
    assert told in row["error"]
    assert (stub.asked, internet.connected) == ([], [])


@pytest.mark.parametrize("inside", ["127.0.0.1", "10.0.0.1", "169.254.169.254", "::1", "::ffff:127.0.0.1"])
async def test_a_listed_name_that_leads_inside_is_refused(call: Call, stub: Stub, internet: Internet, inside: str):
    internet._names["api.example.com"] = [[inside]]

    row = await call(url="https://api.example.com/", body=1)

    assert row["status"] == "failed"
    assert row["error"] == "api.example.com is at a private address, and private addresses are not allowed here"
    assert (stub.asked, internet.connected) == ([], [])


async def test_a_name_that_is_public_first_and_private_then_is_refused(call: Call, stub: Stub, internet: Internet):
    internet._names["api.example.com"] = [["93.184.216.34"], ["127.0.0.1"]]
    stub.will(307, Location="/again", Connection="close")

    row = await call(url="https://api.example.com/", body=1)

    assert row["status"] == "failed"
    assert "is at a private address" in row["error"]
    assert internet.connected == ["93.184.216.34"]


@pytest.mark.parametrize("status", [307, 308])
async def test_a_redirect_within_the_list_is_followed_with_method_and_body(
    call: Call, stub: Stub, internet: Internet, status: int
):
    stub.will(status, Location="https://other.example.org/there")

    row = await call(url="https://api.example.com/", body={"a": 1}, headers={"X-More": "mine"})

    first, second = stub.asked
    assert row["status"] == "done"
    assert (second.method, second.path, second.body) == ("POST", "/there", b'{"a":1}')
    assert second.headers["host"] == "other.example.org"
    assert (first.headers["x-more"], first.headers["authorization"]) == ("mine", "Bearer configured-token")
    assert "x-more" not in second.headers, "another host is not told of the job's own headers"
    assert "authorization" not in second.headers, "nor of what is configured for the first"
    assert second.headers["webhook-id"] == first.headers["webhook-id"]
    assert second.headers["content-type"] == "application/json"


async def test_a_redirect_on_the_same_host_keeps_all_headers(call: Call, stub: Stub):
    stub.will(307, Location="/there")

    await call(body=1, headers={"X-More": "mine"})

    assert [request.headers["x-more"] for request in stub.asked] == ["mine", "mine"]


@pytest.mark.parametrize(
    "location",
    [
        *("https://evil.example/", "http://127.0.0.1/", "http://api.example.com/", "https://169.254.169.254/"),
        *("http://localhost/", "file:///etc/passwd", "//evil.example/", "https://api.example.com@evil.example/"),
    ],
)
async def test_a_redirect_elsewhere_is_refused(call: Call, stub: Stub, internet: Internet, location: str):
    stub.will(307, Location=location)

    row = await call(url="https://api.example.com/", body=1)

    assert row["status"] == "failed"
    assert "which is none of the hosts in [call_url] hosts" in row["error"]
    assert len(stub.asked) == 1


async def test_a_redirect_to_an_address_that_cannot_be_read_is_refused(call: Call, stub: Stub):
    stub.will(307, Location="https://[::1/")

    row = await call(body=1)

    assert row["status"] in {"failed", "pending"}
    assert len(stub.asked) == 1


async def test_redirects_have_an_end(call: Call, stub: Stub):
    for number in range(9):
        stub.will(307, Location=f"/{number}")

    row = await call(body=1)

    assert (row["status"], row["error"]) == ("failed", "127.0.0.1: more than 5 redirects in a row")
    assert len(stub.asked) == 6


@pytest.mark.parametrize("status", [301, 302, 303])
async def test_a_redirect_that_would_make_a_post_a_get_is_not_followed(call: Call, stub: Stub, status: int):
    stub.will(status, Location="/login")

    row = await call(body=1)

    assert row["status"] == "failed"
    assert row["error"] == f"127.0.0.1 answered {status}: write into url where it leads to"
    assert len(stub.asked) == 1


@pytest.mark.parametrize(
    "location", ["/other", "http://elsewhere.example/", "http://[::1", "https://xn--0.example.com/"]
)
async def test_a_redirect_that_was_hoped_for_is_the_answer(call: Call, stub: Stub, location: str):
    stub.will(307, Location=location)

    row = await call(method="GET", success=["300-308"])

    assert (row["status"], row["result"]["status"], len(stub.asked)) == ("done", 307, 1)


@pytest.mark.parametrize(
    "location",
    ["http://[::1", "https://a:99999/", "https://xn--0.example.com/", "https://", "//xn--zzzzzzz99999.example.org/x"],
)
async def test_a_redirect_that_cannot_be_followed_is_given_up(call: Call, stub: Stub, location: str):
    stub.will(307, Location=location)

    row = await call(body=1)

    assert row["status"] == "failed", row
    assert len(stub.asked) == 1


async def test_a_get_is_redirected_by_all_of_them(call: Call, stub: Stub):
    for status in (301, 302, 303):
        stub.will(status, Location=f"/{status}")

    row = await call(method="GET")

    assert row["status"] == "done"
    assert [request.path for request in stub.asked] == ["/in?key=hidden", "/301", "/302", "/303"]


# ------------------------------------------------------------------------------------------------------- what is asked


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"url": "ftp://a/"}, "must be an address"),
        ({"url": "https://"}, "must be an address"),
        ({"url": "https://a b/\n"}, "must be an address"),
        ({"url": "https://user:word@a/"}, "must hold no user name and password"),
        ({"url": "https://a/" + "x" * 2000}, "at most 2000 characters"),
        ({"method": "TRACE"}, "Input should be 'GET'"),
        ({"method": "GET", "body": 1}, "a GET has none; remove it"),
        ({"headers": {"Authorization": "Bearer hidden"}}, "write it into [call_url.headers]"),
        ({"headers": {"X-API-Key": "hidden"}}, "write it into [call_url.headers]"),
        ({"headers": {"Webhook-Id": "hidden"}}, "is set by the call itself; remove it"),
        ({"headers": {"Host": "hidden"}}, "is set by the call itself; remove it"),
        ({"headers": {"A": "b", "a": "c"}}, "a header stands there twice"),
        ({"headers": {"A b": "c"}}, "should match pattern"),
        ({"headers": {"A": "b\r\nC: d"}}, "should match pattern"),
        ({"headers": {"A": "ไทย"}}, "should match pattern"),
        ({"timeout_seconds": 0}, "greater than 0"),
        ({"timeout_seconds": True}, "must be a number of seconds"),
        ({"url": "https://xn--0/"}, "must be an address, such as"),
        ({"headers": {"Api-Key": "hidden"}}, "write it into [call_url.headers]"),
        ({"headers": {"X-Access-Token": "hidden"}}, "write it into [call_url.headers]"),
        ({"headers": {"Private-Token": "hidden"}}, "write it into [call_url.headers]"),
        ({"headers": {"Cookie2": "hidden"}}, "write it into [call_url.headers]"),
        ({"timeout_seconds": 20}, "less than or equal to 19.5"),
        ({"success": []}, "at least 1 item"),
        ({"success": ["2xx"]}, "must be a status such as 204"),
        ({"success": [99]}, "must be a status such as 204"),
        ({"success": [100]}, "must be a status such as 204"),
        ({"success": ["100-199"]}, "must be a status such as 204"),
        ({"success": ["299-200"]}, "must be a range from the lower status to the higher one"),
        ({"success": [[200, 299]]}, "must be a status such as 204"),
        ({"success": [True]}, "must be a status such as 204"),
        ({"colour": "red"}, "Extra inputs are not permitted"),
    ],
)
def test_what_cannot_be_called_is_told(change: dict[str, Any], told: str):
    with pytest.raises(ValidationError) as caught:
        call_url.Payload.model_validate({"url": "https://api.example.com/", **change})

    assert told in str(caught.value)
    assert "hidden" not in str(caught.value)


def test_blanks_at_the_ends_of_a_header_are_no_part_of_it():
    payload = call_url.Payload.model_validate({"url": "https://api.example.com/", "headers": {"A": " b c\t"}})

    assert payload.headers == {"A": "b c"}


async def test_without_a_section_a_job_says_what_to_write(ctx: Context):
    bare = dataclasses.replace(ctx.service, settings=dataclasses.replace(ctx.settings, calls=None), handlers={})

    row = await ended(dataclasses.replace(ctx, service=bare).of(JOB))
    spared = handlers.all_types({})["call_url"].module
    with pytest.raises(PermanentFailure, match=r"\[call_url\] with hosts"):
        await spared.handle(spared.Payload.model_validate(JOB.payload), ctx)

    assert row["status"] == "failed"
    assert "[call_url] with hosts" in row["error"]


def test_it_is_a_users_type_whether_or_not_it_is_switched_on(ctx: Context):
    on, off = handlers.all_types(ctx.service.handlers)["call_url"], handlers.all_types({})["call_url"]

    assert (on.own, off.own) == (False, False)
    assert (on.timeout, off.timeout) == (timedelta(seconds=20), timedelta(seconds=1))
    assert "call_url" not in handlers.own()


def test_its_time_fits_into_the_budget(tmp_path: Path):
    text = f'[tick]\nbudget_seconds = 5\n[call_url]\nhosts = ["a.example"]\nsecret = "{SECRET}"\n'
    service = a_service(NOWHERE, tmp_path, text)

    assert service.handlers["call_url"].timeout == timedelta(seconds=5)
