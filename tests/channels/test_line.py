from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from uuid import UUID

import httpx
import pytest
from pydantic import ValidationError

from app.channels import line
from app.domain import textcut
from app.domain.errors import Blocked, Failure, PermanentFailure, QuotaSpent, RateLimited, TemporaryFailure
from app.domain.messages import Digest, DigestItem, Message, Receipt
from app.domain.quota import Allowance

OPTIONS = line.Options.model_validate({"token": "secret-token", "base_url": "https://line.test/"})
KEY = UUID("5f1a2b3c-0000-4000-8000-000000000001")
MESSAGE = Message(
    id=1,
    recipient="me",
    channel="line",
    body='{"to":"U1","messages":[{"type":"text","text":"ที่"}]}',
    retry_key=KEY,
    first_tried_at=datetime(2026, 11, 30, tzinfo=UTC),
)


def digest(*titles: str, link: str | None = None) -> Digest:
    items = tuple(DigestItem(title=title, link=link, source="board", subscriptions=("python",)) for title in titles)
    return Digest(items=items, to="U1")


def answering(status: int = 200, **answer) -> httpx.AsyncClient:
    return httpx.AsyncClient(transport=httpx.MockTransport(lambda request: httpx.Response(status, **answer)))


async def failure(status: int, **answer) -> Failure:
    async with answering(status, **answer) as http:
        with pytest.raises(Failure) as caught:
            await line.send(MESSAGE, OPTIONS, http)
    return caught.value


def test_each_text_is_counted_as_line_counts_it():
    [body] = line.compose(digest("😀" * 100, *(["x" * 300] * 20)), OPTIONS)

    texts = [text["text"] for text in json.loads(body.body)["messages"]]
    assert len(texts) == 2
    assert [(part.text, part.length, part.limit) for part in body.parts] == [
        (text, len(text.encode("utf-16-le")) // 2, 5000) for text in texts
    ]


async def test_line_is_asked_to_look_at_a_push_without_sending_it():
    requests: list[httpx.Request] = []

    def answer(request: httpx.Request) -> httpx.Response:
        requests.append(request)
        return httpx.Response(200, json={})

    async with httpx.AsyncClient(transport=httpx.MockTransport(answer)) as http:
        await line.validate(MESSAGE.body, OPTIONS, http)

    [request] = requests
    assert str(request.url) == "https://line.test/v2/bot/message/validate/push"
    assert request.headers["authorization"] == "Bearer secret-token"
    assert json.loads(request.content) == {"messages": [{"type": "text", "text": "ที่"}]}  # without its address


async def test_what_line_would_refuse_is_told_with_its_reason():
    async with answering(400, json={"message": "The request body has 1 error(s)"}) as http:
        with pytest.raises(PermanentFailure, match="400"):
            await line.validate(MESSAGE.body, OPTIONS, http)


async def test_the_frozen_bytes_are_pushed_under_the_retry_key():
    requests: list[httpx.Request] = []

    def answer(request: httpx.Request) -> httpx.Response:
        requests.append(request)
        return httpx.Response(200, headers={"x-line-request-id": "r-1"}, json={"sentMessages": [{"id": "1"}]})

    async with httpx.AsyncClient(transport=httpx.MockTransport(answer)) as http:
        receipt = await line.send(MESSAGE, OPTIONS, http)

    (request,) = requests
    assert receipt == Receipt(provider_id="r-1")
    assert (request.method, str(request.url)) == ("POST", "https://line.test/v2/bot/message/push")
    assert request.content == MESSAGE.body.encode()
    assert request.headers["X-Line-Retry-Key"] == str(KEY)
    assert request.headers["Authorization"] == "Bearer secret-token"
    assert request.headers["Content-Type"] == "application/json"


async def test_a_409_says_that_an_earlier_try_had_arrived():
    async with answering(409, headers={"x-line-accepted-request-id": "r-0"}, json={"message": "already"}) as http:
        receipt = await line.send(MESSAGE, OPTIONS, http)

    assert receipt == Receipt(provider_id="r-0", repeated=True)


@pytest.mark.parametrize("status", [200, 202])
async def test_a_success_without_json_is_a_success(status):
    async with answering(status, text="<html>") as http:
        assert await line.send(MESSAGE, OPTIONS, http) == Receipt()


async def test_the_monthly_limit_is_told_apart_and_waited_for():
    told = await failure(429, json={"message": "You have reached your monthly limit."})

    assert type(told) is QuotaSpent
    assert "month's messages of the LINE channel are used up" in str(told)


async def test_the_rate_limit_is_no_monthly_limit():
    told = await failure(429, json={"message": "The API rate limit has been exceeded. Try again later."})

    assert type(told) is RateLimited
    assert told.retry_after is None
    assert "month" not in str(told)


@pytest.mark.parametrize("status", [500, 502, 503, 504])
async def test_a_fault_of_theirs_is_temporary(status):
    assert isinstance(await failure(status), TemporaryFailure)


async def test_no_answer_is_temporary():
    def silent(request: httpx.Request) -> httpx.Response:
        raise httpx.ReadTimeout("", request=request)

    async with httpx.AsyncClient(transport=httpx.MockTransport(silent)) as http:
        with pytest.raises(TemporaryFailure, match=r"line\.test did not answer"):
            await line.send(MESSAGE, OPTIONS, http)


@pytest.mark.parametrize(
    ("status", "words"),
    [
        (400, "a user who is a friend of this bot"),
        (401, "issue a new one in the LINE Developers console"),
        (403, "may not send push messages"),
        (404, "check the channel's `base_url`"),
        (413, "answered 413"),
    ],
)
async def test_a_refusal_is_permanent_and_says_what_to_do(status, words):
    told = await failure(status, json={"message": "refused"})

    assert isinstance(told, PermanentFailure)
    assert words in str(told)
    assert "secret-token" not in str(told)


async def test_an_address_where_nobody_is_blocks_it():
    told = await failure(400, json={"message": "Failed to send messages"})

    assert type(told) is Blocked
    assert "a user who is a friend of this bot" in str(told)


def saying(answers: Mapping[str, object]) -> httpx.AsyncClient:
    """LINE, asked by GET, with the answer to each path; 404 else."""

    def answer(request: httpx.Request) -> httpx.Response:
        assert (request.method, request.headers["Authorization"]) == ("GET", "Bearer secret-token")
        told = answers.get(request.url.path.removeprefix("/v2/bot/"))
        return httpx.Response(404) if told is None else httpx.Response(200, json=told)

    return httpx.AsyncClient(transport=httpx.MockTransport(answer))


@pytest.mark.parametrize(
    ("quota", "own", "limit"),
    [
        ({"type": "limited", "value": 200}, None, 200),
        ({"type": "none"}, None, None),
        ({"type": "limited", "value": 200}, 50, 50),
        (None, 50, 50),
    ],
)
async def test_the_allowance_is_the_plans_or_ones_own(quota: object, own: int | None, limit: int | None):
    options = OPTIONS.model_copy(update={"monthly_limit": own})

    async with saying({"message/quota": quota, "message/quota/consumption": {"totalUsage": 7}}) as http:
        assert await line.allowance(options, http) == Allowance(limit=limit, used=7)


@pytest.mark.parametrize("told", [{"totalUsage": "7"}, {"totalUsage": True}, {"totalUsage": -1}, {}, []])
async def test_what_is_no_number_is_no_allowance(told: object):
    async with saying({"message/quota": {"type": "none"}, "message/quota/consumption": told}) as http:
        with pytest.raises(TemporaryFailure, match="totalUsage"):
            await line.allowance(OPTIONS, http)


@pytest.mark.parametrize(
    ("to", "members"), [("U" + "0" * 32, 1), ("C" + "1" * 32, 5), ("R" + "2" * 32, 3), ("somebody", 1)]
)
async def test_a_group_costs_its_members_and_a_user_is_not_asked_for(to: str, members: int):
    counts = {f"group/C{'1' * 32}/members/count": {"count": 5}, f"room/R{'2' * 32}/members/count": {"count": 3}}

    async with saying(counts) as http:
        assert await line.members(to, OPTIONS, http) == members


async def test_a_redirect_is_not_followed():
    told = await failure(307, headers={"Location": "https://elsewhere.test/"})

    assert isinstance(told, PermanentFailure)
    assert "check the channel's `base_url`" in str(told)


def test_a_digest_is_one_push():
    (body,) = line.compose(digest("Dev", "Cook", link="https://e.test/1"), OPTIONS)

    text = "2 new items\n\nDev\nhttps://e.test/1\n\nCook\nhttps://e.test/1\n\nboard · python"
    assert json.loads(body.body) == {"to": "U1", "messages": [{"type": "text", "text": text}]}
    assert body.text == text


@pytest.mark.parametrize("character", ["😀", "👩‍👩‍👧", "ที่", "မြန်မာ", '"\\'])
def test_texts_are_counted_in_utf16_units_and_five_make_a_push(character):
    bodies = line.compose(digest(*[character * 140] * 120), OPTIONS)

    pushes = [json.loads(body.body)["messages"] for body in bodies]
    texts = [message["text"] for messages in pushes for message in messages]
    assert all(0 < textcut.utf16_units(text) <= 5000 for text in texts)
    assert all(len(messages) == 5 for messages in pushes[:-1])
    assert 1 <= len(pushes[-1]) <= 5
    assert all(len(body.body.encode()) < 2_000_000 for body in bodies)
    assert "\n\n".join(texts).count(character * 140) == 120


def test_the_month_is_spared_by_full_texts():
    bodies = line.compose(digest(*["x" * 98] * 240), OPTIONS)

    assert len(bodies) == 1


def test_the_address_of_the_api_is_lines_own():
    assert str(line.Options.model_validate({"token": "t"}).base_url) == "https://api.line.me/"


def test_white_space_round_a_token_is_dropped():
    assert line.Options.model_validate({"token": " abc\n"}).token.get_secret_value() == "abc"


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({}, "Field required"),
        ({"token": "t", "tokn": "t"}, "Extra inputs"),
        ({"token": "  "}, "is empty"),
        ({"token": "a b"}, "copy it again"),
        ({"token": "กข"}, "copy it again"),
        ({"token": "a1" * 21 + "a"}, "LINE Notify, which ended on 31 March 2025"),
        ({"token": "t", "base_url": "https://notify-api.line.me/api/notify"}, "LINE Notify ended"),
        ({"token": "t", "base_url": "ftp://line.test"}, "URL scheme should be"),
    ],
)
def test_wrong_options_are_refused_with_a_sentence(options, words):
    with pytest.raises(ValidationError) as caught:
        line.Options.model_validate(options)

    assert words in str(caught.value)
    assert "a1a1" not in str(caught.value)


@pytest.mark.parametrize("to", ["U4af4980629a0b1c2d3e4f5a6b7c8d9e0", "C" + "0" * 32, "R" + "f" * 32])
def test_an_id_may_be_right(to: str):
    assert line.check_address(to) is None


@pytest.mark.parametrize("to", ["U...", "@me", "U4af4980629", "X" + "0" * 32, "U" + "g" * 32, "U" + "0" * 33, "me"])
def test_what_is_no_id_is_told(to: str):
    told = line.check_address(to)

    assert told is not None
    assert told.startswith("is no id of LINE")
