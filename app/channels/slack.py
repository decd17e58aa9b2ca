"""Slack, through an incoming webhook.

Source: docs.slack.dev, "Sending messages using incoming webhooks", "Section block", "Text object", "Formatting message
text" and "Rate limits". The answer `ok` proves that the message stands in the channel. There is no idempotency key.
"""

from __future__ import annotations

import json
import re
from datetime import timedelta
from http import HTTPStatus
from typing import Annotated, Any

import httpx
from pydantic import AfterValidator, BaseModel, ConfigDict, HttpUrl, SecretStr

from app.clients.http import failure_of, post
from app.domain import layouts
from app.domain.errors import Blocked, Failure, PermanentFailure
from app.domain.messages import Body, Digest, Message, Part, Receipt
from app.domain.reach import Gaps

REPEATABLE_FOR: timedelta | None = None
"""Slack knows no key: a message whose answer was lost may arrive twice."""

ADDRESSED = False
"""The webhook belongs to one channel; recipients need no `to`."""

GAPS = Gaps(channel=timedelta(seconds=1))
"""Its page "Rate limits": one message a second to a channel, short bursts aside."""

SECTION_LIMIT = 3000
"""Characters in the text of one section, as it is sent."""

SECTIONS = 50
"""Blocks in one message."""

MESSAGE_LIMIT = 12_000
"""Characters in all sections together: near 13,000 Slack answers `msg_blocks_too_long`, which it documents nowhere
(github.com/slackapi/bolt-js, issue 2509)."""

WEBHOOK = re.compile(r"https://hooks\.slack(?:-gov)?\.com/services/[A-Za-z0-9]+/[A-Za-z0-9]+/[A-Za-z0-9]+/?")

GONE = frozenset({HTTPStatus.FORBIDDEN, HTTPStatus.NOT_FOUND, HTTPStatus.GONE})

BLOCKING = frozenset(
    {
        "action_prohibited",
        "channel_is_archived",
        "channel_not_found",
        "invalid_token",
        "no_active_hooks",
        "no_service",
        "no_service_id",
        "no_team",
        "posting_to_general_channel_denied",
        "team_disabled",
        "user_not_found",
    }
)
"""Answers after which nothing will get through, whatever their status."""

WEBHOOK_ADVICE = (
    "the webhook was switched off or its channel is gone or closed to it: add a new one in your app at "
    "api.slack.com/apps, Incoming Webhooks, and put its address into `webhook_url`"
)
REDIRECT_ADVICE = "redirects are not followed: check the channel's `webhook_url` and `base_url`"


def _webhook(value: SecretStr) -> SecretStr:
    address = value.get_secret_value().strip()
    if not WEBHOOK.fullmatch(address):
        raise ValueError(
            "this is no address of an incoming webhook; copy it from your app at api.slack.com/apps, Incoming "
            "Webhooks, like https://hooks.slack.com/services/T…/B…/…"
        )
    return SecretStr(address)


class Options(BaseModel):
    """`[channels.x] kind = "slack"`."""

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)

    webhook_url: Annotated[SecretStr, AfterValidator(_webhook)]

    base_url: HttpUrl | None = None
    """In place of the scheme and the host of `webhook_url`."""


def _escape(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


MARKUP = layouts.Markup(
    escape=_escape,
    link=lambda link: f"<{_escape(link).replace('|', '%7C')}>",  # a bar would begin the link's other name
)


def compose(digest: Digest, options: Options) -> list[Body]:  # noqa: ARG001 - as every channel
    """Sections as full as Slack takes them, as many to a message as it takes."""
    messages: list[list[layouts.Written]] = []
    room = 0
    for part in layouts.lay_out(digest, MARKUP, limit=SECTION_LIMIT):
        if part.length > room or len(messages[-1]) == SECTIONS:
            messages.append([])
            room = MESSAGE_LIMIT
        messages[-1].append(part)
        room -= part.length
    return [_message(parts) for parts in messages]


async def send(message: Message, options: Options, http: httpx.AsyncClient) -> Receipt:
    """Post the frozen bytes; where Slack does not take their blocks, their text alone."""
    response = await _post(message.body, options, http)
    if response.status_code == HTTPStatus.BAD_REQUEST and "blocks" in response.text:
        response = await _post(_json({"text": json.loads(message.body)["text"]}), options, http)
    if response.is_success:
        return Receipt()
    raise _failure(response)


def origin(options: Options) -> str:
    """Where the webhook is."""
    address = httpx.URL(str(options.base_url or options.webhook_url.get_secret_value()))
    return f"{address.scheme}://{address.netloc.decode()}"


async def _post(body: str, options: Options, http: httpx.AsyncClient) -> httpx.Response:
    address = httpx.URL(options.webhook_url.get_secret_value())
    if options.base_url is not None:
        address = httpx.URL(str(options.base_url).rstrip("/") + address.path)
    return await post(http, str(address), content=body.encode(), headers={"Content-Type": "application/json"})


def _message(parts: list[layouts.Written]) -> Body:
    sections = [
        {"type": "section", "text": {"type": "mrkdwn", "text": part.marked, "verbatim": True}, "expand": True}
        for part in parts
    ]
    told = {
        "text": "\n\n".join(part.marked for part in parts),  # in notifications, and where blocks are not shown
        "blocks": sections,
        "unfurl_links": False,
        "unfurl_media": False,
    }
    return Body(
        body=_json(told),
        text="\n\n".join(part.text for part in parts),
        parts=tuple(Part(text=part.text, length=part.length, limit=SECTION_LIMIT) for part in parts),
        items=tuple(item for part in parts for item in part.items),
    )


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _failure(response: httpx.Response) -> Failure:
    """Slack's answer, a word of plain text, as ours, with what to do about it."""
    failure = failure_of(response)
    if not isinstance(failure, PermanentFailure):
        return failure
    if response.status_code in GONE or response.text.strip() in BLOCKING:
        return Blocked(f"{failure}; {WEBHOOK_ADVICE}")
    return PermanentFailure(f"{failure}; {REDIRECT_ADVICE}") if response.has_redirect_location else failure
