from __future__ import annotations

import html
import json
from datetime import timedelta
from typing import Any

import httpx
import pytest
from pydantic import ValidationError

from app.channels import telegram
from app.domain.errors import Blocked, Failure, Moved, PermanentFailure, RateLimited, TemporaryFailure, Unanswered
from app.domain.messages import Receipt
from tests.channels.answers import MARKED, Provider, digest

SECRET = "A" * 20 + "secret" + "B" * 9
TOKEN = f"123456789:{SECRET}"
OPTIONS = telegram.Options.model_validate({"token": TOKEN, "base_url": "https://telegram.test/"})
BODY = telegram.compose(digest("a < b & c", to="42"), OPTIONS)[0].body
TAKEN = {"ok": True, "result": {"message_id": 77}}


def refused(status: int, description: str, **parameters: Any) -> httpx.Response:
    answer: dict[str, Any] = {"ok": False, "error_code": status, "description": description}
    return httpx.Response(status, json=answer | ({"parameters": parameters} if parameters else {}))


async def failure(*answers: httpx.Response | Exception) -> Failure:
    return await Provider(*answers).refuse(telegram, OPTIONS, BODY, secret=SECRET)


def texts(*titles: str) -> list[str]:
    return [json.loads(body.body)["text"] for body in telegram.compose(digest(*titles, to="42"), OPTIONS)]


async def test_the_frozen_bytes_are_posted_to_the_bots_own_address():
    provider = Provider(httpx.Response(200, json=TAKEN))

    assert await provider.take(telegram, OPTIONS, BODY) == Receipt(provider_id="77")

    [request] = provider.requests
    assert (request.method, str(request.url)) == ("POST", f"https://telegram.test/bot{TOKEN}/sendMessage")
    assert request.content == BODY.encode()
    assert request.headers["Content-Type"] == "application/json"


def test_a_message_shows_its_titles_as_they_are_and_no_pictures_of_links():
    [body] = telegram.compose(digest(MARKED, "<b>&amp;</b>", link="https://e.test/?a=1&b=2", to="-100123"), OPTIONS)

    sent = json.loads(body.body)
    assert sent.pop("text") == html.escape(body.text, quote=False)
    assert sent == {"chat_id": "-100123", "parse_mode": "HTML", "link_preview_options": {"is_disabled": True}}
    assert f"\n{MARKED}\nhttps://e.test/?a=1&b=2\n" in body.text


def test_a_topic_is_named_in_each_message():
    options = telegram.Options.model_validate({"token": TOKEN, "message_thread_id": 5})

    assert json.loads(telegram.compose(digest("x"), options)[0].body)["message_thread_id"] == 5


@pytest.mark.parametrize("character", ["😀", "👩‍👩‍👧", "ที่", "မြန်မာ", "&", "x"])
def test_texts_are_as_full_as_telegram_counts_them(character: str):
    bodies = telegram.compose(digest(*[character * 140] * 120, to="42"), OPTIONS)

    for body in bodies:
        [part] = body.parts
        read = html.unescape(json.loads(body.body)["text"])
        assert (part.text, part.length, part.limit) == (read, len(read.encode("utf-16-le")) // 2, 4096)
        assert part.length <= 4096
    assert "\n\n".join(body.text for body in bodies).count(character * 140) == 120
    assert all(body.parts[0].length > 4096 - 1600 for body in bodies[:-1])


def test_3000_emoji_in_one_title_are_one_message():
    [text] = texts("😀" * 3000)

    assert len(text.encode("utf-16-le")) // 2 < 4096


async def test_marks_that_telegram_cannot_read_are_sent_once_more_as_plain_text():
    wrong = refused(400, "Bad Request: can't parse entities: Unsupported start tag")
    provider = Provider(wrong, httpx.Response(200, json=TAKEN))

    assert await provider.take(telegram, OPTIONS, BODY) == Receipt(provider_id="77")

    first, second = [json.loads(request.content) for request in provider.requests]
    assert "a &lt; b &amp; c" in first["text"]
    assert "a < b & c" in second["text"]
    assert "parse_mode" not in second
    assert {name: second[name] for name in ("chat_id", "link_preview_options")} == {
        name: first[name] for name in ("chat_id", "link_preview_options")
    }


async def test_plain_text_is_tried_once():
    provider = Provider(*[refused(400, "Bad Request: can't parse entities")] * 3)

    assert isinstance(await provider.refuse(telegram, OPTIONS, BODY, secret=SECRET), PermanentFailure)
    assert len(provider.requests) == 2


@pytest.mark.parametrize(
    ("answer", "wait"),
    [
        (refused(429, "Too Many Requests: retry after 35", retry_after=35), timedelta(seconds=35)),
        (refused(429, "Too Many Requests"), None),
        (refused(429, "Too Many Requests", retry_after="soon"), None),
        (httpx.Response(429, headers={"Retry-After": "7"}, text="slow down"), timedelta(seconds=7)),
        (refused(429, "Too Many Requests", retry_after=10**9), timedelta(days=1)),
    ],
)
async def test_a_rate_limit_is_waited_out(answer: httpx.Response, wait: timedelta | None):
    told = await failure(answer)

    assert isinstance(told, RateLimited)
    assert told.retry_after == wait


async def test_a_group_that_became_a_supergroup_is_told_with_its_new_id():
    told = await failure(
        refused(400, "Bad Request: group chat was upgraded to a supergroup chat", migrate_to_chat_id=-1001234567890123)
    )

    assert isinstance(told, Moved)
    assert told.to == "-1001234567890123"


def test_a_body_for_a_chat_that_moved_is_the_same_but_for_its_address():
    before, after = json.loads(BODY), json.loads(telegram.readdressed(BODY, "-100777"))

    assert after == before | {"chat_id": "-100777"}
    assert telegram.readdressed(BODY, "42") == BODY


@pytest.mark.parametrize(
    ("status", "description"),
    [
        (403, "Forbidden: bot was blocked by the user"),
        (403, "Forbidden: user is deactivated"),
        (403, "Forbidden: bot was kicked from the supergroup chat"),
        (403, "Forbidden: bot can't initiate conversation with a user"),
        (400, "Bad Request: chat not found"),
        (400, "Bad Request: PEER_ID_INVALID"),
        (400, "Bad Request: not enough rights to send text messages to the chat"),
        (400, "Bad Request: need administrator rights in the channel chat"),
    ],
)
async def test_a_chat_that_nothing_reaches_is_blocked(status: int, description: str):
    told = await failure(refused(status, description))

    assert isinstance(told, Blocked)
    assert "press Start" in str(told)


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (refused(401, "Unauthorized"), "ask @BotFather"),
        (refused(404, "Not Found"), "copy it again from @BotFather"),
        (refused(400, "Bad Request: message thread not found"), "check the channel's `message_thread_id`"),
        (refused(400, "Bad Request: message is too long"), "message is too long"),
        (httpx.Response(403, text="<html>a proxy's"), "answered 403"),
        (httpx.Response(307, headers={"Location": "https://elsewhere.test/"}), "check the channel's `base_url`"),
    ],
)
async def test_any_other_refusal_is_permanent_for_this_message_alone(answer: httpx.Response, words: str):
    told = await failure(answer)

    assert isinstance(told, PermanentFailure)
    assert not isinstance(told, Blocked)
    assert words in str(told)


@pytest.mark.parametrize("status", [500, 502, 503, 504])
async def test_a_fault_of_theirs_is_temporary(status: int):
    told = await failure(httpx.Response(status, text="oops"))

    assert isinstance(told, TemporaryFailure)
    assert not isinstance(told, Unanswered | RateLimited)


async def test_a_message_that_was_stored_and_not_answered_is_unanswered():
    told = await failure(httpx.ReadTimeout(f"https://telegram.test/bot{TOKEN}/sendMessage"))

    assert isinstance(told, Unanswered)
    assert str(told) == "telegram.test did not answer (ReadTimeout)"


@pytest.mark.parametrize("text", ["", "[]", "[" * 50_000, '{"result": []}'])
async def test_an_answer_that_says_nothing_is_a_success_without_an_id(text: str):
    assert await Provider(httpx.Response(200, text=text)).take(telegram, OPTIONS, BODY) == Receipt()


@pytest.mark.parametrize("to", ["42", "-100123456789", "@jobs_in_town"])
def test_an_id_may_be_right(to: str):
    assert telegram.check_address(to) is None


@pytest.mark.parametrize("to", ["", "me", "@me", "+66 81 234", "https://t.me/jobs", "0", "U4af4980629", "1.5"])
def test_what_is_no_chat_is_told(to: str):
    told = telegram.check_address(to)

    assert told is not None
    assert told.startswith("is no chat of Telegram; ")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({}, "Field required"),
        ({"token": SECRET}, "no token of a bot"),
        ({"token": f"bot{TOKEN}"}, "no token of a bot"),
        ({"token": TOKEN, "message_thread_id": 0}, "greater than or equal to 1"),
        ({"token": TOKEN, "base_url": "ftp://x"}, "URL scheme should be"),
    ],
)
def test_wrong_options_are_refused_with_a_sentence(options: dict[str, Any], words: str):
    with pytest.raises(ValidationError) as caught:
        telegram.Options.model_validate(options)

    assert words in str(caught.value)
    assert SECRET not in str(caught.value)


def test_the_address_of_the_api_is_telegrams_own_and_white_space_round_a_token_is_dropped():
    options = telegram.Options.model_validate({"token": f" {TOKEN}\n"})

    assert str(options.base_url) == "https://api.telegram.org/"
    assert options.token.get_secret_value() == TOKEN
    assert SECRET not in repr(options)
