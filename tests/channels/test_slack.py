from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import httpx
import pytest
from pydantic import ValidationError

from app.channels import slack
from app.domain.errors import Blocked, Failure, PermanentFailure, RateLimited, TemporaryFailure, Unanswered
from app.domain.messages import Receipt
from tests.channels.answers import MARKED, Provider, digest

SECRET = "secretXXXXXXXXXXXXXXXXXX"
WEBHOOK = f"https://hooks.slack.com/services/T00000000/B00000000/{SECRET}"
OPTIONS = slack.Options.model_validate({"webhook_url": WEBHOOK, "base_url": "https://slack.test"})
BODY = slack.compose(digest("a < b & c"), OPTIONS)[0].body
OK = httpx.Response(200, text="ok")


async def failure(*answers: httpx.Response | Exception) -> Failure:
    return await Provider(*answers).refuse(slack, OPTIONS, BODY, secret=SECRET)


async def test_the_frozen_bytes_are_posted_to_the_webhook():
    provider = Provider(OK)

    assert await provider.take(slack, OPTIONS, BODY) == Receipt()

    [request] = provider.requests
    assert str(request.url) == f"https://slack.test/services/T00000000/B00000000/{SECRET}"
    assert request.content == BODY.encode()
    assert request.headers["Content-Type"] == "application/json"


@pytest.mark.parametrize("host", ["hooks.slack.com", "hooks.slack-gov.com"])
async def test_without_a_base_url_the_webhook_says_where_it_is(host: str):
    provider = Provider(OK)

    await provider.take(slack, slack.Options.model_validate({"webhook_url": f"https://{host}/services/T/B/x"}), BODY)

    assert str(provider.requests[0].url) == f"https://{host}/services/T/B/x"


def test_a_message_is_sections_and_the_same_as_text_for_notifications():
    [body] = slack.compose(digest(MARKED, "<b>&amp; <!channel>", link="https://e.test/?a=1&b=|"), OPTIONS)

    sent = json.loads(body.body)
    [section] = sent["blocks"]
    shown = (
        f"2 new items\n\n{MARKED}\n<https://e.test/?a=1&amp;b=%7C>\n\n"
        "&lt;b&gt;&amp;amp; &lt;!channel&gt;\n<https://e.test/?a=1&amp;b=%7C>\n\nboard · python"
    )
    assert section == {
        "type": "section",
        "text": {"type": "mrkdwn", "text": shown, "verbatim": True},
        "expand": True,
    }
    assert sent["text"] == shown
    assert (sent["unfurl_links"], sent["unfurl_media"]) == (False, False)
    assert f"\n{MARKED}\nhttps://e.test/?a=1&b=|\n" in body.text


@pytest.mark.parametrize("character", ["😀", "👩‍👩‍👧", "ที่", "&", "x"])
def test_messages_are_full_and_within_all_three_limits(character: str):
    bodies = slack.compose(digest(*[character * 90] * 300), OPTIONS)

    for body in bodies:
        sections = [block["text"]["text"] for block in json.loads(body.body)["blocks"]]
        lengths = [len(section.encode("utf-16-le")) // 2 for section in sections]
        assert [(part.length, part.limit) for part in body.parts] == [(length, 3000) for length in lengths]
        assert max(lengths) <= 3000
        assert sum(lengths) <= 12_000
        assert len(sections) <= 50
    assert all(sum(part.length for part in body.parts) > 9000 for body in bodies[:-1])
    assert "\n".join(body.text for body in bodies).count(character * 90) == 300
    assert [place for body in bodies for place in body.items] == list(range(300))


@pytest.mark.parametrize("words", ["msg_blocks_too_long", "invalid_blocks"])
async def test_blocks_that_slack_does_not_take_are_sent_once_more_as_text(words: str):
    provider = Provider(httpx.Response(400, text=words), OK)

    assert await provider.take(slack, OPTIONS, BODY) == Receipt()

    assert [json.loads(request.content) for request in provider.requests][1] == {"text": json.loads(BODY)["text"]}


async def test_text_alone_is_tried_once():
    provider = Provider(httpx.Response(400, text="msg_blocks_too_long"))

    assert isinstance(await provider.refuse(slack, OPTIONS, BODY, secret=SECRET), PermanentFailure)
    assert len(provider.requests) == 2


@pytest.mark.parametrize(
    ("status", "words"),
    [
        (404, "no_service"),
        (404, "channel_not_found"),
        (403, "invalid_token"),
        (403, "action_prohibited"),
        (410, "channel_is_archived"),
        (400, "user_not_found"),
        (400, "no_team"),
        (403, "posting_to_general_channel_denied"),
    ],
)
async def test_a_webhook_that_is_gone_or_shut_out_is_blocked(status: int, words: str):
    told = await failure(httpx.Response(status, text=words))

    assert isinstance(told, Blocked)
    assert words in str(told)
    assert "add a new one in your app" in str(told)


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (httpx.Response(400, text="invalid_payload"), "answered 400: invalid_payload"),
        (httpx.Response(400, text="no_text"), "no_text"),
        (httpx.Response(413, text=""), "answered 413"),
        (httpx.Response(302, headers={"Location": "https://elsewhere.test/"}), "redirects are not followed"),
    ],
)
async def test_any_other_refusal_is_permanent_for_this_message_alone(answer: httpx.Response, words: str):
    told = await failure(answer)

    assert isinstance(told, PermanentFailure)
    assert not isinstance(told, Blocked)
    assert words in str(told)


@pytest.mark.parametrize(("headers", "wait"), [({"Retry-After": "30"}, timedelta(seconds=30)), ({}, None)])
async def test_a_rate_limit_is_waited_out(headers: dict[str, str], wait: timedelta | None):
    told = await failure(httpx.Response(429, headers=headers, text="rate_limited"))

    assert isinstance(told, RateLimited)
    assert told.retry_after == wait


@pytest.mark.parametrize(("status", "words"), [(500, "rollup_error"), (502, ""), (503, ""), (504, "")])
async def test_a_fault_of_theirs_is_temporary(status: int, words: str):
    told = await failure(httpx.Response(status, text=words))

    assert isinstance(told, TemporaryFailure)
    assert not isinstance(told, Unanswered | RateLimited)


async def test_a_message_that_was_stored_and_not_answered_is_unanswered():
    told = await failure(httpx.ReadTimeout(WEBHOOK))

    assert isinstance(told, Unanswered)
    assert str(told) == "slack.test did not answer (ReadTimeout)"


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"webhook_url": f"https://hooks.slack.com/triggers/T/1/{SECRET}"}, "no address of an incoming webhook"),
        ({"webhook_url": f"https://evil.test/services/T/B/{SECRET}"}, "no address of an incoming webhook"),
        ({"channel": "#general"}, "Extra inputs"),
    ],
)
def test_wrong_options_are_refused_with_a_sentence(change: dict[str, Any], words: str):
    with pytest.raises(ValidationError) as caught:
        slack.Options.model_validate({"webhook_url": WEBHOOK} | change)

    assert words in str(caught.value)
    assert SECRET not in str(caught.value)


def test_options_do_not_show_the_address():
    assert SECRET not in repr(OPTIONS)
