from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from app.channels import telegram as channel
from app.chats import telegram
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

SECRET = "a-secret_of-24-characters"
OPTIONS = telegram.Options.model_validate({"secret": SECRET, "channel": "bot", "username": "@Gigs_Bot"})
NAMELESS = telegram.Options.model_validate({"secret": SECRET, "channel": "bot"})
TOKEN = "123456789:" + "A" * 35
ACCOUNT = channel.Options.model_validate({"token": TOKEN, "base_url": "https://tg.test/"})

PERSON = {"id": 4200, "is_bot": False, "first_name": "Ploy"}
BOT = {"id": 123456789, "is_bot": True, "first_name": "Gigs", "username": "gigs_bot"}
PRIVATE = {"id": 4200, "type": "private", "first_name": "Ploy"}
GROUP = {"id": -1001234567890, "type": "supergroup", "title": "Gigs"}

OK = httpx.Response(200, json={"ok": True, "result": {"message_id": 77}})


def message(**told: Any) -> dict[str, Any]:
    return {"message_id": 7, "from": PERSON, "chat": PRIVATE, "date": 1_764_547_200, **told}


def update(**told: Any) -> bytes:
    return body({"update_id": 900_001, **told})


def said(options: telegram.Options | None = None, /, **told: Any) -> Said:
    [one] = telegram.parse(update(**told), options or OPTIONS)
    return one


def entity(kind: str, start: int, length: int, **more: Any) -> dict[str, Any]:
    return {"type": kind, "offset": start, "length": length, **more}


def in_group(text: str, *entities: dict[str, Any], **more: Any) -> Said:
    return said(OPTIONS, message=message(chat=GROUP, text=text, entities=list(entities), **more))


def refusal(status: int, words: str, **parameters: int) -> httpx.Response:
    told = {"ok": False, "error_code": status, "description": words}
    return httpx.Response(status, json=told | ({"parameters": parameters} if parameters else {}))


def test_the_secret_is_looked_at_whatever_the_case_of_the_header():
    for name in ("x-telegram-bot-api-secret-token", "X-Telegram-Bot-Api-Secret-Token"):
        telegram.verify(b"{}", {name: SECRET}, OPTIONS)


def test_while_the_secret_changes_both_are_taken():
    options = telegram.Options.model_validate({"secret": [SECRET, "the-next-one"], "channel": "bot"})

    telegram.verify(b"", {"x-telegram-bot-api-secret-token": "the-next-one"}, options)


@pytest.mark.parametrize("given", [None, "", SECRET[:-1], SECRET + "x", SECRET.upper(), "กข", "\ud83d"])
def test_another_secret_is_refused(given: str | None):
    headers = {} if given is None else {"x-telegram-bot-api-secret-token": given}

    with pytest.raises(SignatureError) as caught:
        telegram.verify(b"{}", headers, OPTIONS)
    assert str(caught.value) == telegram.REFUSED


def test_telegram_asks_nothing_by_get():
    assert telegram.challenge({"hub.challenge": "1"}, OPTIONS) is None


def test_a_text_is_a_message():
    assert said(message=message(text="สวัสดี 😀\nhow much?")) == Said(
        id="900001",
        kind="message",
        conversation="4200",
        address="4200",
        person="4200",
        text="สวัสดี 😀\nhow much?",
        at=datetime(2025, 12, 1, tzinfo=UTC),
    )


@pytest.mark.parametrize(
    ("told", "words"),
    [
        ({"photo": [{"file_id": "f", "width": 1, "height": 1}], "caption": "my cat"}, "[image] my cat"),
        ({"photo": []}, "[image]"),
        ({"video": {"file_id": "f"}}, "[video]"),
        ({"video_note": {"file_id": "f"}}, "[video]"),
        ({"animation": {"file_id": "f"}, "document": {"file_id": "f"}}, "[animation]"),
        ({"audio": {"file_id": "f"}}, "[audio]"),
        ({"voice": {"file_id": "f"}}, "[audio]"),
        ({"document": {"file_id": "f", "file_name": "cv.pdf"}}, "[file]"),
        ({"sticker": {"file_id": "f", "emoji": "👋"}}, "[sticker]"),
        ({"location": {"latitude": 13.7, "longitude": 100.5}}, "[location]"),
        ({"venue": {"title": "Shop"}, "location": {"latitude": 13.7, "longitude": 100.5}}, "[location]"),
        ({"contact": {"phone_number": "1", "first_name": "A"}}, "[contact]"),
        ({"poll": {"id": "1", "question": "?"}}, "[poll]"),
        ({"dice": {"emoji": "🎲", "value": 4}}, "[dice]"),
        ({"game": {"title": "g"}}, "[game]"),
    ],
)
def test_what_is_no_text_is_a_word_in_brackets(told: dict[str, Any], words: str):
    one = said(message=message(**told))

    assert (one.kind, one.text) == ("message", words)


@pytest.mark.parametrize(
    "told",
    [
        {"new_chat_members": [PERSON]},
        {"left_chat_member": PERSON},
        {"new_chat_title": "New"},
        {"pinned_message": {"message_id": 1}},
        {"migrate_to_chat_id": -100999},
        {"text": "hi", "from": BOT | {"username": "other_bot"}},
        {"text": "hi", "is_automatic_forward": True},
        {"text": "hi", "chat": {"id": -1009, "type": "channel"}},
        {"text": "hi", "chat": {}},
    ],
)
def test_messages_about_the_chat_and_of_other_bots_are_not_answered(told: dict[str, Any]):
    assert said(message=message(**told)).kind == "other"


@pytest.mark.parametrize(
    "kind",
    [
        "edited_message",
        "channel_post",
        "edited_channel_post",
        "business_message",
        "message_reaction",
        "chat_member",
        "chat_join_request",
        "inline_query",
        "poll_answer",
        "something_new",
    ],
)
def test_other_updates_are_seen_and_not_answered(kind: str):
    one = said(**{kind: message(text="hello")})

    assert (one.id, one.kind, one.address) == ("900001", "other", "4200")


def test_an_update_without_a_chat_is_seen():
    assert said(inline_query={"id": "1", "from": PERSON}).conversation == "4200"
    assert said().kind == said(poll={"id": "1"}).kind == "other"


def test_a_button_says_what_it_stands_for():
    query = {"id": "1", "from": PERSON, "message": message(chat=GROUP, **{"from": BOT}), "data": "book:42"}
    one = said(callback_query=query)

    assert (one.kind, one.text, one.person, one.address) == ("message", "book:42", "4200", str(GROUP["id"]))
    assert one.mentioned
    assert one.at is None


@pytest.mark.parametrize("query", [{"data": "x"}, {"game_short_name": "g", "message": message()}, {"data": 1}])
def test_a_button_without_a_chat_or_a_meaning_is_not_answered(query: dict[str, Any]):
    assert said(callback_query={"id": "1", "from": PERSON, **query}).kind == "other"


@pytest.mark.parametrize(
    ("chat", "before", "after", "kind"),
    [
        (PRIVATE, "member", "kicked", "unfollow"),
        (PRIVATE, "kicked", "member", "follow"),
        (GROUP, "left", "member", "join"),
        (GROUP, "left", "administrator", "join"),
        (GROUP, "member", "kicked", "leave"),
        (GROUP, "administrator", "left", "leave"),
        (GROUP, "member", "administrator", "other"),
        (GROUP, "kicked", "left", "other"),
        (GROUP, "member", "unheard-of", "other"),
        (GROUP, None, "member", "join"),
    ],
)
def test_what_becomes_of_the_bot_is_told(chat: dict[str, Any], before: str | None, after: str, kind: str):
    change = {
        "chat": chat,
        "from": PERSON,
        "date": 1_764_547_200,
        "old_chat_member": {"user": BOT, "status": before},
        "new_chat_member": {"user": BOT, "status": after},
    }

    assert said(my_chat_member=change).kind == kind


def test_a_bot_that_is_restricted_may_be_out():
    change = {
        "chat": GROUP,
        "old_chat_member": {"status": "member"},
        "new_chat_member": {"status": "restricted", "is_member": False},
    }

    assert said(my_chat_member=change).kind == "leave"


def test_in_a_group_one_is_answered_who_names_the_bot():
    one = in_group("😀 @Gigs_Bot how much?", entity("mention", 3, 9))

    assert (one.group, one.mentioned, one.text) == (True, True, "😀  how much?")
    assert (one.conversation, one.person) == ("-1001234567890", "4200")


def test_a_caption_may_name_the_bot():
    told = message(chat=GROUP, photo=[], caption="@gigs_bot this?", caption_entities=[entity("mention", 0, 9)])

    assert said(message=told).mentioned
    assert said(message=told).text == "[image] this?"


@pytest.mark.parametrize(
    ("text", "command", "mentioned", "words"),
    [
        ("/help@gigs_bot now", 14, True, "/help now"),
        ("/help@GIGS_BOT", 14, True, "/help"),
        ("/help@weather_bot", 17, False, "/help@weather_bot"),
        ("/help", 5, True, "/help"),
    ],
)
def test_a_command_is_for_whom_it_names(text: str, command: int, mentioned: bool, words: str):  # noqa: FBT001 - a table's column
    one = in_group(text, entity("bot_command", 0, command))

    assert (one.mentioned, one.text) == (mentioned, words)


def test_a_reply_to_the_bot_is_for_it():
    assert in_group("yes", reply_to_message=message(**{"from": BOT})).mentioned
    assert not in_group("yes", reply_to_message=message()).mentioned
    assert not in_group("yes", reply_to_message=message(**{"from": BOT | {"username": "other_bot"}})).mentioned


def test_a_bot_named_without_a_username_is_known_by_its_account():
    assert in_group("Gigs, hello", entity("text_mention", 0, 4, user=BOT)).mentioned
    assert not in_group("Ploy, hello", entity("text_mention", 0, 4, user=PERSON)).mentioned


def test_without_a_name_whatever_is_called_a_bot_is_taken_for_it():
    other = message(chat=GROUP, text="@weather_bot hi", entities=[entity("mention", 0, 12)])
    person = message(chat=GROUP, text="@ploy hi", entities=[entity("mention", 0, 5)])

    assert said(NAMELESS, message=other).mentioned
    assert not said(NAMELESS, message=person).mentioned
    assert not said(OPTIONS, message=other).mentioned


@pytest.mark.parametrize("entities", [None, "x", [None], [{"type": "mention"}], [entity("mention", 5, 500)]])
def test_in_a_group_others_are_not_spoken_to(entities: object):
    one = said(message=message(chat=GROUP, text="@gigs_bot", entities=entities))

    assert (one.group, one.mentioned, one.text) == (True, False, "@gigs_bot")


def test_an_administrator_who_writes_as_the_group_is_no_bot():
    anonymous = {"id": 1087968824, "is_bot": True, "username": "GroupAnonymousBot"}

    assert in_group("hello", sender_chat=GROUP, **{"from": anonymous}).kind == "message"


def test_a_topic_is_a_conversation_of_its_own():
    one = in_group("hello", message_thread_id=5, is_topic_message=True)
    reply = in_group("hello", message_thread_id=5)

    assert one.conversation == one.address == "-1001234567890/5"
    assert reply.address == "-1001234567890"


@pytest.mark.parametrize("raw", [b"", b"[]", b"{}", b'{"update_id": "1"}', b'{"update_id": true}', b"\xff"])
def test_what_is_no_update_is_refused(raw: bytes):
    with pytest.raises(Malformed):
        telegram.parse(raw, OPTIONS)


JSON: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)
KEYS = ["from", "chat", "date", "text", "entities", "photo", "reply_to_message", "sender_chat", "message_thread_id"]
KINDS = ["message", "callback_query", "my_chat_member", "edited_message", "x"]


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(KINDS), st.sampled_from(KEYS), JSON, JSON)
def test_a_shape_that_nobody_expected_breaks_nothing(kind: str, key: str, value: Any, other: Any):
    told = message(text="@gigs_bot hi", entities=[{"type": "mention", "offset": other, "length": 9}, other])
    told |= {"message": dict(told), "data": value, "new_chat_member": other, "is_topic_message": True, key: value}

    for raw in (update(**{kind: told}), update(**{kind: value, "more": other})):
        [one] = telegram.parse(raw, OPTIONS)
        assert one.id == "900001"
        assert one.conversation
        one.text.encode()


async def test_an_answer_is_plain_text_without_previews():
    provider = Provider(OK)

    replied = await provider.hears(telegram, answer("<b>สวัสดี</b> 😀", address="4200"), ACCOUNT)

    assert replied == Replied(texts=1, provider_id="77")
    assert provider.paths == [f"/bot{TOKEN}/sendMessage"]
    assert provider.bodies == [
        {"chat_id": "4200", "text": "<b>สวัสดี</b> 😀", "link_preview_options": {"is_disabled": True}}
    ]


async def test_an_answer_stays_in_its_topic():
    provider = Provider(OK)

    await provider.hears(telegram, answer(address="-1001234567890/5"), ACCOUNT)

    assert provider.bodies[0]["chat_id"] == "-1001234567890"
    assert provider.bodies[0]["message_thread_id"] == 5


@pytest.mark.parametrize("character", ["😀", "ที่", "x"])
async def test_a_long_answer_is_several_messages(character: str):
    texts = splitted(telegram, character * 9000)
    provider = Provider(OK)

    replied = await provider.hears(telegram, answer(*texts, address="4200"), ACCOUNT)

    sent = [told["text"] for told in provider.bodies]
    assert tuple(sent) == texts
    assert replied.texts == len(sent) > 1
    assert all(len(one.encode("utf-16-le")) // 2 <= 4096 for one in sent)


@pytest.mark.parametrize(
    ("told", "failure"),
    [
        (refusal(429, "Too Many Requests: retry after 17", retry_after=17), RateLimited),
        (refusal(403, "Forbidden: bot was blocked by the user"), Blocked),
        (refusal(400, "Bad Request: chat not found"), Blocked),
        (refusal(400, "Bad Request: message thread not found"), PermanentFailure),
        (refusal(401, "Unauthorized"), PermanentFailure),
        (refusal(404, "Not Found"), PermanentFailure),
        (refusal(502, "Bad Gateway"), TemporaryFailure),
        (httpx.Response(403, text="a proxy"), PermanentFailure),
        (httpx.ReadTimeout(""), Unanswered),
        (httpx.ConnectError(""), TemporaryFailure),
    ],
)
async def test_a_refusal_is_one_of_ours(told: httpx.Response | Exception, failure: type[Exception]):
    assert type(await Provider(told).refuses(telegram, answer(address="4200"), ACCOUNT)) is failure


async def test_a_rate_limit_says_how_long_it_lasts():
    told = await Provider(refusal(429, "slow", retry_after=17)).refuses(telegram, answer(), ACCOUNT)

    assert isinstance(told, RateLimited)
    assert told.retry_after == timedelta(seconds=17)


async def test_a_group_that_has_become_a_supergroup_is_answered_there():
    provider = Provider(refusal(400, "group chat was upgraded", migrate_to_chat_id=-100777), OK)

    replied = await provider.hears(telegram, answer(address="-55"), ACCOUNT)

    assert replied.texts == 1
    assert [told["chat_id"] for told in provider.bodies] == ["-55", "-100777"]


async def test_what_fails_in_the_middle_says_how_far_it_came():
    replied = await Provider(OK, refusal(429, "slow", retry_after=1)).hears(telegram, answer("1", "2"), ACCOUNT)

    assert (replied.texts, replied.provider_id) == (1, "77")
    assert isinstance(replied.failure, RateLimited)


async def test_nobody_cannot_be_answered():
    assert type(await Provider(OK).refuses(telegram, answer(address=None), ACCOUNT)) is PermanentFailure


async def test_typing_is_shown_in_the_topic():
    provider = Provider(OK, refusal(400, "chat not found"))

    await provider.sees(telegram, "-55/5", ACCOUNT)

    assert provider.paths == [f"/bot{TOKEN}/sendChatAction"]
    assert provider.bodies == [{"chat_id": "-55", "message_thread_id": 5, "action": "typing"}]
    with pytest.raises(Failure):
        await provider.sees(telegram, "-55", ACCOUNT)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"secret": "short"}, "must have 8 to 256"),
        ({"secret": "with spaces in it"}, "must have 8 to 256"),
        ({"secret": [SECRET, "ก" * 10]}, "must have 8 to 256"),
        ({"username": "a b"}, "name of the bot"),
        ({"token": TOKEN}, "Extra inputs"),
    ],
)
def test_wrong_options_are_refused(change: dict[str, Any], words: str):
    with pytest.raises(ValidationError) as caught:
        telegram.Options.model_validate({"secret": SECRET, "channel": "bot"} | change)

    assert words in str(caught.value)
    assert "spaces in it" not in str(caught.value)
