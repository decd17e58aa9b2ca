"""Telegram, by a bot's `sendMessage`.

Source: core.telegram.org/bots/api, sections "sendMessage", "Formatting options" and "ResponseParameters"; the words of
refusals from github.com/tdlib/telegram-bot-api. An answer proves that the message stands in the chat; nobody says
whether it was read. There is no idempotency key.
"""

from __future__ import annotations

import html
import json
import re
from datetime import timedelta
from http import HTTPStatus
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, HttpUrl, SecretStr

from app.clients.http import failure_of, get, json_of, post, wait_of
from app.domain import layouts, textcut
from app.domain.errors import Blocked, Failure, Moved, PermanentFailure, RateLimited, TemporaryFailure
from app.domain.findings import Finding, ok
from app.domain.messages import Body, Digest, Message, Part, Receipt
from app.domain.reach import Gaps

if TYPE_CHECKING:
    import httpx

    from app.domain.digests import Portion

REPEATABLE_FOR: timedelta | None = None
"""Telegram knows no key: a message whose answer was lost may arrive twice."""

GAPS = Gaps(channel=timedelta(milliseconds=40), recipient=timedelta(seconds=3))
"""Its FAQ ("My bot is hitting limits"): about one message a second to a chat, 20 a minute to a group, 30 a second to
all. What an id belongs to is not asked."""

TEXT_LIMIT = 4096
"""UTF-16 code units after the marks are read, so that `&lt;` is one."""

TOKEN = re.compile("[0-9]{5,20}:[A-Za-z0-9_-]{30,100}")

ADDRESS = re.compile("-?[1-9][0-9]{0,19}|@[A-Za-z][A-Za-z0-9_]{3,31}")

UNREADABLE = "can't parse entities"
"""Telegram does not read our marks: the same text goes once more without any."""

BLOCKING = (
    "chat not found",
    "user not found",
    "peer_id_invalid",
    "user is deactivated",
    "have no rights to send",
    "not enough rights to send",
    "need administrator rights",
    "chat_write_forbidden",
    "chat_restricted",
)
"""Words of a 400, in lower case, after which no message will reach this chat. Every 403 is such a one."""

BLOCKED_ADVICE = (
    "the person has to open the chat with the bot and press Start, or unblock it; in a group or a channel the bot "
    "must be a member that may post; check the recipient's `to`"
)
TOPIC_ADVICE = "check the channel's `message_thread_id`: the topic is closed or not in this group"
TOPIC_WORDS = ("message thread not found", "topic_closed", "topic_deleted")

ADVICE_BY_STATUS = {
    401: "the token is wrong or was revoked: ask @BotFather for the bot's current one",
    404: "Telegram knows no bot by this token: copy it again from @BotFather, and check the channel's `base_url`",
}
REDIRECT_ADVICE = "redirects are not followed: check the channel's `base_url`"


def _token(value: SecretStr) -> SecretStr:
    token = value.get_secret_value().strip()
    if not TOKEN.fullmatch(token):
        raise ValueError("this is no token of a bot; copy the one that @BotFather gave you, like 123456789:AA…")
    return SecretStr(token)


class Options(BaseModel):
    """`[channels.x] kind = "telegram"`."""

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)

    token: Annotated[SecretStr, AfterValidator(_token)]

    message_thread_id: Annotated[int, Field(ge=1)] | None = None
    """The topic of a forum group; None: where messages go that have none."""

    base_url: HttpUrl = HttpUrl("https://api.telegram.org")


def check_address(to: str) -> str | None:
    """Why nobody can be reached there; None: it may be a chat's id."""
    if ADDRESS.fullmatch(to):
        return None
    return (
        "is no chat of Telegram; write the id of a chat, a number such as 123456789 (-100… for a group or a channel), "
        "or the @name of a public channel or group"
    )


def compose(digest: Digest, options: Options) -> list[Body]:
    """Texts as full as Telegram takes them, one to a message."""
    portions = layouts.portions(digest, limit=TEXT_LIMIT, length=textcut.utf16_units)
    return [_message(digest.to, portion, options) for portion in portions]


def readdressed(body: str, to: str) -> str:
    """A frozen body for a chat that has moved, nothing else changed: nothing has arrived at the old address."""
    return _json(json.loads(body) | {"chat_id": to})


async def send(message: Message, options: Options, http: httpx.AsyncClient) -> Receipt:
    """Post the frozen bytes; where Telegram cannot read their marks, the same text as plain text.

    Raises:
        Moved: the group has become a supergroup, which has another id.
        Blocked: nothing will reach this chat.
    """
    response = await _post(message.body, options, http)
    if response.status_code == HTTPStatus.BAD_REQUEST and UNREADABLE in response.text:
        response = await _post(_plain(message.body), options, http)
    if response.is_success:
        return Receipt(provider_id=_id_of(json_of(response)))
    raise _failure(response)


async def probe(options: Options, http: httpx.AsyncClient) -> list[Finding]:
    """Which bot the token is of.

    Raises:
        Failure: Telegram does not know the token, or cannot be asked.
    """
    response = await get(http, _address(options, "getMe"), headers={})
    if not response.is_success:
        raise _failure(response)
    bot = json_of(response).get("result")
    name = bot.get("username") if isinstance(bot, dict) else None
    return [ok(f"the token is that of @{name}" if name else "the token is that of a bot")]


async def _post(body: str, options: Options, http: httpx.AsyncClient) -> httpx.Response:
    headers = {"Content-Type": "application/json"}
    return await post(http, _address(options, "sendMessage"), content=body.encode(), headers=headers)


def _address(options: Options, method: str) -> str:
    return f"{str(options.base_url).rstrip('/')}/bot{options.token.get_secret_value()}/{method}"


def _message(to: str, portion: Portion, options: Options) -> Body:
    text = portion.text
    told: dict[str, Any] = {
        "chat_id": to,
        "text": html.escape(text, quote=False),
        "parse_mode": "HTML",
        "link_preview_options": {"is_disabled": True},
    }
    if options.message_thread_id is not None:
        told["message_thread_id"] = options.message_thread_id
    part = Part(text=text, length=textcut.utf16_units(text), limit=TEXT_LIMIT)
    return Body(body=_json(told), text=text, parts=(part,), items=portion.items)


def _plain(body: str) -> str:
    told = json.loads(body)
    told.pop("parse_mode", None)
    return _json(told | {"text": html.unescape(told["text"])})


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _id_of(answer: dict[str, Any]) -> str | None:
    result = answer.get("result")
    told = result.get("message_id") if isinstance(result, dict) else None
    return str(told) if isinstance(told, int) else None


def _failure(response: httpx.Response) -> Failure:
    """Telegram's answer as ours, with what to do about it."""
    failure, answer = failure_of(response), json_of(response)
    parameters = answer.get("parameters")
    asked = parameters if isinstance(parameters, dict) else {}
    if isinstance(failure, RateLimited):
        return RateLimited(str(failure), retry_after=wait_of(asked.get("retry_after")) or failure.retry_after)
    if isinstance(failure, TemporaryFailure):
        return failure
    if isinstance(new := asked.get("migrate_to_chat_id"), int):
        return Moved(f"the group has become a supergroup, with the id {new}", to=str(new))
    words = str(answer.get("description", "")).lower()
    if answer and (response.status_code == HTTPStatus.FORBIDDEN or any(word in words for word in BLOCKING)):
        return Blocked(f"{failure}; {BLOCKED_ADVICE}")
    if any(word in words for word in TOPIC_WORDS):
        return PermanentFailure(f"{failure}; {TOPIC_ADVICE}")
    advice = REDIRECT_ADVICE if response.has_redirect_location else ADVICE_BY_STATUS.get(response.status_code)
    return PermanentFailure(f"{failure}; {advice}") if advice else failure
