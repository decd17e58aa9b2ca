"""ntfy, at ntfy.sh or a server of one's own.

Source: docs.ntfy.sh/publish, "Publish as JSON", "Updating + deleting notifications" and "Limitations";
github.com/binwiederhier/ntfy, server/errors.go. An answer proves that the server has the message for whoever subscribes
to the topic; not that anybody does. There is no idempotency key, but a repeat takes the place of what it repeats.
"""

from __future__ import annotations

import json
import re
from datetime import timedelta
from http import HTTPStatus
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, HttpUrl, SecretStr

from app.clients.http import failure_of, get, json_of, post
from app.domain import digests, layouts, textcut
from app.domain.errors import Blocked, Failure, PermanentFailure, RateLimited, TemporaryFailure
from app.domain.findings import Finding, fail, ok
from app.domain.messages import Body, Digest, Message, Part, Receipt

if TYPE_CHECKING:
    import httpx

    from app.domain.digests import Portion

REPEATABLE_FOR: timedelta | None = None
"""A server that knows nothing of sequences shows a repeat as a second message."""

MESSAGE_LIMIT = 4096
"""Bytes; a longer text would become an attachment, or be refused. The whole JSON may have twice as many, so that we
count a text as JSON writes it."""

TITLE_LIMIT = 1000
"""Bytes, of the 1 KB that is documented."""

CLICK_LIMIT = 1000
"""Bytes, for the sake of the whole JSON. A longer link is in the text."""

TOPIC = re.compile("[A-Za-z0-9_-]{1,64}")

DAILY_LIMIT_CODE = 42908
DAILY_LIMIT_WAIT = timedelta(hours=1)
"""The day's messages are counted by IP address, which small hosts share, and come back at a time that is not told."""

ADVICE_BY_STATUS = {
    400: "check the recipient's `to`, which must be a topic, and that the channel's `base_url` is an ntfy server",
    401: "the access token is wrong or has expired: make a new one in ntfy's account settings",
    404: "there is no ntfy server at this address: check the channel's `base_url`",
    413: "the server takes only shorter messages: check its message-size-limit",
}
TOPIC_ADVICE = (
    "the topic is somebody else's or may not be written to: choose another topic, or put an access token that may "
    "write to it into the channel's `token`"
)
REDIRECT_ADVICE = "redirects are not followed: check the channel's `base_url`"


def _token(value: SecretStr) -> SecretStr:
    token = value.get_secret_value().strip()
    if not re.fullmatch("tk_[A-Za-z0-9]+", token):
        raise ValueError("this is no access token of ntfy; make one in its account settings, it begins with tk_")
    return SecretStr(token)


class Options(BaseModel):
    """`[channels.x] kind = "ntfy"`."""

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)

    token: Annotated[SecretStr, AfterValidator(_token)] | None = None
    """None: for topics that anybody may write to."""

    priority: Annotated[int, Field(ge=1, le=5)] | None = None
    """1 is silent, 5 insists; None: 3."""

    base_url: HttpUrl = HttpUrl("https://ntfy.sh")


def check_address(to: str) -> str | None:
    """Why nobody can be reached there; None: it may be a topic."""
    if TOPIC.fullmatch(to):
        return None
    return "is no topic of ntfy; write at most 64 letters, digits, _ and -, the same that you subscribe to in the app"


def compose(digest: Digest, options: Options) -> list[Body]:
    """Texts as full as ntfy takes them, one to a message. Its first line is the title of the notification."""
    portions = layouts.portions(digest, limit=MESSAGE_LIMIT, length=_size)
    return [_message(digest, portion, options) for portion in portions]


async def send(message: Message, options: Options, http: httpx.AsyncClient) -> Receipt:
    """Post the frozen bytes as one and the same notification at every try."""
    headers = {"Content-Type": "application/json", "X-Sequence-ID": str(message.retry_key), **_authorization(options)}
    response = await post(http, str(options.base_url), content=message.body.encode(), headers=headers)
    if response.is_success:
        told = json_of(response).get("id")
        return Receipt(provider_id=told if isinstance(told, str) else None)
    raise _failure(response)


async def probe(options: Options, http: httpx.AsyncClient) -> list[Finding]:
    """Whether it is an ntfy server that is well, and knows the token: a wrong one is refused at every address of it.

    Raises:
        Failure: it does not know the token, or cannot be asked.
    """
    address = f"{str(options.base_url).rstrip('/')}/v1/health"
    response = await get(http, address, headers=_authorization(options))
    if not response.is_success:
        raise _failure(response)
    if json_of(response).get("healthy") is not True:
        return [fail("what answers there is no ntfy server, or is not well", "check the channel's `base_url`")]
    return [ok("the server is well; whether it takes messages to the topic, only a message can tell")]


def _authorization(options: Options) -> dict[str, str]:
    return {} if options.token is None else {"Authorization": f"Bearer {options.token.get_secret_value()}"}


def _message(digest: Digest, portion: Portion, options: Options) -> Body:
    text = portion.text
    first, _, rest = text.partition("\n")
    titled = bool(rest.strip()) and textcut.utf8_bytes(first) <= TITLE_LIMIT
    told: dict[str, Any] = {"topic": digest.to, "message": rest.strip() if titled else text}
    if titled:
        told["title"] = first
    if options.priority is not None:
        told["priority"] = options.priority
    if len(digest.items) == 1 and (link := digests.shown_link(digest.items[0].link or "")) in text.split("\n"):
        told |= {"click": link} if link and _size(link) <= CLICK_LIMIT else {}
    part = Part(text=text, length=_size(text), limit=MESSAGE_LIMIT)
    return Body(body=_json(told), text=text, parts=(part,), items=portion.items)


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _size(text: str) -> int:
    """Bytes as JSON writes them, without its quotes."""
    return textcut.utf8_bytes(_json(text)) - 2


def _failure(response: httpx.Response) -> Failure:
    """The server's answer as ours, with what to do about it."""
    failure = failure_of(response)
    if isinstance(failure, TemporaryFailure):
        if json_of(response).get("code") == DAILY_LIMIT_CODE:
            return RateLimited(
                f"the day's messages to the ntfy server are used up ({failure}): "
                "wait, or give the channel a `token` of an account of your own",
                retry_after=failure.retry_after or DAILY_LIMIT_WAIT,
            )
        return failure
    if response.status_code == HTTPStatus.FORBIDDEN:
        return Blocked(f"{failure}; {TOPIC_ADVICE}")
    advice = REDIRECT_ADVICE if response.has_redirect_location else ADVICE_BY_STATUS.get(response.status_code)
    return PermanentFailure(f"{failure}; {advice}") if advice else failure
