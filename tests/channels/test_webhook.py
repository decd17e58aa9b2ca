from __future__ import annotations

import base64
import json
from datetime import UTC, datetime, timedelta
from uuid import UUID

import httpx
import pytest
from pydantic import ValidationError
from standardwebhooks import Webhook, WebhookVerificationError

from app.channels import webhook
from app.domain.errors import Failure, PermanentFailure, TemporaryFailure
from app.domain.messages import Digest, DigestItem, Message, Receipt

SECRET = "whsec_" + base64.b64encode(bytes(range(32))).decode()
URL = "https://hooks.test/in?key=hidden"
OPTIONS = webhook.Options.model_validate({"url": URL, "secret": SECRET})
KEY = UUID("5f1a2b3c-0000-4000-8000-000000000001")


def message(body: str = '{"type":"items.new"}') -> Message:
    return Message(
        id=1,
        recipient="me",
        channel="hook",
        body=body,
        retry_key=KEY,
        first_tried_at=datetime(2026, 11, 30, tzinfo=UTC),
    )


def item(title: str = "Dev", link: str | None = "https://e.test/1", subscriptions: tuple[str, ...] = ("python",)):
    return DigestItem(title=title, link=link, source="board", subscriptions=subscriptions)


async def sent(body: str) -> tuple[httpx.Request, Receipt]:
    requests: list[httpx.Request] = []

    def answer(request: httpx.Request) -> httpx.Response:
        requests.append(request)
        return httpx.Response(204)

    async with httpx.AsyncClient(transport=httpx.MockTransport(answer)) as http:
        receipt = await webhook.send(message(body), OPTIONS, http)
    return requests[0], receipt


async def failure(status: int, **answer) -> Failure:
    transport = httpx.MockTransport(lambda request: httpx.Response(status, **answer))
    async with httpx.AsyncClient(transport=transport) as http:
        with pytest.raises(Failure) as caught:
            await webhook.send(message(), OPTIONS, http)
    return caught.value


def test_an_event_holds_the_facts_of_the_items():
    (body,) = webhook.compose(Digest(items=(item("  งาน \u202e1"), item("Two", None, ("a", "b"))), to=""), OPTIONS)

    assert json.loads(body.body) == {
        "type": "items.new",
        "data": {
            "items": [
                {"title": "งาน 1", "link": "https://e.test/1", "source": "board", "subscriptions": ["python"]},
                {"title": "Two", "link": None, "source": "board", "subscriptions": ["a", "b"]},
            ]
        },
    }
    assert body.text.startswith("2 new items")


def test_a_body_is_counted_in_bytes():
    [body] = webhook.compose(Digest(items=(item("งาน"),), to=""), OPTIONS)

    [part] = body.parts
    assert (part.text, part.length, part.limit) == (body.body, len(body.body.encode()), 20_000)


@pytest.mark.parametrize("title", ["x", "ที่" * 300, "😀" * 300, '"\\' * 150, "\ud800" * 250])
def test_bodies_stay_below_20_kb_and_keep_every_item_in_order(title):
    items = tuple(item(f"{number} {title}") for number in range(400))

    bodies = webhook.compose(Digest(items=items, to=""), OPTIONS)

    told = [fact["title"] for body in bodies for fact in json.loads(body.body)["data"]["items"]]
    assert [int(title.split()[0]) for title in told] == list(range(400))
    assert all(len(body.body.encode()) <= 20_000 for body in bodies)
    assert all(len(body.body.encode()) > 15_000 for body in bodies[:-1])


def test_what_fills_a_body_alone_is_left_out():
    long_link = item(link="https://e.test/" + "x" * 30_000)
    long_names = item(link="https://e.test/" + "x" * 30_000, subscriptions=("x" * 100,) * 300)

    bodies = webhook.compose(Digest(items=(long_link, long_names), to=""), OPTIONS)

    facts = [fact for body in bodies for fact in json.loads(body.body)["data"]["items"]]
    assert [(fact["link"], len(fact["subscriptions"])) for fact in facts] == [(None, 1), (None, 0)]
    assert all(len(body.body.encode()) <= 20_000 for body in bodies)


async def test_the_frozen_bytes_verify_with_the_reference_library():
    request, receipt = await sent('{"type":"items.new","data":{"items":["ที่"]}}')

    assert Webhook(SECRET).verify(request.content, dict(request.headers)) == json.loads(request.content)
    assert str(request.url) == URL
    assert request.headers["webhook-id"] == f"msg_{KEY}" == receipt.provider_id
    assert request.headers["content-type"] == "application/json"


async def test_other_bytes_do_not_verify():
    request, _ = await sent("{}")

    with pytest.raises(WebhookVerificationError):
        Webhook(SECRET).verify(b"{ }", dict(request.headers))


async def test_a_repeat_has_the_same_id():
    first, _ = await sent("{}")
    second, _ = await sent("{}")

    assert first.headers["webhook-id"] == second.headers["webhook-id"]
    assert first.content == second.content


@pytest.mark.parametrize("status", [429, 502, 503, 504])
async def test_a_receiver_that_asks_for_time_gets_it(status):
    told = await failure(status, headers={"Retry-After": "30"})

    assert isinstance(told, TemporaryFailure)
    assert told.retry_after == timedelta(seconds=30)


@pytest.mark.parametrize(
    ("status", "words"),
    [
        (400, "answered 400"),
        (401, "the same secret"),
        (404, "check the channel's `url`"),
        (410, "said that it is gone"),
    ],
)
async def test_a_refusal_is_permanent_and_says_what_to_do(status, words):
    told = await failure(status)

    assert isinstance(told, PermanentFailure)
    assert words in str(told)
    assert "hidden" not in str(told)


async def test_a_redirect_is_not_followed():
    told = await failure(302, headers={"Location": "https://elsewhere.test/"})

    assert isinstance(told, PermanentFailure)
    assert "redirects are not followed" in str(told)


async def test_no_answer_is_temporary_and_hides_the_address():
    def silent(request: httpx.Request) -> httpx.Response:
        raise httpx.ConnectError("no route to https://hooks.test/in?key=hidden", request=request)

    async with httpx.AsyncClient(transport=httpx.MockTransport(silent)) as http:
        with pytest.raises(TemporaryFailure) as caught:
            await webhook.send(message(), OPTIONS, http)

    assert str(caught.value) == "hooks.test could not be reached (ConnectError)"


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"secret": "hunter2"}, "must be `whsec_` followed by base64"),
        ({"secret": "whsec_not base64!"}, "must be base64"),
        ({"secret": "whsec_" + base64.b64encode(b"x" * 23).decode()}, "holds 23 bytes and must hold 24 to 64"),
        ({"secret": "whsec_" + base64.b64encode(b"x" * 65).decode()}, "holds 65 bytes"),
        ({"url": "ftp://hooks.test/hidden"}, "URL scheme should be 'http' or 'https'"),
        ({"url": "https://notify-api.line.me/api/notify"}, "LINE Notify ended on 31 March 2025"),
        ({"method": "PUT"}, "Extra inputs"),
    ],
)
def test_wrong_options_are_refused_with_a_sentence(change, words):
    with pytest.raises(ValidationError) as caught:
        webhook.Options.model_validate({"url": URL, "secret": SECRET} | change)

    assert words in str(caught.value)
    assert "hunter2" not in str(caught.value)
    assert "hidden" not in str(caught.value)


def test_options_show_neither_the_address_nor_the_secret():
    shown = repr(OPTIONS)

    assert "hidden" not in shown
    assert SECRET not in shown
