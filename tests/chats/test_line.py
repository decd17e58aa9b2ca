from __future__ import annotations

import base64
import hashlib
import hmac
import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from app.channels import line as channel
from app.chats import line
from app.domain.chats import Malformed, Replied, Said
from app.domain.errors import (
    Blocked,
    PermanentFailure,
    QuotaSpent,
    RateLimited,
    SignatureError,
    TemporaryFailure,
    Unanswered,
)
from tests.chats.talks import KEY, Provider, answer, body, splitted

SECRET = "0f1e2d3c4b5a69788796a5b4c3d2e1f0"
OPTIONS = line.Options.model_validate({"secret": SECRET, "channel": "line"})
ACCOUNT = channel.Options.model_validate({"token": "secret-token", "base_url": "https://line.test/"})

BOT = "U" + "b" * 32
PERSON = "U" + "1" * 32
GROUP = "C" + "2" * 32
ROOM = "R" + "3" * 32

USER = {"type": "user", "userId": PERSON}
IN_GROUP = {"type": "group", "groupId": GROUP, "userId": PERSON}
EXPIRED = httpx.Response(400, json={"message": "Invalid reply token"})
OK = httpx.Response(200, headers={"x-line-request-id": "r-1"}, json={"sentMessages": [{"id": "1"}]})


def event(kind: str, **more: Any) -> dict[str, Any]:
    return {
        "type": kind,
        "mode": "active",
        "timestamp": 1_764_547_200_500,
        "source": USER,
        "webhookEventId": "01JDXM5T0000000000000000AA",
        "deliveryContext": {"isRedelivery": False},
        **more,
    }


def message(kind: str, **more: Any) -> dict[str, Any]:
    return event("message", replyToken="r" * 32, message={"id": "5001", "type": kind, "quoteToken": "q"} | more)


def text(written: object, **more: Any) -> dict[str, Any]:
    return message("text", text=written, **more)


def delivery(*events: object) -> bytes:
    return body({"destination": BOT, "events": list(events)})


def said(told: dict[str, Any]) -> Said:
    [one] = line.parse(delivery(told), OPTIONS)
    return one


def signed(raw: bytes, secret: str = SECRET) -> str:
    return base64.b64encode(hmac.new(secret.encode(), raw, hashlib.sha256).digest()).decode()


def test_a_body_that_line_has_signed_is_taken_whatever_the_case_of_the_header():
    raw = delivery(text("สวัสดี 😀"))

    for name in ("x-line-signature", "X-Line-Signature", "X-LINE-SIGNATURE"):
        line.verify(raw, {"Host": "bot.test", name: signed(raw)}, OPTIONS)


def test_the_signature_is_that_of_the_reference():
    key = "8c570fa6dd201bb328f1c1eac23a96d8"
    options = line.Options.model_validate({"secret": key, "channel": "line"})
    raw = '{"destination":"U8e742f61d673b39c7fff3cecb7536ef0","events":[]}'

    line.verify(raw.encode(), {"x-line-signature": "GhRKmvmHys4Pi8DxkF4+EayaH0OqtJtaZxgTD9fMDLs="}, options)


def test_while_the_secret_changes_both_are_taken():
    options = line.Options.model_validate({"secret": [SECRET, "the-next-one"], "channel": "line"})
    raw = delivery()

    for secret in (SECRET, "the-next-one"):
        line.verify(raw, {"x-line-signature": signed(raw, secret)}, options)


@pytest.mark.parametrize("place", [0, 20, -1])
def test_a_body_changed_by_one_byte_is_refused(place: int):
    raw = bytearray(delivery(text("hello")))
    signature = signed(bytes(raw))
    raw[place] ^= 1

    with pytest.raises(SignatureError):
        line.verify(bytes(raw), {"x-line-signature": signature}, OPTIONS)


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"x-line-signature": ""},
        {"x-line-signature": "%%%"},
        {"x-line-signature": "กข"},
        {"x-line-signature": "\ud83d"},
        {"x-line-signature": "a" * 100_000},
        {"x-line-signature": signed(b"{}", "another")},
        {"x-line-signature": signed(b"{}"), "X-Line-Signature": signed(b"{}")},
    ],
)
def test_whatever_is_no_signature_is_refused_in_the_same_words(headers: dict[str, str]):
    with pytest.raises(SignatureError) as caught:
        line.verify(b"{}", headers, OPTIONS)

    assert str(caught.value) == line.REFUSED
    assert SECRET not in str(caught.value)


def test_line_asks_nothing_by_get():
    assert line.challenge({"hub.challenge": "1"}, OPTIONS) is None


def test_a_text_is_a_message():
    told = said(text("สวัสดี 😀\nhow much?"))

    assert told == Said(
        id="01JDXM5T0000000000000000AA",
        kind="message",
        conversation=f"{BOT}:{PERSON}",
        address=PERSON,
        person=PERSON,
        text="สวัสดี 😀\nhow much?",
        at=datetime(2025, 12, 1, microsecond=500_000, tzinfo=UTC),
        reply_token="r" * 32,
    )


@pytest.mark.parametrize(
    ("told", "words"),
    [
        (message("image", contentProvider={"type": "line"}), "[image]"),
        (message("video", duration=60_000, contentProvider={"type": "line"}), "[video]"),
        (message("audio", duration=60_000, contentProvider={"type": "line"}), "[audio]"),
        (message("file", fileName="cv.pdf", fileSize=2138), "[file]"),
        (
            message("location", title="My shop", address="1 Rama IV Road", latitude=13.7, longitude=100.5),
            "[location] My shop, 1 Rama IV Road",
        ),
        (message("location", latitude=13.7, longitude=100.5), "[location]"),
        (message("sticker", packageId="1", stickerId="2", stickerResourceType="STATIC", keywords=["hi"]), "[sticker]"),
        (message("hologram"), "[hologram]"),
    ],
)
def test_what_is_no_text_is_a_word_in_brackets(told: dict[str, Any], words: str):
    assert (said(told).kind, said(told).text) == ("message", words)


@pytest.mark.parametrize(
    ("postback", "words"),
    [
        ({"data": "action=book"}, "action=book"),
        ({"data": "action=book", "params": {"datetime": "2026-12-01T10:00"}}, "action=book 2026-12-01T10:00"),
        ({"data": "menu", "params": {"newRichMenuAliasId": "b", "status": "SUCCESS"}}, "menu"),
    ],
)
def test_a_postback_says_what_its_button_stands_for(postback: dict[str, Any], words: str):
    told = said(event("postback", replyToken="r" * 32, postback=postback))

    assert (told.kind, told.text, told.reply_token) == ("message", words, "r" * 32)


@pytest.mark.parametrize("follow", [{"isUnblocked": True}, {"isUnblocked": False}, None])
def test_following_and_unfollowing_are_told(follow: dict[str, Any] | None):
    followed = said(event("follow", replyToken="r" * 32, follow=follow))
    unfollowed = said(event("unfollow"))

    assert (followed.kind, followed.address) == ("follow", PERSON)
    assert (unfollowed.kind, unfollowed.address, unfollowed.reply_token) == ("unfollow", PERSON, None)


def test_the_bot_joins_and_leaves_groups():
    joined = said(event("join", replyToken="r" * 32, source={"type": "group", "groupId": GROUP}))
    left = said(event("leave", source={"type": "room", "roomId": ROOM}))

    assert (joined.kind, joined.address, joined.person, joined.group) == ("join", GROUP, None, True)
    assert (left.kind, left.conversation, left.group) == ("leave", f"{BOT}:{ROOM}", True)


@pytest.mark.parametrize(
    "told",
    [
        event("unsend", unsend={"messageId": "5001"}),
        event("memberJoined", replyToken="r", source=IN_GROUP, joined={"members": [USER]}),
        event("memberLeft", source=IN_GROUP, left={"members": [USER]}),
        event("videoPlayComplete", replyToken="r", videoPlayComplete={"trackingId": "t"}),
        event("beacon", replyToken="r", beacon={"hwid": "d41d8cd98f", "type": "enter"}),
        event("accountLink", replyToken="r", link={"result": "ok", "nonce": "n"}),
        event("membership", replyToken="r", membership={"type": "joined", "membershipId": 1}),
        event("module", module={"type": "attached", "botId": BOT, "scopes": []}),
        event("activated", chatControl={"expireAt": 1_764_547_200_500}),
        event("deactivated"),
        event("botSuspended"),
        event("botResumed"),
        event("delivery", delivery={"data": "d"}),
        event("somethingNew", somethingNew={"x": [1]}),
        event(""),
    ],
    ids=lambda told: told["type"],
)
def test_other_events_are_seen_and_not_answered(told: dict[str, Any]):
    assert (said(told).kind, said(told).id) == ("other", told["webhookEventId"])


def test_an_event_of_nobody_belongs_to_the_bot():
    told = event("botSuspended")
    del told["source"]

    assert (said(told).conversation, said(told).address) == (BOT, None)


def test_a_standby_channel_does_not_answer():
    for told in (text("hello"), event("follow"), event("postback", postback={"data": "x"})):
        assert said(told | {"mode": "standby"}).kind == "other"


def test_a_consoles_sample_is_not_answered():
    told = text("Hello, world") | {"source": {"type": "user", "userId": line.SAMPLE_PERSON}}

    assert said(told).kind == "other"


def test_a_redelivered_event_says_so_and_keeps_its_id():
    again = said(text("hello") | {"deliveryContext": {"isRedelivery": True}, "replyToken": "s" * 32})

    assert again.redelivered
    assert again.id == said(text("hello")).id
    assert again.reply_token == "s" * 32


def test_an_event_without_an_id_has_one_of_its_content():
    first = text("hello")
    del first["webhookEventId"]
    again = first | {"deliveryContext": {"isRedelivery": True}, "replyToken": "s"}

    assert said(first).id == said(again).id
    assert said(first).id != said(first | {"timestamp": 1}).id


def test_in_a_group_one_is_answered_who_names_the_bot():
    mention = {"mentionees": [{"type": "user", "index": 3, "length": 8, "isSelf": True, "userId": BOT}]}
    told = said(text("😀 @GigsBot how much?", mention=mention) | {"source": IN_GROUP})

    assert (told.group, told.mentioned, told.person) == (True, True, PERSON)
    assert told.conversation == f"{BOT}:{GROUP}"
    assert told.text == "😀  how much?"


@pytest.mark.parametrize(
    "mention",
    [
        None,
        {},
        {"mentionees": [{"type": "all", "index": 0, "length": 4}]},
        {"mentionees": [{"type": "user", "index": 0, "length": 4, "isSelf": False}]},
        {"mentionees": ["x", None]},
    ],
)
def test_in_a_group_others_are_not_spoken_to(mention: object):
    told = said(text("@All lunch?", mention=mention) | {"source": IN_GROUP})

    assert (told.mentioned, told.text) == (False, "@All lunch?")


def test_a_name_alone_is_still_said():
    mention = {"mentionees": [{"type": "user", "index": 0, "length": 8, "isSelf": True}]}

    assert said(text("@GigsBot", mention=mention) | {"source": IN_GROUP}).text == "@GigsBot"


def test_many_events_come_in_their_order():
    events = [text(f"{number}") | {"webhookEventId": f"{number}"} for number in range(100)]

    assert [one.text for one in line.parse(delivery(*events), OPTIONS)] == [f"{number}" for number in range(100)]


def test_a_try_of_the_address_holds_no_events():
    assert line.parse(delivery(), OPTIONS) == []


@pytest.mark.parametrize("raw", [b"", b"[]", b"{}", b'{"events": {}}', b'{"events": null}', b"\xff"])
def test_what_is_no_delivery_of_line_is_refused(raw: bytes):
    with pytest.raises(Malformed):
        line.parse(raw, OPTIONS)


JSON: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)
KEYS = ["type", "mode", "timestamp", "source", "webhookEventId", "deliveryContext", "message", "postback", "replyToken"]


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(KEYS), JSON, st.sampled_from(["text", "mention", "id", "type", "x"]), JSON)
def test_a_shape_that_nobody_expected_breaks_nothing(key: str, value: Any, inner: str, other: Any):
    told = text("hello") | {key: value}
    if isinstance(told["message"], dict):
        told["message"] = told["message"] | {inner: other}

    for one in line.parse(delivery(told, value, other), OPTIONS):
        assert one.id
        assert one.conversation
        assert "\0" not in one.text + one.id + one.conversation
        one.text.encode()


async def test_a_living_token_answers_for_free():
    provider = Provider(OK)

    replied = await provider.hears(line, answer("Hello", "สวัสดี 😀", reply_token="tok"), ACCOUNT)

    [request] = provider.requests
    assert replied == Replied(texts=2, provider_id="r-1")
    assert (request.method, str(request.url)) == ("POST", "https://line.test/v2/bot/message/reply")
    assert request.headers["authorization"] == "Bearer secret-token"
    assert "x-line-retry-key" not in request.headers  # LINE refuses it there
    assert json.loads(request.content) == {
        "replyToken": "tok",
        "messages": [{"type": "text", "text": "Hello"}, {"type": "text", "text": "สวัสดี 😀"}],
    }


async def test_a_token_that_has_run_out_is_followed_by_a_push():
    provider = Provider(EXPIRED, OK)

    replied = await provider.hears(line, answer("Hello", reply_token="tok"), ACCOUNT)

    assert replied == Replied(texts=1, provider_id="r-1")
    assert provider.paths == ["/v2/bot/message/reply", "/v2/bot/message/push"]
    assert provider.requests[1].headers["x-line-retry-key"] == str(KEY)
    assert provider.bodies[1] == {"to": "U1", "messages": [{"type": "text", "text": "Hello"}]}


@pytest.mark.parametrize("more", [{}, {"reply_token": "tok", "waited": timedelta(minutes=2)}])
async def test_an_old_token_is_not_tried(more: dict[str, Any]):
    provider = Provider(OK)

    await provider.hears(line, answer(**more), ACCOUNT)

    assert provider.paths == ["/v2/bot/message/push"]


async def test_a_push_that_had_arrived_is_no_second_one():
    provider = Provider(httpx.Response(409, headers={"x-line-accepted-request-id": "r-0"}, json={}))

    assert await provider.hears(line, answer(), ACCOUNT) == Replied(texts=1, provider_id="r-0", repeated=True)


async def test_a_reply_whose_answer_was_lost_is_asked_for_once_more():
    provider = Provider(httpx.ReadTimeout(""), OK)

    assert await provider.hears(line, answer(reply_token="tok"), ACCOUNT) == Replied(texts=1, provider_id="r-1")
    assert provider.paths == ["/v2/bot/message/reply"] * 2


@pytest.mark.parametrize(("answers", "tried"), [([EXPIRED], True), ([httpx.ReadTimeout(""), EXPIRED], False)])
async def test_a_token_that_a_lost_reply_has_used_up_has_arrived(answers: list[Any], tried: object):
    provider = Provider(*answers)

    replied = await provider.hears(line, answer(reply_token="tok", tried=tried), ACCOUNT)

    assert replied == Replied(texts=1, repeated=True)
    assert "/v2/bot/message/push" not in provider.paths


async def test_no_answer_at_all_leaves_it_open():
    told = await Provider(httpx.ReadTimeout("")).refuses(line, answer(reply_token="tok"), ACCOUNT)

    assert type(told) is Unanswered


async def test_without_an_address_nothing_can_be_pushed():
    told = await Provider(EXPIRED).refuses(line, answer(reply_token="tok", address=None), ACCOUNT)

    assert type(told) is PermanentFailure


@pytest.mark.parametrize("more", [{"reply_token": "tok"}, {}])
@pytest.mark.parametrize(
    ("status", "words", "failure"),
    [
        (429, "The API rate limit has been exceeded. Try again later.", RateLimited),
        (429, "You have reached your monthly limit.", QuotaSpent),
        (500, "Internal", TemporaryFailure),
        (503, "Later", TemporaryFailure),
        (400, "Failed to send messages", Blocked),
        (400, "The request body has 1 error(s)", PermanentFailure),
        (401, "Authentication failed", PermanentFailure),
        (404, "Not found", PermanentFailure),
    ],
)
async def test_a_refusal_is_one_of_ours(more: dict[str, Any], status: int, words: str, failure: type[Exception]):
    provider = Provider(httpx.Response(status, json={"message": words}))

    assert type(await provider.refuses(line, answer(**more), ACCOUNT)) is failure


async def test_a_redirect_is_not_followed():
    told = await Provider(httpx.Response(307, headers={"Location": "https://x.test"})).refuses(line, answer(), ACCOUNT)

    assert "base_url" in str(told)


@pytest.mark.parametrize("character", ["😀", "ที่", "x", "မြန်မာ"])
async def test_a_long_answer_is_five_texts_at_most(character: str):
    texts = splitted(line, character * 30_000)
    provider = Provider(OK)

    await provider.hears(line, answer(*texts), ACCOUNT)

    sent = [one["text"] for one in provider.bodies[0]["messages"]]
    assert 1 < len(sent) <= 5
    assert all(len(one.encode("utf-16-le")) // 2 <= 5000 for one in sent)


async def test_nothing_to_say_is_not_said():
    provider = Provider(OK)

    assert await provider.hears(line, replace(answer(), texts=()), ACCOUNT) == Replied(texts=0)
    assert provider.requests == []


async def test_a_chat_with_one_person_shows_that_an_answer_comes():
    provider = Provider(httpx.Response(202, json={}))

    await provider.sees(line, PERSON, ACCOUNT)
    await provider.sees(line, GROUP, ACCOUNT)

    assert provider.paths == ["/v2/bot/chat/loading/start"]
    assert provider.bodies == [{"chatId": PERSON, "loadingSeconds": 20}]


async def test_an_animation_that_is_not_shown_is_a_failure_of_ours():
    with pytest.raises(PermanentFailure):
        await Provider(httpx.Response(400, json={})).sees(line, PERSON, ACCOUNT)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"channel": "line"}, "Field required"),
        ({"secret": SECRET}, "Field required"),
        ({"secret": "", "channel": "line"}, "is empty"),
        ({"secret": [], "channel": "line"}, "a list of 1 to 5"),
        ({"secret": ["x"] * 6, "channel": "line"}, "a list of 1 to 5"),
        ({"secret": 5, "channel": "line"}, "valid string"),
        ({"secret": SECRET, "channel": "line", "token": "t"}, "Extra inputs"),
    ],
)
def test_wrong_options_are_refused(options: dict[str, Any], words: str):
    with pytest.raises(ValidationError) as caught:
        line.Options.model_validate(options)

    assert words in str(caught.value)
    assert SECRET not in str(caught.value)
