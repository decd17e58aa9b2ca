from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import httpx
import pytest
from pydantic import ValidationError

from app.channels import ntfy
from app.domain.errors import (
    Blocked,
    Failure,
    PermanentFailure,
    RateLimited,
    TemporaryFailure,
    Unanswered,
)
from app.domain.messages import Digest, Receipt
from tests.channels.answers import KEY, MARKED, Provider, digest

SECRET = "tk_secret0123456789"
OPTIONS = ntfy.Options.model_validate({"token": SECRET, "base_url": "https://ntfy.test"})
BODY = ntfy.compose(digest("Dev", to="jobs"), OPTIONS)[0].body


def refused(status: int, code: int, error: str = "") -> httpx.Response:
    return httpx.Response(status, json={"code": code, "http": status, "error": error})


async def failure(*answers: httpx.Response | Exception) -> Failure:
    return await Provider(*answers).refuse(ntfy, OPTIONS, BODY, secret=SECRET)


def sent(given: Digest, options: Any = OPTIONS) -> list[dict[str, Any]]:
    return [json.loads(body.body) for body in ntfy.compose(given, options)]


async def test_the_frozen_bytes_are_posted_as_one_notification_at_every_try():
    provider = Provider(httpx.Response(200, json={"id": "xE73Iyuabi", "event": "message"}))

    for _ in range(2):
        assert await provider.take(ntfy, OPTIONS, BODY) == Receipt(provider_id="xE73Iyuabi")

    for request in provider.requests:
        assert (request.method, str(request.url)) == ("POST", "https://ntfy.test/")
        assert request.content == BODY.encode()
        assert request.headers["Authorization"] == f"Bearer {SECRET}"
        assert request.headers["X-Sequence-ID"] == str(KEY)


async def test_without_a_token_nobody_is_named():
    provider = Provider(httpx.Response(200, json={"id": 5}))

    assert await provider.take(ntfy, ntfy.Options(), BODY) == Receipt()
    assert str(provider.requests[0].url) == "https://ntfy.sh/"
    assert "Authorization" not in provider.requests[0].headers


def test_one_item_is_its_title_and_opens_its_link():
    [told] = sent(digest(MARKED, link="https://e.test/1", to="jobs"))

    assert told == {
        "topic": "jobs",
        "title": MARKED,
        "message": "https://e.test/1\nboard · python",
        "click": "https://e.test/1",
    }


def test_several_items_are_headed_by_their_number():
    options = ntfy.Options.model_validate({"priority": 4})
    [told] = sent(digest("One", "Two", link="https://e.test/1", to="jobs"), options)

    assert (told["title"], told["priority"]) == ("2 new items", 4)
    assert told["message"] == "One\nhttps://e.test/1\n\nTwo\nhttps://e.test/1\n\nboard · python"
    assert "click" not in told


def test_a_single_line_has_no_title():
    assert sent(Digest(note="All is well.", to="jobs")) == [{"topic": "jobs", "message": "All is well."}]


def test_a_first_line_that_is_too_long_for_a_title_stays_in_the_text():
    [told] = sent(digest("ที่" * 200, to="jobs"))

    assert "title" not in told
    assert told["message"].startswith("ที่")


def test_a_link_that_is_too_long_to_be_opened_stays_in_the_text():
    [told] = sent(digest("x", link="https://e.test/" + "y" * 1500, to="jobs"))

    assert "click" not in told
    assert "y" * 1500 in told["message"]


@pytest.mark.parametrize("character", ["😀", "👩‍👩‍👧", "ที่", "มြ", '"\\', "x"])
def test_messages_are_counted_in_bytes_and_whole_requests_too(character: str):
    bodies = ntfy.compose(digest(*[character * 40] * 200, link="https://e.test/1", to="jobs"), OPTIONS)

    for body in bodies:
        [part] = body.parts
        assert len(json.loads(body.body)["message"].encode()) <= 4096
        assert len(part.text.encode()) <= part.length <= (part.limit or 0) == 4096
        assert len(body.body.encode()) <= 2 * 4096
    assert all(body.parts[0].length > 3000 for body in bodies[:-1])
    assert "\n".join(body.text for body in bodies).count(character * 40) == 200


def test_3000_emoji_in_one_title_are_one_message():
    [told] = sent(digest("😀" * 3000, to="jobs"))

    assert told["message"].encode()


async def test_a_days_quota_is_waited_for_longer():
    told = await failure(refused(429, 42908, "limit reached: daily message quota reached"))

    assert isinstance(told, RateLimited)
    assert told.retry_after == timedelta(hours=1)
    assert "the day's messages to the ntfy server are used up" in str(told)


@pytest.mark.parametrize(
    ("answer", "wait"),
    [
        (refused(429, 42901, "limit reached: too many requests"), None),
        (httpx.Response(429, headers={"Retry-After": "9"}), timedelta(seconds=9)),
    ],
)
async def test_a_rate_limit_is_waited_out(answer: httpx.Response, wait: timedelta | None):
    told = await failure(answer)

    assert isinstance(told, RateLimited)
    assert told.retry_after == wait


async def test_a_topic_that_may_not_be_written_to_is_blocked():
    told = await failure(refused(403, 40301, "forbidden"))

    assert isinstance(told, Blocked)
    assert "choose another topic" in str(told)


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (refused(400, 40009, "invalid request: topic invalid"), "which must be a topic"),
        (refused(401, 40101, "unauthorized"), "make a new one in ntfy's account settings"),
        (refused(404, 40401, "page not found"), "check the channel's `base_url`"),
        (refused(413, 41301, "attachment too large"), "shorter messages"),
        (httpx.Response(301, headers={"Location": "https://elsewhere.test/"}), "redirects are not followed"),
    ],
)
async def test_any_other_refusal_is_permanent_for_this_message_alone(answer: httpx.Response, words: str):
    told = await failure(answer)

    assert isinstance(told, PermanentFailure)
    assert not isinstance(told, Blocked)
    assert words in str(told)


@pytest.mark.parametrize("status", [500, 502, 503, 504, 507])
async def test_a_fault_of_theirs_is_temporary(status: int):
    told = await failure(httpx.Response(status, text="oops"))

    assert isinstance(told, TemporaryFailure)
    assert not isinstance(told, Unanswered | RateLimited)


async def test_a_message_that_was_stored_and_not_answered_is_unanswered():
    told = await failure(httpx.ReadTimeout(SECRET))

    assert isinstance(told, Unanswered)
    assert str(told) == "ntfy.test did not answer (ReadTimeout)"


@pytest.mark.parametrize("to", ["jobs", "my-Jobs_2", "x" * 64])
def test_a_topic_may_be_right(to: str):
    assert ntfy.check_address(to) is None


@pytest.mark.parametrize("to", ["", "my jobs", "https://ntfy.sh/jobs", "งาน", "x" * 65, "a/b"])
def test_what_is_no_topic_is_told(to: str):
    told = ntfy.check_address(to)

    assert told is not None
    assert told.startswith("is no topic of ntfy; ")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"token": "hunter2"}, "it begins with tk_"),
        ({"priority": 6}, "less than or equal to 5"),
        ({"topic": "jobs"}, "Extra inputs"),
    ],
)
def test_wrong_options_are_refused_with_a_sentence(options: dict[str, Any], words: str):
    with pytest.raises(ValidationError) as caught:
        ntfy.Options.model_validate(options)

    assert words in str(caught.value)
    assert "hunter2" not in str(caught.value)
