"""What is told of channels that cannot be asked, of the heartbeat, and of models."""

from __future__ import annotations

import ssl
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

from app.clients import model_look
from app.doctor import channels, chats, rings
from app.domain.errors import Failure
from app.domain.findings import Finding, Status
from app.settings import Settings
from tests.fakes.secured import certificate, listening

WEBHOOK_SECRET = "whsec_eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHg="

Tls = tuple[ssl.SSLContext, Path]


@pytest.fixture(scope="module")
def tls(tmp_path_factory: pytest.TempPathFactory) -> Tls:
    return certificate(tmp_path_factory.mktemp("tls"))


def channel(url: str) -> str:
    return f"""
[channels.hook]
kind = "webhook"
url = "{url}"
secret = "{WEBHOOK_SECRET}"
[recipients.me]
channel = "hook"
"""


async def of_channels(settings: Settings) -> list[list[Finding]]:
    async with httpx.AsyncClient() as http:
        return [await look.work() for look in channels.looks(settings, http)]


async def test_a_receiver_is_found_and_told_nothing(
    configured: Callable[..., Settings], tls: Tls, monkeypatch: pytest.MonkeyPatch
):
    async with listening(tls=tls[0]) as (port, heard):
        settings = configured(channel(f"https://127.0.0.1:{port}/secret-path"))
        [[untrusted, _]] = await of_channels(settings)
        monkeypatch.setenv("SSL_CERT_FILE", str(tls[1]))
        [[met, untold]] = await of_channels(settings)

    assert heard == []
    assert (untrusted.status, untrusted.found) == ("fail", "127.0.0.1: its certificate is signed by itself")
    assert (met.name, met.status) == ("tls", "ok")
    assert untold.status == "skipped"
    assert untold.sentence == (
        "whether it takes messages cannot be told without sending one; `wakebell send-test me` sends one"
    )


async def test_a_receiver_without_tls_is_told(configured: Callable[..., Settings]):
    [[found, _]] = await of_channels(configured(channel("http://hooks.test/secret-path")))

    assert (found.status, found.change) == ("warn", "take an https address")
    assert "secret-path" not in found.sentence


async def test_a_channel_whose_place_nobody_knows_is_not_looked_for(configured: Callable[..., Settings]):
    pytest.importorskip("apprise", reason="needs the development packages")
    [[found]] = await of_channels(configured('[channels.any]\nkind = "apprise"\nurl = "json://h.test/x"\n'))

    assert (found.status, found.change) == ("skipped", "`wakebell send-test RECIPIENT` sends one")


async def test_the_inbox_is_nowhere(configured: Callable[..., Settings]):
    assert await of_channels(configured()) == []


# ----------------------------------------------------------------------------------------------------------- heartbeat


async def test_without_a_heartbeat_nobody_notices():
    [found] = await rings._switch(None)

    assert found.status == "warn"
    assert found.sentence.startswith("nobody notices when the rings stop; set HEARTBEAT_URL to a dead-man's switch")


async def test_a_heartbeat_is_found_and_not_told_of_anything(tls: Tls, monkeypatch: pytest.MonkeyPatch):
    async with listening() as (plain, heard):
        [by_http] = await rings._switch(f"http://127.0.0.1:{plain}/ping/the-uuid")
    async with listening(tls=tls[0]) as (port, heard_by_tls):
        [untrusted] = await rings._switch(f"https://127.0.0.1:{port}/ping/the-uuid")
        monkeypatch.setenv("SSL_CERT_FILE", str(tls[1]))
        [by_tls] = await rings._switch(f"https://127.0.0.1:{port}/ping/the-uuid")
    [gone] = await rings._switch(f"http://127.0.0.1:{plain}/ping/the-uuid")

    assert heard == heard_by_tls == []
    assert (by_http.status, by_tls.status, untrusted.status, gone.status) == ("ok", "ok", "fail", "fail")
    assert by_tls.found.endswith("; only a tick tells it anything")
    assert gone.found == "127.0.0.1: nobody listens there, so that nobody notices when the rings stop"
    assert gone.change.endswith(", and HEARTBEAT_URL")
    assert "the-uuid" not in repr([by_http, by_tls, untrusted, gone])


# -------------------------------------------------------------------------------------------------------------- models

MODELS = {"object": "list", "data": [{"id": "small"}, {"id": "large"}, "x"]}


@pytest.mark.parametrize(
    ("status", "told", "severity", "words"),
    [
        (200, MODELS, "ok", 'models.test has "small"'),
        (200, {"data": [{"id": "other"}]}, "warn", 'does not list "small"; unless it is another name of one, check'),
        (200, {"data": []}, "ok", "does not say which models it has"),
        (401, {"error": "key-of-the-model"}, "fail", "models.test answered 401; put a valid `token` into"),
        (403, {}, "fail", "models.test answered 403; the `token` of [chats.….model] may not do that"),
        (404, {}, "skipped", "it has no list, or is elsewhere; see that `url` ends before /chat/completions"),
        (429, {}, "warn", "it asks for fewer requests"),
        (503, {}, "warn", "it has trouble of its own"),
    ],
)
async def test_a_model_is_asked_for_in_its_list(status: int, told: dict[str, Any], severity: Status, words: str):
    requests: list[httpx.Request] = []

    def answer(request: httpx.Request) -> httpx.Response:
        requests.append(request)
        return httpx.Response(status, json=told)

    async with httpx.AsyncClient(transport=httpx.MockTransport(answer)) as http:
        [found] = await model_look.look(http, url="https://models.test/v1/", token="key-of-the-model", model="small")

    assert found.status == severity
    assert words in found.sentence
    assert "key-of-the-model" not in found.sentence
    [request] = requests
    assert (request.method, str(request.url)) == ("GET", "https://models.test/v1/models")
    assert request.headers["Authorization"] == "Bearer key-of-the-model"


async def test_a_chat_is_asked_about_and_so_is_its_model(configured: Callable[..., Settings]):
    settings = configured(
        '[chats.page]\nkind = "messenger"\nsecret = "s"\nverify_token = "v"\ntoken = "EAAtoken"\n'
        '[chats.page.model]\nurl = "http://models.test/v1"\nmodel = "small"\n'
    )

    def answer(request: httpx.Request) -> httpx.Response:
        assert "Authorization" not in request.headers or request.url.host == "graph.facebook.com"
        return httpx.Response(200, json=MODELS if request.url.host == "models.test" else {"data": []})

    async with httpx.AsyncClient(transport=httpx.MockTransport(answer)) as http:
        found = {look.name: await look.work() for look in chats.looks(settings, http)}

    assert [one.status for one in found["chat page"]] == ["ok", "fail"]
    assert [one.status for one in found["chat page model"]] == ["ok"]


async def test_a_model_that_is_not_there_is_a_failure_of_ours():
    async with httpx.AsyncClient() as http:
        with pytest.raises(Failure):
            await model_look.look(http, url="http://127.0.0.1:1/v1", token=None, model="small")
