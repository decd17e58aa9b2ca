from __future__ import annotations

import json
import re
from datetime import timedelta
from typing import Any

import httpx
import pytest
from pydantic import ValidationError

from app.channels import discord
from app.domain.errors import Blocked, Failure, PermanentFailure, RateLimited, TemporaryFailure, Unanswered
from app.domain.messages import Receipt
from tests.channels.answers import MARKED, Provider, digest

SECRET = "secret-Token_" + "t" * 55
WEBHOOK = f"https://discord.com/api/webhooks/123456789012345678/{SECRET}"
OPTIONS = discord.Options.model_validate({"webhook_url": WEBHOOK, "base_url": "https://discord.test/"})
BODY = discord.compose(digest("Dev"), OPTIONS)[0].body
IN_ONE_MINUTE = {"message": "You are being rate limited.", "retry_after": 64.57, "global": False}


async def failure(*answers: httpx.Response | Exception, options: Any = OPTIONS) -> Failure:
    return await Provider(*answers).refuse(discord, options, BODY, secret=SECRET)


def read(content: str) -> str:
    """As Discord shows it."""
    return re.sub(r"\\([^0-9A-Za-z\s])", r"\1", re.sub(r"(?<!\\)<(https?:[^>]*)>", r"\1", content))


async def test_the_frozen_bytes_are_posted_and_their_storing_is_waited_for():
    provider = Provider(httpx.Response(200, json={"id": "1100", "content": "Dev"}))

    assert await provider.take(discord, OPTIONS, BODY) == Receipt(provider_id="1100")

    [request] = provider.requests
    address = f"https://discord.test/api/v10/webhooks/123456789012345678/{SECRET}?wait=true"
    assert (request.method, str(request.url)) == ("POST", address)
    assert request.content == BODY.encode()
    assert request.headers["Content-Type"] == "application/json"


async def test_a_thread_is_named_in_the_address():
    provider = Provider(httpx.Response(200, json={"id": "1100"}))
    options = OPTIONS.model_copy(update={"thread_id": "998877665544332211"})

    await provider.take(discord, options, BODY)

    assert provider.requests[0].url.query == b"wait=true&thread_id=998877665544332211"


@pytest.mark.parametrize(
    "address",
    [
        f"https://discordapp.com/api/webhooks/123456789012345678/{SECRET}",
        f"https://canary.discord.com/api/v9/webhooks/123456789012345678/{SECRET}?wait=false",
        f" {WEBHOOK}/\n",
    ],
)
async def test_an_address_of_any_age_is_asked_in_the_version_that_counts_in_seconds(address: str):
    provider = Provider(httpx.Response(204))

    options = discord.Options.model_validate({"webhook_url": address})

    assert await provider.take(discord, options, BODY) == Receipt()
    expected = f"https://discord.com/api/v10/webhooks/123456789012345678/{SECRET}?wait=true"
    assert str(provider.requests[0].url) == expected


def test_a_message_mentions_nobody_and_shows_no_pictures_of_links():
    options = OPTIONS.model_copy(update={"username": "Gigs"})
    [body] = discord.compose(digest("@everyone <@123>", link="https://e.test/a_b_c?x=*1*"), options)

    sent = json.loads(body.body)
    content = sent.pop("content")
    assert sent == {"allowed_mentions": {"parse": []}, "flags": 4, "username": "Gigs"}
    assert "\n<https://e.test/a_b_c?x=*1*>\n" in content
    assert r"\<\@123\>" in content


@pytest.mark.parametrize(
    "title",
    [
        MARKED,
        "# no heading",
        "-# nor a small one",
        "1. no list",
        "> no quote",
        "||no spoiler||",
        r"back\slash",
        "`x` ~~y~~ * x_y_z *",
        ":smile: <t:0> [a](https://e.test)",
        "see https://e.test/a_b_c. Really",
    ],
)
def test_a_title_shows_as_it_is(title: str):
    [body] = discord.compose(digest(title), OPTIONS)

    content = json.loads(body.body)["content"]
    assert read(content) == body.text == f"{title}\nboard · python"
    marks = re.sub(r"\\.|(?<!\\)<https?:[^>]*>", "", content)
    assert not set(marks) & set("\\`*_~|<>#[]()@+.:-")


@pytest.mark.parametrize("character", ["😀", "👩‍👩‍👧", "ที่", "_", "x"])
def test_messages_are_full_and_never_longer_than_discord_takes(character: str):
    bodies = discord.compose(digest(*[character * 70] * 90, link="https://e.test/1-2"), OPTIONS)

    contents = [json.loads(body.body)["content"] for body in bodies]
    assert all(0 < len(content.encode("utf-16-le")) // 2 <= 2000 for content in contents)
    assert [(part.length, part.limit) for body in bodies for part in body.parts] == [
        (len(content.encode("utf-16-le")) // 2, 2000) for content in contents
    ]
    assert "\n".join(body.text for body in bodies).count(character * 70) == 90
    assert all(len(content.encode("utf-16-le")) // 2 > 1300 for content in contents[:-1])


def test_a_link_in_a_word_that_fills_messages_is_not_longer_than_they_are():
    from app.domain.messages import Digest

    note = "<".join("https" + "://a" + "é" * 90 for _ in range(80))

    bodies = discord.compose(Digest(note=note, to=""), OPTIONS)

    assert all(len(json.loads(body.body)["content"]) <= 2000 for body in bodies)
    assert "".join("".join(body.text for body in bodies).split()) == note


@pytest.mark.parametrize(
    ("answer", "wait"),
    [
        (httpx.Response(429, headers={"Retry-After": "65"}, json=IN_ONE_MINUTE), timedelta(seconds=65)),
        (httpx.Response(429, json=IN_ONE_MINUTE | {"global": True, "retry_after": 0.3}), timedelta(seconds=1)),
        (httpx.Response(429, headers={"Retry-After": "1337"}, text="error code: 1015"), timedelta(seconds=1337)),
        (httpx.Response(429, json={"retry_after": True}), None),
        (httpx.Response(429, text='{"retry_after": NaN}'), None),
        (httpx.Response(403, text="<html>Cloudflare"), timedelta(minutes=30)),
    ],
)
async def test_a_rate_limit_is_waited_out(answer: httpx.Response, wait: timedelta | None):
    told = await failure(answer)

    assert isinstance(told, RateLimited)
    assert told.retry_after == wait


@pytest.mark.parametrize(("status", "code"), [(401, 50027), (403, 50013), (404, 10015), (404, 0)])
async def test_a_webhook_that_is_gone_is_never_called_again(status: int, code: int):
    told = await failure(httpx.Response(status, json={"message": "no", "code": code}))

    assert isinstance(told, Blocked)
    assert "Integrations, Webhooks" in str(told)


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (httpx.Response(400, json={"message": "Cannot send an empty message", "code": 50006}), "empty message"),
        (httpx.Response(400, json={"message": "Webhooks posted to forum", "code": 220001}), "into `thread_id`"),
        (httpx.Response(400, json={"message": "Unknown Channel", "code": 10003}), "no such thread"),
        (httpx.Response(400, json={"code": []}), "answered 400"),
        (httpx.Response(413, text="too large"), "answered 413"),
        (httpx.Response(308, headers={"Location": "https://elsewhere.test/"}), "redirects are not followed"),
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
    told = await failure(httpx.ReadTimeout(WEBHOOK))

    assert isinstance(told, Unanswered)
    assert str(told) == "discord.test did not answer (ReadTimeout)"


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"webhook_url": f"https://discord.com/channels/1/2/{SECRET}"}, "no address of a Discord webhook"),
        ({"webhook_url": f"https://evil.test/api/webhooks/123456789012345678/{SECRET}"}, "no address of a Discord"),
        ({"thread_id": "general"}, "Developer Mode"),
        ({"username": "My Discord bell"}, 'no name that has "discord"'),
        ({"username": "x" * 81}, "at most 80 characters"),
        ({"url": WEBHOOK}, "Extra inputs"),
    ],
)
def test_wrong_options_are_refused_with_a_sentence(change: dict[str, str], words: str):
    with pytest.raises(ValidationError) as caught:
        discord.Options.model_validate({"webhook_url": WEBHOOK} | change)

    assert words in str(caught.value)
    assert SECRET not in str(caught.value)


def test_options_do_not_show_the_address():
    assert SECRET not in repr(OPTIONS)
    assert str(discord.Options.model_validate({"webhook_url": WEBHOOK}).base_url) == "https://discord.com/"
