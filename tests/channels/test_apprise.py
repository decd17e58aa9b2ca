from __future__ import annotations

import asyncio
import importlib.util
import json
import logging
import subprocess
import sys
import threading
from typing import Any

import httpx
import pytest
from pydantic import ValidationError

from app.channels import apprise
from app.domain.errors import PermanentFailure, TemporaryFailure, Unanswered
from app.domain.messages import Receipt
from tests.channels.answers import MARKED, digest, message
from tests.fakes.http_server import HttpServer, Request, for_ever, send

pytestmark = pytest.mark.filterwarnings("ignore:'imghdr' is deprecated")  # which one of its plug-ins imports

SECRET = "hidden-in-the-address"


class Service(HttpServer):
    """Answers with a status, or not at all."""

    def __init__(self, status: int | None = 200) -> None:
        super().__init__()
        self.status = status
        self.requests: list[Request] = []

    async def answer(self, request: Request, wire: asyncio.StreamWriter) -> None:
        self.requests.append(request)
        if self.status is None:
            await for_ever()
        else:
            await send(wire, self.status)

    @property
    def options(self) -> Any:
        return apprise.Options.model_validate({"url": f"{self.url.replace('http', 'json')}/{SECRET}"})


async def take(options: Any, body: str = "Dev") -> Receipt:
    async with httpx.AsyncClient() as http:
        return await apprise.send(message(body), options, http)


async def test_the_frozen_text_arrives_as_it_is():
    text = f"{MARKED}\n<b>&amp;</b> \\n ที่ 👩‍👩‍👧"
    async with Service() as service:
        assert await take(service.options, text) == Receipt()

    [request] = service.requests
    assert request.path == f"/{SECRET}"
    assert json.loads(request.body)["message"] == text


@pytest.mark.parametrize("status", [400, 401, 403, 404, 429, 500, 503])
async def test_every_refusal_is_one_for_now_since_no_reason_is_told(status: int):
    async with Service(status) as service:
        with pytest.raises(TemporaryFailure) as caught:
            await take(service.options)

    assert not isinstance(caught.value, Unanswered)
    assert "check the channel's `url`" in str(caught.value)
    assert SECRET not in str(caught.value)


async def test_a_service_that_cannot_be_reached_is_tried_again():
    async with Service() as service:
        options = service.options

    with pytest.raises(TemporaryFailure):
        await take(options)


async def test_what_does_not_answer_may_have_arrived(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(apprise, "TIMEOUT_SECONDS", 0)
    over = threading.Event()
    monkeypatch.setattr(apprise, "_notify", lambda *_: over.wait(60))

    with pytest.raises(Unanswered, match="did not say within 0 s"):
        await take(apprise.Options.model_validate({"url": "json://127.0.0.1:1"}))
    over.set()


async def test_a_service_that_apprise_does_not_know_is_told():
    with pytest.raises(PermanentFailure, match="does not know the service"):
        await take(apprise.Options.model_validate({"url": f"nosuch://{SECRET}"}))


async def test_nothing_is_logged_that_may_hold_the_address(caplog: pytest.LogCaptureFixture):
    with caplog.at_level(logging.DEBUG):
        async with Service(500) as service:
            with pytest.raises(TemporaryFailure):
                await take(service.options)

    assert SECRET not in caplog.text


def test_texts_are_cut_before_apprise_counts_them():
    bodies = apprise.compose(
        digest(*["😀" * 90] * 50), apprise.Options.model_validate({"url": "json://x.test", "limit": 400})
    )

    for body in bodies:
        assert body.body == body.text
        assert [(part.length, part.limit) for part in body.parts] == [(len(body.body.encode("utf-16-le")) // 2, 400)]
        assert body.parts[0].length <= 400
    assert "\n".join(body.text for body in bodies).count("😀" * 90) == 50


def test_without_the_package_the_settings_say_how_to_get_it(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)

    with pytest.raises(ValidationError, match=r'pip install "wakebell\[apprise\]"'):
        apprise.Options.model_validate({"url": "json://x.test"})


def test_the_library_is_imported_by_a_send_and_by_nothing_before():
    code = (
        "import sys; from app.channels import apprise; apprise.Options.model_validate({'url': 'json://x.test'}); "
        "print('apprise' in sys.modules)"
    )

    ran = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)

    assert ran.stdout.strip() == "False"


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({}, "Field required"),
        ({"url": SECRET}, "no address of Apprise"),
        ({"url": "json://x.test", "limit": 99}, "greater than or equal to 100"),
        ({"url": "json://x.test", "base_url": "https://x.test"}, "Extra inputs"),
    ],
)
def test_wrong_options_are_refused_with_a_sentence(options: dict[str, Any], words: str):
    with pytest.raises(ValidationError) as caught:
        apprise.Options.model_validate(options)

    assert words in str(caught.value)
    assert SECRET not in str(caught.value)
