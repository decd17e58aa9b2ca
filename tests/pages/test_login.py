from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from http.cookies import SimpleCookie
from pathlib import Path

import httpx
import pytest

from app.pages import asking, login
from tests.api.doors import API_TOKEN, NOWHERE
from tests.pages.visits import logged_in, page_service, visiting


@pytest.fixture
async def client(tmp_path: Path) -> AsyncIterator[httpx.AsyncClient]:
    async with visiting(page_service(tmp_path, NOWHERE)) as client:
        yield client


async def test_a_stranger_is_shown_the_form_without_a_look_at_the_database(client: httpx.AsyncClient):
    answer = await client.get("/")
    head = await client.head("/")

    assert (answer.status_code, head.status_code) == (200, 200)
    assert 'type="password"' in answer.text
    assert answer.headers["cache-control"] == "no-store"
    assert answer.headers["content-security-policy"].startswith(
        "default-src 'none'; style-src 'self'; script-src 'self'"
    )
    assert "frame-ancestors 'none'" in answer.headers["content-security-policy"]
    assert (answer.headers["referrer-policy"], answer.headers["x-content-type-options"]) == ("no-referrer", "nosniff")


async def test_without_a_token_nobody_is_let_in_and_told_why(tmp_path: Path):
    async with visiting(page_service(tmp_path, NOWHERE, API_TOKEN="")) as client:
        answer = await client.get("/")
        refused = await client.post("/login", data={"token": ""})

    assert (answer.status_code, refused.status_code) == (503, 503)
    assert "API_TOKEN is not set: set it where this service runs" in answer.text
    assert "set-cookie" not in refused.headers


async def test_the_cookie_is_kept_from_scripts_and_other_sites(client: httpx.AsyncClient):
    answer = await client.post("/login", data={"token": f" {API_TOKEN}\r\n"})

    assert (answer.status_code, answer.headers["location"]) == (303, "/?in=1")
    [morsel] = SimpleCookie(answer.headers["set-cookie"]).values()
    assert (morsel.key, morsel["httponly"], morsel["samesite"], morsel["path"]) == ("wakebell", True, "strict", "/")
    assert (morsel["max-age"], morsel["domain"], morsel["secure"]) == (str(12 * 3600), "", "")
    assert API_TOKEN not in morsel.value


@pytest.mark.parametrize(
    ("address", "headers"),
    [
        ("https://bell.example", {}),
        ("http://bell.example", {}),
        ("http://10.0.0.7:8080", {}),
        ("http://localhost", {"X-Forwarded-Proto": "https"}),
        ("http://localhost", {"X-Forwarded-For": "203.0.113.9"}),
    ],
)
async def test_elsewhere_than_on_this_machine_the_cookie_is_for_https_alone(
    tmp_path: Path, address: str, headers: dict[str, str]
):
    async with visiting(page_service(tmp_path, NOWHERE), address) as client:
        answer = await client.post("/login", data={"token": API_TOKEN}, headers=headers)

    [morsel] = SimpleCookie(answer.headers["set-cookie"]).values()
    assert (morsel.key, morsel["secure"], morsel["path"], morsel["domain"]) == ("__Host-wakebell", True, "/", "")


async def test_a_browser_that_did_not_keep_the_cookie_is_told_why(client: httpx.AsyncClient):
    assert "Over plain http it does so on localhost only" in (await client.get("/?in=1")).text


async def test_a_wrong_word_costs_time_and_is_logged_without_it(
    client: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    waited: list[float] = []

    async def wait(seconds: float) -> None:
        waited.append(seconds)

    monkeypatch.setattr(asyncio, "sleep", wait)
    with caplog.at_level(logging.INFO):
        for given in ("a-wrong-word", "", API_TOKEN[:-1], "ก", f"{API_TOKEN} x"):
            answer = await client.post("/login", data={"token": given})
            assert answer.status_code == 401
            assert "That is not the token" in answer.text
            assert "set-cookie" not in answer.headers

    assert waited == [1.0] * 5
    assert [record.message for record in caplog.records if record.name == login.__name__] == ["login failed"] * 5
    assert "a-wrong-word" not in str([vars(record) for record in caplog.records])


async def test_a_token_of_any_bytes_is_a_password(tmp_path: Path):
    token = "ประตู-ประตู-ประตู-ประตู"
    async with visiting(page_service(tmp_path, NOWHERE, API_TOKEN=token)) as client:
        answer = await client.post("/login", data={"token": token})

    assert answer.status_code == 303


async def test_a_login_leads_to_the_page_that_was_asked_for_and_to_no_other_site(client: httpx.AsyncClient):
    sent = await client.get("/jobs/17")
    assert (sent.status_code, sent.headers["location"]) == (303, "/?to=/jobs/17")
    assert 'value="/jobs/17"' in (await client.get("/?to=/jobs/17")).text

    for to, place in (
        ("/jobs/17", "/jobs/17"),
        ("//evil.example", "/"),
        ("https://evil.example", "/"),
        ("/login", "/"),
    ):
        answer = await client.post("/login", data={"token": API_TOKEN, "to": to})
        assert answer.headers["location"] == f"{place}?in=1"
        client.cookies.clear()


async def test_who_follows_a_link_from_another_site_is_not_asked_again(client: httpx.AsyncClient):
    """The browser keeps the cookie back once; our own page asks again."""
    answer = await client.get("/jobs/17", headers={"Sec-Fetch-Site": "cross-site"})

    assert answer.status_code == 200
    assert '<meta http-equiv="refresh" content="0; url=/jobs/17">' in answer.text


@pytest.mark.parametrize(
    "headers",
    [
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
        {"Origin": "https://evil.example"},
        {"Origin": "https://localhost.evil.example"},
        {"Origin": "http://[::1"},
    ],
)
async def test_a_login_from_another_site_is_refused(client: httpx.AsyncClient, headers: dict[str, str]):
    answer = await client.post("/login", data={"token": API_TOKEN}, headers=headers)

    assert answer.status_code == 403
    assert "set-cookie" not in answer.headers


@pytest.mark.parametrize(
    ("request_", "status"),
    [
        ({"content": b"token=" + b"x" * 20_000, "headers": {"Content-Type": asking.FORM}}, 413),
        ({"data": {f"field{n}": "" for n in range(30)}}, 400),
        ({"json": {"token": API_TOKEN}}, 415),
        ({"files": {"token": b"x"}}, 415),
    ],
)
async def test_what_is_no_form_of_ours_is_refused(client: httpx.AsyncClient, request_: dict[str, object], status: int):
    answer = await client.post("/login", **request_)  # type: ignore[arg-type]

    assert answer.status_code == status
    assert answer.headers["content-type"].startswith("text/html")


async def test_logging_out_takes_the_cookie_away(tmp_path: Path, database_url: str):
    async with logged_in(page_service(tmp_path, database_url)) as client:
        refused = await client.post("/logout", data={})
        page = (await client.get("/schedules")).text
        token = page.split('name="csrf" value="')[1][:64]
        answer = await client.post("/logout", data={"csrf": token})
        after = await client.get("/jobs")

    assert refused.status_code == 403
    assert answer.headers["location"] == "/?done=out"
    assert 'wakebell=""; expires=' in answer.headers["set-cookie"]
    assert after.status_code == 303


async def test_a_login_of_one_replica_is_known_to_the_other(tmp_path: Path, database_url: str):
    async with logged_in(page_service(tmp_path, database_url)) as one:
        async with visiting(page_service(tmp_path, database_url)) as other:
            other.cookies = one.cookies
            assert (await other.get("/jobs")).status_code == 200
        changed = page_service(tmp_path, database_url, API_TOKEN="another-token-of-thirty-letters")
        async with visiting(changed) as third:
            third.cookies = one.cookies
            assert (await third.get("/jobs")).status_code == 303


@pytest.mark.parametrize(
    "headers",
    [
        {"Sec-Fetch-Site": "same-origin", "Origin": "null"},
        {"Sec-Fetch-Site": "none"},
        {"Origin": "http://localhost:8080"},
        {"Origin": "http://localhost"},
        {"Origin": "https://bell.example"},
    ],
)
async def test_a_login_from_its_own_page_is_taken_also_behind_a_proxy(tmp_path: Path, headers: dict[str, str]):
    async with visiting(page_service(tmp_path, NOWHERE, PUBLIC_URL="https://bell.example")) as client:
        answer = await client.post("/login", data={"token": API_TOKEN}, headers=headers)

    assert answer.status_code == 303
