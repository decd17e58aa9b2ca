r"""Discord, through a webhook of a channel.

Source: docs.discord.com/developers, "Webhook Resource: Execute Webhook", "Rate Limits" and "Opcodes and Status Codes";
github.com/discord/discord-api-spec. With `wait` an answer proves that the message stands in the channel. There is no
idempotency key. Any character that is no letter, digit or white space is shown as it is after a backslash.
"""

from __future__ import annotations

import json
import re
from datetime import timedelta
from http import HTTPStatus
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, HttpUrl, SecretStr

from app.clients.http import failure_of, get, json_of, post, wait_of
from app.domain import layouts
from app.domain.errors import Blocked, Failure, PermanentFailure, RateLimited, TemporaryFailure
from app.domain.findings import Finding, ok
from app.domain.messages import Body, Digest, Message, Part, Receipt

if TYPE_CHECKING:
    import httpx

REPEATABLE_FOR: timedelta | None = None
"""Discord knows no key: a message whose answer was lost may arrive twice."""

ADDRESSED = False
"""The webhook belongs to one channel; recipients need no `to`."""

CONTENT_LIMIT = 2000
"""Characters of a message. Discord's API counts code points (its engineer in discord-api-docs, issue 1315), of which
there are never more than UTF-16 units, in which we count."""

VERSION = "v10"
"""Addresses are copied without one, and would get the oldest, whose 429 counts milliseconds."""

WEBHOOK = re.compile(
    r"https://(?:(?:ptb|canary)\.)?(?:discord|discordapp)\.com"
    r"/api/(?:v[0-9]+/)?webhooks/(?P<id>[0-9]{10,25})/(?P<token>[A-Za-z0-9_-]{20,200})/?(?:\?.*)?"
)

SUPPRESS_EMBEDS = 1 << 2
"""A flag of messages: no pictures of what links lead to."""

MARKS = re.compile(r"[\\`*_~|<>#\[\]()@+.:-]")
"""What makes emphasis, code, spoilers, quotes, headings, lists, links, mentions and named emoji. One too many does no
harm: the backslash is not shown."""

CLOUDFLARE_WAIT = timedelta(minutes=30)
"""Whoever sent too much that was wrong is refused by his IP address, on small hosts for what a neighbour did."""

WEBHOOK_ADVICE = (
    "the webhook was deleted or its address is not whole: make one in the channel's settings, Integrations, Webhooks, "
    "and put it into `webhook_url`; with `thread_id`, check that the thread is in this channel"
)
ADVICE_BY_CODE = {
    10003: "check the channel's `thread_id`: there is no such thread in the webhook's channel",
    220001: "the webhook belongs to a forum: put the id of one of its posts into `thread_id`",
}
REDIRECT_ADVICE = "redirects are not followed: check the channel's `webhook_url` and `base_url`"


def _webhook(value: SecretStr) -> SecretStr:
    address = value.get_secret_value().strip()
    if not WEBHOOK.fullmatch(address):
        raise ValueError(
            "this is no address of a Discord webhook; copy it in the channel's settings, Integrations, Webhooks, "
            "like https://discord.com/api/webhooks/…/…"
        )
    return SecretStr(address)


def _thread(written: str) -> str:
    if not re.fullmatch("[0-9]{10,25}", written):
        raise ValueError(
            "this is no id of a thread; switch on Developer Mode in Discord's settings, Advanced, and copy the id from "
            "the thread's menu"
        )
    return written


def _username(name: str) -> str:
    if any(word in name.lower() for word in ("discord", "clyde")):
        raise ValueError('Discord takes no name that has "discord" or "clyde" in it; choose another one')
    return name


class Options(BaseModel):
    """`[channels.x] kind = "discord"`."""

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)

    webhook_url: Annotated[SecretStr, AfterValidator(_webhook)]

    thread_id: Annotated[str, AfterValidator(_thread)] | None = None
    """A thread of the webhook's channel, or a post of its forum."""

    username: Annotated[str, Field(min_length=1, max_length=80), AfterValidator(_username)] | None = None
    """In place of the webhook's own name."""

    base_url: HttpUrl = HttpUrl("https://discord.com")


MARKUP = layouts.Markup(
    escape=lambda text: MARKS.sub(r"\\\g<0>", text),
    link=lambda link: f"<{link}>",
)


def compose(digest: Digest, options: Options) -> list[Body]:
    """Texts as full as Discord takes them, one to a message. Nobody is notified by a name in a title."""
    return [_message(part, options) for part in layouts.lay_out(digest, MARKUP, limit=CONTENT_LIMIT)]


async def send(message: Message, options: Options, http: httpx.AsyncClient) -> Receipt:
    """Post the frozen bytes, and wait until Discord has stored the message."""
    thread = f"&thread_id={options.thread_id}" if options.thread_id else ""
    response = await post(
        http,
        f"{_address(options)}?wait=true{thread}",
        content=message.body.encode(),
        headers={"Content-Type": "application/json"},
    )
    if response.is_success:
        told = json_of(response).get("id")
        return Receipt(provider_id=told if isinstance(told, str) else None)
    raise _failure(response)


async def probe(options: Options, http: httpx.AsyncClient) -> list[Finding]:
    """Whether the webhook is there ("Get Webhook with Token").

    Raises:
        Failure: it is not, or Discord cannot be asked.
    """
    response = await get(http, _address(options), headers={})
    if not response.is_success:
        raise _failure(response)
    return [ok(f'the webhook is there, and is called "{json_of(response).get("name")}"')]


def _address(options: Options) -> str:
    webhook = WEBHOOK.fullmatch(options.webhook_url.get_secret_value())
    if webhook is None:
        raise PermanentFailure(WEBHOOK_ADVICE)
    base = str(options.base_url).rstrip("/")
    return f"{base}/api/{VERSION}/webhooks/{webhook['id']}/{webhook['token']}"


def _message(part: layouts.Written, options: Options) -> Body:
    told: dict[str, Any] = {
        "content": part.marked,
        "allowed_mentions": {"parse": []},
        "flags": SUPPRESS_EMBEDS,
    }
    if options.username is not None:
        told["username"] = options.username
    return Body(
        body=json.dumps(told, ensure_ascii=False, separators=(",", ":")),
        text=part.text,
        parts=(Part(text=part.text, length=part.length, limit=CONTENT_LIMIT),),
        items=part.items,
    )


def _failure(response: httpx.Response) -> Failure:
    """Discord's answer as ours, with what to do about it."""
    failure, answer = failure_of(response), json_of(response)
    if isinstance(failure, RateLimited):
        return RateLimited(str(failure), retry_after=wait_of(answer.get("retry_after")) or failure.retry_after)
    if isinstance(failure, TemporaryFailure):
        return failure
    if response.status_code == HTTPStatus.FORBIDDEN and "code" not in answer:
        return RateLimited(f"{failure}; Discord refuses this host's IP address for now", retry_after=CLOUDFLARE_WAIT)
    if response.status_code in {HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN, HTTPStatus.NOT_FOUND}:
        return Blocked(f"{failure}; {WEBHOOK_ADVICE}")
    code = answer.get("code")
    advice = ADVICE_BY_CODE.get(code) if isinstance(code, int) else None
    if response.has_redirect_location:
        advice = REDIRECT_ADVICE
    return PermanentFailure(f"{failure}; {advice}") if advice else failure
