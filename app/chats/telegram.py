"""Telegram: a bot's updates by webhook, answered by `sendMessage`.

Source: core.telegram.org/bots/api (sections "Getting updates", "setWebhook", "sendMessage", "sendChatAction") and
core.telegram.org/bots/features#privacy-mode; the words of refusals from github.com/tdlib/telegram-bot-api.
"""

from __future__ import annotations

import json
import re
from datetime import timedelta
from http import HTTPStatus
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, SecretStr

from app.chats import Secrets, bytes_of, header, one_by_one
from app.clients.http import failure_of, json_of, post, wait_of
from app.domain import deliveries, doorways, signatures, textcut
from app.domain.chats import Malformed, Replied, Said
from app.domain.errors import Blocked, Failure, PermanentFailure, RateLimited, SignatureError, TemporaryFailure

if TYPE_CHECKING:
    from collections.abc import Mapping

    import httpx

    from app.chats import Account
    from app.domain.chats import Answer, Kind
    from app.domain.findings import Finding

CHANNEL: str | None = "telegram"

WITHIN = timedelta(seconds=60)

TEXT_LIMIT = 4096
MOST_TEXTS = 5
length = textcut.utf16_units

SECRET = re.compile("[A-Za-z0-9_-]{8,256}")
USERNAME = re.compile("@?[A-Za-z][A-Za-z0-9_]{3,31}")

SIGNATURE = re.compile(rb"[A-Za-z0-9_-]{1,256}")
"""All that Telegram takes as one."""

REFUSED = "the header X-Telegram-Bot-Api-Secret-Token is not the secret of this chat"

WORD_BY_CONTENT = {
    "animation": "animation",  # comes with `document`
    "photo": "image",
    "video": "video",
    "video_note": "video",
    "audio": "audio",
    "voice": "audio",
    "document": "file",
    "sticker": "sticker",
    "venue": "location",  # comes with `location`
    "location": "location",
    "contact": "contact",
    "poll": "poll",
    "dice": "dice",
    "game": "game",
    "story": "story",
    "paid_media": "media",
    "checklist": "checklist",
}
"""What a message may hold in place of a text. One that holds none of it is about the chat, as somebody's joining."""

IN = frozenset({"member", "administrator", "creator", "restricted"})
OUT = frozenset({"left", "kicked"})

TOPIC = "/"
"""Between a group and its topic, in an address."""

ADVICE_BY_STATUS = {
    401: "the token of the chat's channel is wrong or was revoked: ask @BotFather for the bot's current one",
    404: "Telegram knows no bot by this token: copy it again from @BotFather, and check the channel's `base_url`",
}
REDIRECT_ADVICE = "redirects are not followed: check the channel's `base_url`"

BLOCKING = ("chat not found", "user not found", "peer_id_invalid", "user is deactivated", "chat_write_forbidden")
BLOCKED_ADVICE = "the person has blocked the bot, or the bot may not write in the group"

SET = "tell Telegram by setWebhook, with the chat's `secret` as its secret_token (docs/guides/chats.md)"
REFUSED_ADVICE = "401 is the secret_token, which is not the chat's `secret`; 404 the name of the chat in the address"


def _readable(secrets: tuple[SecretStr, ...]) -> tuple[SecretStr, ...]:
    if not all(SECRET.fullmatch(secret.get_secret_value()) for secret in secrets):
        raise ValueError("must have 8 to 256 of A-Z, a-z, 0-9, _ and -; make one of `openssl rand -hex 24`")
    return secrets


def _username(value: str) -> str:
    if not USERNAME.fullmatch(value):
        raise ValueError('must be the name of the bot; write it like "gigs_bot"')
    return value.removeprefix("@").lower()


class Options(BaseModel):
    """`[chats.x] kind = "telegram"`, its own keys."""

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)

    secret: Annotated[Secrets, AfterValidator(_readable)]
    """What was given to `setWebhook` as `secret_token`."""

    channel: str
    """The name of a `[channels.x]` of the same bot, whose token answers."""

    username: Annotated[str, AfterValidator(_username)] | None = None
    """The bot's own name, for groups. None: whatever is called a bot there is taken for it."""


def signed(headers: Mapping[str, str]) -> bool:
    """By its secret word."""
    return SIGNATURE.fullmatch(header(headers, "x-telegram-bot-api-secret-token")) is not None


def verify(raw: bytes, headers: Mapping[str, str], options: Options) -> None:  # noqa: ARG001 - as every kind
    """By the header alone: Telegram signs no bodies."""
    given = header(headers, "x-telegram-bot-api-secret-token")
    if not signatures.any_equal([given], bytes_of(options.secret)):
        raise SignatureError(REFUSED)


def challenge(query: Mapping[str, str], options: Options) -> str | None:  # noqa: ARG001 - as every kind
    """Telegram does not ask."""
    return None


def parse(raw: bytes, options: Options) -> list[Said]:
    """The one update of a delivery.

    Messages that were edited, that stand in a channel or that a bot has written are `other`.
    """
    update = deliveries.document(raw)
    update_id = update.get("update_id")
    if not isinstance(update_id, int) or isinstance(update_id, bool):
        raise Malformed("the body holds no number `update_id`, which every update of Telegram has")
    found = [key for key in ("message", "callback_query", "my_chat_member") if isinstance(update.get(key), dict)]
    match found:
        case ["message"]:
            return [_message(str(update_id), update["message"], options)]
        case ["callback_query"]:
            return [_pressed(str(update_id), update["callback_query"])]
        case ["my_chat_member"]:
            return [_membership(str(update_id), update["my_chat_member"])]
    told = next(iter(deliveries.tables(list(update.values()))), {})
    return [_said(str(update_id), told, kind="other")]


async def reply(answer: Answer, account: Account, http: httpx.AsyncClient) -> Replied:
    """One request for each text, as plain text; there is no key by which a repeat would be known.

    Raises:
        Blocked: nothing will reach this chat.
    """

    async def send(text: str) -> str | None:
        body = {**_place(str(answer.address)), "text": text, "link_preview_options": {"is_disabled": True}}
        result = deliveries.table(json_of(await _post("sendMessage", body, account, http)).get("result"))
        return deliveries.name(result.get("message_id"))

    if answer.address is None:
        raise PermanentFailure("Telegram has not said in which chat it was, so that nobody can be answered")
    return await one_by_one(answer.texts, send)


async def typing(address: str, account: Account, http: httpx.AsyncClient) -> None:
    """For five seconds, or until the answer."""
    await _post("sendChatAction", {**_place(address), "action": "typing"}, account, http)


async def probe(door: str | None, account: Account, http: httpx.AsyncClient) -> list[Finding]:
    """What Telegram knows of the webhook ("getWebhookInfo"); whether the secret is right, only a refusal tells."""
    info = deliveries.table(json_of(await _post("getWebhookInfo", {}, account, http)).get("result"))
    found = [doorways.registered(deliveries.name(info.get("url")), door, how=SET)]
    if isinstance(given := info.get("allowed_updates"), list):  # absent: all that are of use
        found.append(
            doorways.subscribed(given, needed=["message"], useful=["callback_query", "my_chat_member"], how=SET)
        )
    waiting, error = info.get("pending_update_count"), deliveries.text(info.get("last_error_message"))
    return [
        *found,
        doorways.delivered(waiting if isinstance(waiting, int) else 0, error, change=REFUSED_ADVICE),
    ]


def _said(update_id: str, told: dict[str, Any], *, kind: Kind, **more: Any) -> Said:
    """`told` is a message, or whatever else has a chat and somebody it is from."""
    chat = deliveries.table(told.get("chat"))
    chat_id = deliveries.name(chat.get("id"))
    person = deliveries.name(deliveries.table(told.get("from")).get("id"))
    topic = deliveries.name(told.get("message_thread_id")) if told.get("is_topic_message") is True else None
    address = f"{chat_id}{TOPIC}{topic}" if chat_id and topic else chat_id
    facts = {
        "person": person,
        "at": deliveries.instant(told.get("date"), per_second=1),
        "group": chat.get("type") in ("group", "supergroup"),
    }
    return Said(
        id=update_id,
        kind=kind if address is not None else "other",
        conversation=address or person or "telegram",
        address=address,
        **(facts | more),
    )


def _message(update_id: str, message: dict[str, Any], options: Options) -> Said:
    sender, chat = deliveries.table(message.get("from")), deliveries.table(message.get("chat"))
    anonymous = deliveries.table(message.get("sender_chat")).get("id") == chat.get(
        "id"
    )  # an administrator of the group
    by_bot = sender.get("is_bot") is True and not anonymous
    text, mentioned = _text(message, options)
    told = bool(text) and not by_bot and message.get("is_automatic_forward") is not True
    answerable = told and chat.get("type") != "channel"
    return _said(update_id, message, kind="message" if answerable else "other", text=text, mentioned=mentioned)


def _pressed(update_id: str, query: dict[str, Any]) -> Said:
    """A button under a message of the bot's: what it stands for is what was said."""
    text = deliveries.text(query.get("data"))
    message = deliveries.table(query.get("message"))
    who = {"from": query.get("from")}
    return _said(
        update_id, message | who, kind="message" if text else "other", text=text, at=None, mentioned=bool(text)
    )


def _membership(update_id: str, change: dict[str, Any]) -> Said:
    """What has become of the bot itself in a chat."""
    before, after = (_is_in(deliveries.table(change.get(key))) for key in ("old_chat_member", "new_chat_member"))
    kind: Kind = "other"
    if after is not None and after != before:
        private = deliveries.table(change.get("chat")).get("type") == "private"
        kind = ("follow" if after else "unfollow") if private else ("join" if after else "leave")
    return _said(update_id, change, kind=kind)


def _is_in(member: dict[str, Any]) -> bool | None:
    """None: it does not say."""
    status = deliveries.name(member.get("status"))
    if status == "restricted":
        return member.get("is_member") is not False
    return True if status in IN else False if status in OUT else None


def _text(message: dict[str, Any], options: Options) -> tuple[str, bool]:
    """What it says, without the bot's own name in it, and whether it says so to the bot."""
    key, entities = ("text", "entities") if "text" in message else ("caption", "caption_entities")
    written = deliveries.written(message.get(key))
    spans, named = _names(written, deliveries.tables(message.get(entities))[: deliveries.MOST_NAMES], options)
    text = deliveries.text(deliveries.without_names(written, spans)) or deliveries.text(written)
    word = next((word for content, word in WORD_BY_CONTENT.items() if content in message), None)
    return (deliveries.worded(word, text) if word else text), named or _is_reply(message, options)


def _names(written: str, entities: list[dict[str, Any]], options: Options) -> tuple[list[tuple[int, int]], bool]:
    """Where the bot's name stands in a text, and whether the text is for it."""
    spans: list[tuple[int, int]] = []
    named = False
    for entity in entities:
        start, size = entity.get("offset"), entity.get("length")
        marked = deliveries.piece(written, start, size)
        if not marked or not isinstance(start, int) or not isinstance(size, int):
            continue
        command, at, name = marked.partition("@")
        match entity.get("type"):
            case "mention" if _is_bot(name, options):
                spans.append((start, size))
                named = True
            case "bot_command" if at and _is_bot(name, options):
                spans.append((start + textcut.utf16_units(command), size - textcut.utf16_units(command)))
                named = True
            case "bot_command" if not at and start == 0:
                named = True
            case "text_mention":
                named = named or _is_us(deliveries.table(entity.get("user")), options)
    return spans, named


def _is_bot(name: str, options: Options) -> bool:
    """Every bot's name ends in "bot"."""
    return name.lower() == options.username if options.username else name.lower().endswith("bot")


def _is_us(user: dict[str, Any], options: Options) -> bool:
    name = deliveries.name(user.get("username"))
    return user.get("is_bot") is True and name is not None and _is_bot(name, options)


def _is_reply(message: dict[str, Any], options: Options) -> bool:
    return _is_us(deliveries.table(deliveries.table(message.get("reply_to_message")).get("from")), options)


def _place(address: str) -> dict[str, Any]:
    chat, _, topic = address.partition(TOPIC)
    return {"chat_id": chat, "message_thread_id": int(topic)} if topic.isdecimal() else {"chat_id": chat}


async def _post(method: str, body: dict[str, Any], account: Account, http: httpx.AsyncClient) -> httpx.Response:
    """The answer to a success; of a group that has become a supergroup, at its new id."""
    response = await _asked(method, body, account, http)
    if response.is_success:
        return response
    new = deliveries.name(deliveries.table(json_of(response).get("parameters")).get("migrate_to_chat_id"))
    if new is not None:
        moved = {key: value for key, value in body.items() if key != "message_thread_id"} | {"chat_id": new}
        response = await _asked(method, moved, account, http)
    if not response.is_success:
        raise _failure(response)
    return response


async def _asked(method: str, body: dict[str, Any], account: Account, http: httpx.AsyncClient) -> httpx.Response:
    return await post(
        http,
        f"{str(account.base_url).rstrip('/')}/bot{account.token.get_secret_value()}/{method}",
        content=json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode(),
        headers={"Content-Type": "application/json"},
    )


def _failure(response: httpx.Response) -> Failure:
    """Telegram's answer as ours, with what to do about it."""
    failure, answer = failure_of(response), json_of(response)
    if isinstance(failure, RateLimited):
        asked = wait_of(deliveries.table(answer.get("parameters")).get("retry_after"))
        return RateLimited(str(failure), retry_after=asked or failure.retry_after)
    if isinstance(failure, TemporaryFailure):
        return failure
    words = str(answer.get("description", "")).lower()
    if answer and (response.status_code == HTTPStatus.FORBIDDEN or any(word in words for word in BLOCKING)):
        return Blocked(f"{failure}; {BLOCKED_ADVICE}")
    advice = REDIRECT_ADVICE if response.has_redirect_location else ADVICE_BY_STATUS.get(response.status_code)
    return PermanentFailure(f"{failure}; {advice}") if advice else failure
