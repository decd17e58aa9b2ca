from __future__ import annotations

import hashlib
import hmac
import json
from datetime import UTC, datetime
from typing import Any

import httpx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from app.chats import messenger
from app.domain.chats import Malformed, Replied, Said
from app.domain.errors import (
    Blocked,
    Failure,
    PermanentFailure,
    RateLimited,
    SignatureError,
    TemporaryFailure,
    Unanswered,
)
from tests.chats.talks import Provider, answer, body, splitted

SECRET = "a1b2c3d4e5f60718293a4b5c6d7e8f90"
GIVEN = {"secret": SECRET, "verify_token": "a-word-of-ours", "token": "EAAsecret", "base_url": "https://graph.test/"}
OPTIONS = messenger.Options.model_validate(GIVEN)

PAGE = "104857600000001"
PSID = "7000000000000001"
INBOX_APP = 263902037430900

OK = httpx.Response(200, json={"recipient_id": PSID, "message_id": "m_sent"})


def event(**told: Any) -> dict[str, Any]:
    return {"sender": {"id": PSID}, "recipient": {"id": PAGE}, "timestamp": 1_764_547_200_500, **told}


def echo(**message: Any) -> dict[str, Any]:
    told = {"is_echo": True, "mid": "m_echo", "text": "We open at nine.", **message}
    return event(sender={"id": PAGE}, recipient={"id": PSID}, message=told)


def message(**told: Any) -> dict[str, Any]:
    return event(message={"mid": "m_1", **told})


def delivery(*events: object, field: str = "messaging", kind: object = "page") -> bytes:
    return body({"object": kind, "entry": [{"id": PAGE, "time": 1_764_547_200_700, field: list(events)}]})


def said(told: dict[str, Any], options: messenger.Options = OPTIONS, **more: Any) -> Said:
    [one] = messenger.parse(delivery(told, **more), options)
    return one


def signed(raw: bytes, secret: str = SECRET) -> str:
    return "sha256=" + hmac.new(secret.encode(), raw, hashlib.sha256).hexdigest()


def error(code: int, subcode: int | None = None, status: int = 400, **more: Any) -> httpx.Response:
    told = {"message": "refused", "type": "OAuthException", "code": code, "fbtrace_id": "A"}
    return httpx.Response(status, json={"error": told | ({"error_subcode": subcode} if subcode else {}) | more})


@pytest.mark.parametrize("name", ["x-hub-signature-256", "X-Hub-Signature-256"])
def test_a_body_that_facebook_has_signed_is_taken(name: str):
    raw = delivery(message(text="สวัสดี"))

    messenger.verify(raw, {name: signed(raw)}, OPTIONS)


@pytest.mark.parametrize("place", [0, 30, -1])
def test_a_body_changed_by_one_byte_is_refused(place: int):
    raw = bytearray(delivery(message(text="hello")))
    signature = signed(bytes(raw))
    raw[place] ^= 1

    with pytest.raises(SignatureError):
        messenger.verify(bytes(raw), {"x-hub-signature-256": signature}, OPTIONS)


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"x-hub-signature-256": ""},
        {"x-hub-signature-256": "sha256="},
        {"x-hub-signature-256": signed(b"{}").removeprefix("sha256=")},
        {"x-hub-signature-256": signed(b"{}").upper()},
        {"x-hub-signature-256": "ก" * 64},
        {"x-hub-signature": "sha1=" + hmac.new(SECRET.encode(), b"{}", "sha1").hexdigest()},
    ],
)
def test_whatever_is_no_signature_is_refused_in_the_same_words(headers: dict[str, str]):
    with pytest.raises(SignatureError) as caught:
        messenger.verify(b"{}", headers, OPTIONS)

    assert str(caught.value) == messenger.REFUSED


def test_the_address_is_proved_by_repeating_what_facebook_says():
    query = {"hub.mode": "subscribe", "hub.verify_token": "a-word-of-ours", "hub.challenge": "1158201444"}

    assert messenger.challenge(query, OPTIONS) == "1158201444"


def test_while_the_verify_token_changes_both_are_taken():
    options = messenger.Options.model_validate(GIVEN | {"verify_token": ["old-word", "new-word"]})

    for word in ("old-word", "new-word"):
        query = {"hub.mode": "subscribe", "hub.verify_token": word, "hub.challenge": "7"}
        assert messenger.challenge(query, options) == "7"


@pytest.mark.parametrize(
    "change",
    [
        {"hub.verify_token": "another"},
        {"hub.verify_token": ""},
        {"hub.verify_token": "กข"},
        {"hub.mode": "unsubscribe"},
        {"hub.challenge": ""},
        {"hub.challenge": "<script>\n"},
        {"hub.challenge": "1" * 1000},
    ],
)
def test_whoever_does_not_know_the_word_is_told_nothing(change: dict[str, str]):
    query = {"hub.mode": "subscribe", "hub.verify_token": "a-word-of-ours", "hub.challenge": "1"} | change

    with pytest.raises(SignatureError) as caught:
        messenger.challenge(query, OPTIONS)
    assert "a-word" not in str(caught.value)
    with pytest.raises(SignatureError):
        messenger.challenge({}, OPTIONS)


def test_a_text_is_a_message():
    assert said(message(text="สวัสดี 😀")) == Said(
        id="m_1",
        kind="message",
        conversation=f"{PAGE}:{PSID}",
        address=PSID,
        person=PSID,
        text="สวัสดี 😀",
        at=datetime(2025, 12, 1, microsecond=500_000, tzinfo=UTC),
    )


@pytest.mark.parametrize(
    ("told", "words"),
    [
        ({"text": "Large", "quick_reply": {"payload": "SIZE_L"}}, "Large"),
        ({"attachments": [{"type": "image", "payload": {"url": "https://cdn.test/1"}}]}, "[image]"),
        ({"attachments": [{"type": "image", "payload": {"url": "u", "sticker_id": 369239263222822}}]}, "[sticker]"),
        ({"attachments": [{"type": "video", "payload": {}}, {"type": "audio", "payload": {}}]}, "[video] [audio]"),
        ({"attachments": [{"type": "file", "payload": {"url": "u"}}], "text": "my CV"}, "[file] my CV"),
        (
            {"attachments": [{"type": "fallback", "title": "A page", "url": "u"}], "text": "https://a.test"},
            "https://a.test",
        ),
        ({"attachments": [{"type": "fallback", "title": "A page", "url": "u"}]}, "[link]"),
        ({"attachments": [{"type": "location", "payload": {"coordinates": {"lat": 1, "long": 2}}}]}, "[location]"),
        ({"attachments": [{"type": "template", "payload": {}}]}, "[template]"),
        ({"text": "this one", "reply_to": {"mid": "m_0"}}, "this one"),
        ({"attachments": "x"}, ""),
    ],
)
def test_what_is_no_text_is_a_word_in_brackets(told: dict[str, Any], words: str):
    assert (said(message(**told)).kind, said(message(**told)).text) == ("message", words)


def test_a_button_says_its_title_or_what_it_stands_for():
    titled = said(event(postback={"mid": "m_2", "title": "Get started", "payload": "START"}))
    bare = said(event(postback={"mid": "m_3", "payload": "START", "referral": {"ref": "r"}}))

    assert (titled.id, titled.kind, titled.text) == ("m_2", "message", "Get started")
    assert (bare.id, bare.text) == ("m_3", "START")


def test_what_somebody_of_the_house_writes_is_of_the_staff():
    told = said(echo(app_id=INBOX_APP))

    assert (told.kind, told.text, told.id) == ("staff", "We open at nine.", "m_echo")
    assert (told.conversation, told.address, told.person) == (f"{PAGE}:{PSID}", PSID, None)
    assert said(echo()).kind == "staff"


def test_our_own_echo_is_known_by_its_mark_or_its_app():
    ours = messenger.Options.model_validate(GIVEN | {"app_id": 1517776481860111})

    assert said(echo(metadata="wakebell", app_id=1)).kind == "other"
    assert said(echo(app_id=1517776481860111), ours).kind == "other"
    assert said(echo(app_id="1517776481860111"), ours).kind == "other"
    assert said(echo(app_id=INBOX_APP), ours).kind == "staff"


@pytest.mark.parametrize(
    "told",
    [
        event(delivery={"mids": ["m_sent"], "watermark": 1_764_547_200_000}),
        event(read={"watermark": 1_764_547_200_000}),
        event(reaction={"mid": "m_sent", "action": "react", "emoji": "❤", "reaction": "love"}),
        event(referral={"ref": "ad", "source": "ADS", "type": "OPEN_THREAD"}),
        event(optin={"type": "notification_messages", "payload": "p"}),
        event(account_linking={"status": "linked", "authorization_code": "c"}),
        event(pass_thread_control={"new_owner_app_id": INBOX_APP, "metadata": "m"}),
        event(take_thread_control={"previous_owner_app_id": 1}),
        event(request_thread_control={"requested_owner_app_id": 1}),
        event(app_roles={"1": ["primary_receiver"]}),
        event(policy_enforcement={"action": "block", "reason": "spam"}),
        event(message_edit={"mid": "m_1", "text": "new", "num_edit": 1}),
        event(something_new={"x": 1}),
        event(message={"mid": "m_1", "is_deleted": True}),
        event(sender={"id": PAGE}, recipient={"id": PSID}, message={"mid": "m_1", "text": "no echo"}),
    ],
    ids=lambda told: list(told)[-1],
)
def test_other_events_are_seen_and_not_answered(told: dict[str, Any]):
    again = said(told)

    assert again.kind == "other"
    assert again.id == said(told).id
    assert again.address == PSID


def test_deliveries_and_reads_have_an_id_of_their_content():
    one, other = (said(event(read={"watermark": mark})) for mark in (1, 2))

    assert one.id != other.id
    assert one.id.startswith("sha256-")


def test_a_thread_that_another_app_controls_is_not_answered():
    for told in (message(text="hello"), echo(), event(postback={"mid": "m_2", "payload": "x"})):
        assert said(told, field="standby").kind == "other"


def test_entries_and_events_come_in_their_order():
    entries = [{"id": PAGE, "messaging": [message(mid=f"m_{row}{place}") for place in range(3)]} for row in range(3)]

    told = messenger.parse(body({"object": "page", "entry": entries}), OPTIONS)

    assert [one.id for one in told] == [f"m_{row}{place}" for row in range(3) for place in range(3)]


@pytest.mark.parametrize(
    "raw",
    [
        body({"object": "page", "entry": []}),
        body({"object": "page", "entry": [None, 1, {}, {"id": PAGE, "messaging": [None, "x"]}]}),
        body({"object": "page", "entry": [{"id": PAGE, "changes": [{"field": "feed", "value": {}}]}]}),
        delivery(message(text="hi"), kind="instagram"),
        delivery(message(text="hi"), kind="user"),
    ],
)
def test_deliveries_of_other_kinds_say_nothing(raw: bytes):
    assert messenger.parse(raw, OPTIONS) == []


@pytest.mark.parametrize(
    "raw", [b"", b"{}", b"[]", b'{"object": "page"}', b'{"object": 1, "entry": []}', b'{"entry": []}']
)
def test_what_is_no_delivery_of_facebook_is_refused(raw: bytes):
    with pytest.raises(Malformed):
        messenger.parse(raw, OPTIONS)


def test_an_event_of_nobody_is_not_answered():
    told = message(text="hello")
    del told["sender"]

    assert (said(told).kind, said(told).conversation, said(told).address) == ("other", PAGE, None)


JSON: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)
KEYS = ["sender", "recipient", "timestamp", "message", "postback", "delivery"]
INNER = ["mid", "text", "attachments", "is_echo", "app_id", "metadata", "is_deleted"]


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(KEYS), JSON, st.sampled_from(INNER), JSON)
def test_a_shape_that_nobody_expected_breaks_nothing(key: str, value: Any, inner: str, other: Any):
    told = message(**({"text": "hello", "attachments": [{"type": "image"}]} | {inner: other}))
    raw = body({"object": "page", "entry": [{"id": value, "messaging": [told | {key: value}, other]}, value, other]})

    for one in messenger.parse(raw, OPTIONS):
        assert one.id
        assert one.conversation
        one.text.encode()


async def test_an_answer_goes_to_the_person_with_our_mark():
    provider = Provider(OK)

    replied = await provider.hears(messenger, answer("สวัสดี 😀", address=PSID), OPTIONS)

    [request] = provider.requests
    assert replied == Replied(texts=1, provider_id="m_sent")
    assert str(request.url) == "https://graph.test/v25.0/me/messages"  # no token: addresses are written down
    assert request.headers["authorization"] == "Bearer EAAsecret"
    assert json.loads(request.content) == {
        "messaging_type": "RESPONSE",
        "recipient": {"id": PSID},
        "message": {"text": "สวัสดี 😀", "metadata": "wakebell"},
    }


@pytest.mark.parametrize("character", ["😀", "ที่", "x"])
async def test_a_long_answer_is_several_messages(character: str):
    texts = splitted(messenger, character * 5000)
    provider = Provider(OK)

    replied = await provider.hears(messenger, answer(*texts, address=PSID), OPTIONS)

    sent = [told["message"]["text"] for told in provider.bodies]
    assert tuple(sent) == texts
    assert replied.texts == len(sent) > 1
    assert all(len(one) < 2000 for one in sent)


@pytest.mark.parametrize(
    ("told", "failure"),
    [
        (error(10, 2018278), PermanentFailure),
        (error(551), Blocked),
        (error(551, 1545041), Blocked),
        (error(200, 1545041), Blocked),
        (error(100, 2018001), Blocked),
        (error(190), PermanentFailure),
        (error(100), PermanentFailure),
        (error(230), PermanentFailure),
        (error(4), RateLimited),
        (error(613), RateLimited),
        (error(80006, status=403), RateLimited),
        (error(1200), TemporaryFailure),
        (error(2), TemporaryFailure),
        (error(9999, is_transient=True), TemporaryFailure),
        (error(9999, status=500), TemporaryFailure),
        (error(9999), PermanentFailure),
        (httpx.Response(429, text="slow down"), RateLimited),
        (httpx.Response(502, text="<html>"), TemporaryFailure),
        (httpx.Response(404, text="nothing here"), PermanentFailure),
        (httpx.ReadTimeout(""), Unanswered),
        (httpx.ConnectError(""), TemporaryFailure),
    ],
)
async def test_a_refusal_is_one_of_ours(told: httpx.Response | Exception, failure: type[Exception]):
    assert type(await Provider(told).refuses(messenger, answer(address=PSID), OPTIONS)) is failure


async def test_outside_of_the_24_hours_it_is_said_who_has_to_write():
    told = await Provider(error(10, 2018278)).refuses(messenger, answer(address=PSID), OPTIONS)

    assert "has not written for 24 hours" in str(told)


async def test_a_token_that_facebook_repeats_is_not_told():
    told = await Provider(error(190, message="Malformed access token EAAsecret")).refuses(
        messenger, answer(address=PSID), OPTIONS
    )

    assert "Malformed access token …" in str(told)
    assert "make a new token" in str(told)


async def test_what_fails_in_the_middle_says_how_far_it_came():
    replied = await Provider(OK, OK, error(613)).hears(messenger, answer("1", "2", "3", address=PSID), OPTIONS)

    assert (replied.texts, replied.provider_id) == (2, "m_sent")
    assert isinstance(replied.failure, RateLimited)


async def test_nobody_cannot_be_answered():
    assert type(await Provider(OK).refuses(messenger, answer(address=None), OPTIONS)) is PermanentFailure


async def test_dots_show_that_an_answer_comes():
    provider = Provider(OK, error(551))

    await provider.sees(messenger, PSID, OPTIONS)

    assert provider.bodies == [{"recipient": {"id": PSID}, "sender_action": "typing_on"}]
    with pytest.raises(Failure):
        await provider.sees(messenger, PSID, OPTIONS)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"token": " "}, "is empty"),
        ({"token": "a b"}, "copy it again"),
        ({"verify_token": ""}, "is empty"),
        ({"app_id": "my-app"}, "should match"),
        ({"version": "25"}, "should match"),
        ({"channel": "line"}, "Extra inputs"),
        ({"base_url": "ftp://graph.test"}, "URL scheme"),
    ],
)
def test_wrong_options_are_refused(change: dict[str, Any], words: str):
    with pytest.raises(ValidationError) as caught:
        messenger.Options.model_validate(GIVEN | change)

    assert words in str(caught.value)
    assert SECRET not in str(caught.value)
