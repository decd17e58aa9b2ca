"""LINE: webhook events of a Messaging API channel, answered with the reply token, or by a push once it has run out.

Source: developers.line.biz/en/reference/messaging-api (sections "Webhooks", "Send reply message", "Display a loading
animation"), github.com/line/line-openapi (webhook.yml), and .../docs/messaging-api/receiving-messages.
"""

from __future__ import annotations

import base64
import hmac
import json
import re
from datetime import timedelta
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, ConfigDict

from app.chats import Secrets, bytes_of, header
from app.clients.http import failure_of, get, json_of, post
from app.clients.reasons import finding_of
from app.domain import deliveries, doorways, signatures, textcut
from app.domain.chats import Malformed, Replied, Said
from app.domain.errors import (
    Blocked,
    Failure,
    PermanentFailure,
    QuotaSpent,
    SignatureError,
    TemporaryFailure,
    Unanswered,
)
from app.domain.findings import Finding, fail, ok, warn

if TYPE_CHECKING:
    from collections.abc import Mapping

    import httpx

    from app.chats import Account
    from app.domain.chats import Answer, Kind

CHANNEL: str | None = "line"

WITHIN = timedelta(seconds=2)
"""LINE's statistics of webhook errors call what takes longer `request_timeout`."""

TEXT_LIMIT = 5000
MOST_TEXTS = 5
length = textcut.utf16_units

TOKEN_LIFE = timedelta(seconds=50)
"""A reply token is good for a minute; less than that is counted on."""

LOADING_SECONDS = 20
"""Of the animation, which ends with the answer. 5 to 60, in steps of 5."""

KINDS: dict[str, Kind] = {
    "message": "message",
    "postback": "message",
    "follow": "follow",
    "unfollow": "unfollow",
    "join": "join",
    "leave": "leave",
}

ADDRESS_BY_SOURCE = {"user": "userId", "group": "groupId", "room": "roomId"}

SAMPLE_PERSON = "Udeadbeefdeadbeefdeadbeefdeadbeef"
"""Who says something where a console tries the address with an event that it has made up."""

CHANGES = ("deliveryContext", "replyToken")
"""What may differ when an event is delivered again."""

CHOSEN = ("datetime", "date", "time")
"""What a postback's action may have let the person choose."""

SIGNATURE = re.compile(rb"[A-Za-z0-9+/]{43}=")

REFUSED = "the header X-Line-Signature does not sign this body with the channel secret of this chat"

USED_UP = "invalid reply token"
SPENT = "monthly limit"
NOBODY = "failed to send messages"

ADVICE_BY_STATUS = {
    401: "the access token of the chat's channel is wrong or expired: issue a new one in the LINE Developers console",
    403: "the channel may not send this: look at its plan and permissions in the LINE Developers console",
    404: "there is no Messaging API at this address: check the channel's `base_url`",
}
REDIRECT_ADVICE = "redirects are not followed: check the channel's `base_url`"

CONSOLE = "in the LINE Developers console, tab Messaging API"

ADVICE_BY_REASON = {
    "COULD_NOT_CONNECT": "check that PUBLIC_URL is reached from outside, and its certificate",
    "REQUEST_TIMEOUT": f"if the service slept, look again; and switch on webhook redelivery {CONSOLE}",
    "ERROR_STATUS_CODE": "401 is the chat's `secret`, which is not this channel's; 404 a service without this chat, or "
    "an older configuration",
}
"""Of a delivery that LINE has tried; the reference, Test webhook endpoint."""


class Options(BaseModel):
    """`[chats.x] kind = "line"`, its own keys."""

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)

    secret: Secrets
    """The channel secret, by which LINE signs; not the access token."""

    channel: str
    """The name of a `[channels.x]` of the same account, whose token answers."""


def signed(headers: Mapping[str, str]) -> bool:
    """By its one signature."""
    return SIGNATURE.fullmatch(header(headers, "x-line-signature")) is not None


def verify(raw: bytes, headers: Mapping[str, str], options: Options) -> None:
    """Over the bytes as they came: other white space is another signature."""
    right = [base64.b64encode(hmac.digest(secret, raw, "sha256")) for secret in bytes_of(options.secret)]
    if not signatures.any_equal([header(headers, "x-line-signature")], right):
        raise SignatureError(REFUSED)


def challenge(query: Mapping[str, str], options: Options) -> str | None:  # noqa: ARG001 - as every kind
    """LINE tries an address with a POST of no events."""
    return None


def parse(raw: bytes, options: Options) -> list[Said]:  # noqa: ARG001 - as every kind
    """Of a `standby` channel, whom somebody else answers for, everything is `other`."""
    told = deliveries.document(raw)
    if not isinstance(told.get("events"), list):
        raise Malformed("the body holds no list `events`, which every delivery of LINE has")
    bot = deliveries.name(told.get("destination")) or CHANNEL
    return [_said(event, f"{bot}") for event in deliveries.tables(told["events"])]


async def reply(answer: Answer, account: Account, http: httpx.AsyncClient) -> Replied:
    """By the token, which costs nothing; by a push, which counts against the month, when that is used up.

    Raises:
        QuotaSpent: the month's messages are used up.
        Blocked: there is nobody at this address.
    """
    if not answer.texts:
        return Replied(texts=0)
    if answer.reply_token is not None and answer.waited < TOKEN_LIFE:
        replied = await _by_token(answer, account, http)
        if replied is not None:
            return replied
        await answer.still_ours()  # whoever has taken it over meanwhile has used the token up
    if answer.address is None:
        raise PermanentFailure("the reply token has run out, and LINE does not say whom a push would go to")
    response = await _push(answer, account, http)
    if response.status_code == HTTPStatus.CONFLICT:  # the retry key is known: an earlier try has arrived
        accepted = response.headers.get("x-line-accepted-request-id")
        return Replied(texts=len(answer.texts), provider_id=accepted, repeated=True)
    return _replied(answer, response)


async def typing(address: str, account: Account, http: httpx.AsyncClient) -> None:
    """The loading animation, which only a chat with one person has."""
    if address.startswith("U"):
        response = await _post(
            "chat/loading/start", {"chatId": address, "loadingSeconds": LOADING_SECONDS}, account, http
        )
        if not response.is_success:
            raise _failure(response)


async def probe(door: str | None, account: Account, http: httpx.AsyncClient) -> list[Finding]:
    """Where LINE delivers to; and where that is here, a delivery without events, which LINE makes when it is asked to.

    Raises:
        Failure: LINE does not know the token, or cannot be asked.
    """
    how = f"write the address into Webhook URL {CONSOLE}"
    response = await get(http, _address("channel/webhook/endpoint", account), headers=_authorization(account))
    if response.status_code == HTTPStatus.NOT_FOUND:
        return [doorways.registered(None, door, how=how)]
    if not response.is_success:
        raise _failure(response)
    told = json_of(response)
    found = [doorways.registered(deliveries.name(told.get("endpoint")), door, how=how)]
    if told.get("active") is not True:
        found.append(fail("the webhook is switched off", f"switch on Use webhook {CONSOLE}", name="webhook"))
    if any(one.status != "ok" for one in found):
        return found
    try:
        return [*found, await _tried(account, http)]
    except Failure as failure:
        return [*found, finding_of(failure, name="delivery")]


async def _tried(account: Account, http: httpx.AsyncClient) -> Finding:
    response = await _post("channel/webhook/test", {}, account, http)
    if not response.is_success:
        raise _failure(response)
    told = json_of(response)
    if told.get("success") is True:
        return ok("LINE has tried it, and was answered", name="delivery")
    reason = deliveries.name(told.get("reason")) or "UNCLASSIFIED"
    words = (
        f"LINE has tried it in vain: {reason}, status {told.get('statusCode')} ({deliveries.text(told.get('detail'))})"
    )
    slow = reason == "REQUEST_TIMEOUT"
    return (warn if slow else fail)(words, ADVICE_BY_REASON.get(reason, "look at the service's log"), name="delivery")


def _said(event: dict[str, Any], bot: str) -> Said:
    source = deliveries.table(event.get("source"))
    kind_of_source = deliveries.name(source.get("type")) or ""
    address = deliveries.name(source.get(ADDRESS_BY_SOURCE.get(kind_of_source, "userId")))
    person = deliveries.name(source.get("userId"))
    known = address is not None and event.get("mode") != "standby" and SAMPLE_PERSON not in {address, person}
    event_type = deliveries.name(event.get("type")) or ""
    text, mentioned = _text(event)
    return Said(
        id=deliveries.event_id(event.get("webhookEventId"), event, without=CHANGES),
        kind=KINDS.get(event_type, "other") if known else "other",
        conversation=f"{bot}:{address}" if address else bot,
        address=address,
        person=person,
        text=text,
        at=deliveries.instant(event.get("timestamp"), per_second=1000),
        reply_token=deliveries.name(event.get("replyToken")),
        redelivered=deliveries.table(event.get("deliveryContext")).get("isRedelivery") is True,
        group=kind_of_source in {"group", "room"},
        mentioned=mentioned,
    )


def _text(event: dict[str, Any]) -> tuple[str, bool]:
    """What it says, and whether it says so to the bot."""
    if "postback" in event:
        return _chosen(deliveries.table(event["postback"])), True
    message = deliveries.table(event.get("message"))
    kind = deliveries.name(message.get("type"))
    if kind is None:
        return "", False
    if kind == "text":
        return _addressed(message)
    beside = [deliveries.text(message.get(key)) for key in ("title", "address")] if kind == "location" else []
    return deliveries.worded(kind, ", ".join(filter(None, beside))), False


def _addressed(message: dict[str, Any]) -> tuple[str, bool]:
    """A text, without the bot's own name in it."""
    written = deliveries.written(message.get("text"))
    mentioned = deliveries.tables(deliveries.table(message.get("mention")).get("mentionees"))
    named = [one for one in mentioned[: deliveries.MOST_NAMES] if one.get("isSelf") is True]
    spans = [(one["index"], one["length"]) for one in named if _whole(one.get("index")) and _whole(one.get("length"))]
    if not spans:
        return deliveries.text(written), bool(named)
    return deliveries.text(deliveries.without_names(written, spans)) or deliveries.text(written), True


def _whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _chosen(postback: dict[str, Any]) -> str:
    params = deliveries.table(postback.get("params"))
    chosen = [deliveries.text(params.get(key)) for key in CHOSEN]
    return " ".join(filter(None, [deliveries.text(postback.get("data")), *chosen]))


async def _by_token(answer: Answer, account: Account, http: httpx.AsyncClient) -> Replied | None:
    """None: the token is good no more, and nothing has used it up."""
    body = {"replyToken": answer.reply_token, "messages": _objects(answer)}
    tried = answer.tried
    try:
        response = await _post("message/reply", body, account, http)
    except Unanswered:
        # The token is good for one reply: asked once more, LINE tells whether it had the first one.
        response, tried = await _post("message/reply", body, account, http), True
    if response.status_code == HTTPStatus.BAD_REQUEST and USED_UP in response.text.lower():
        return Replied(texts=len(answer.texts), repeated=True) if tried else None
    return _replied(answer, response)


async def _push(answer: Answer, account: Account, http: httpx.AsyncClient) -> httpx.Response:
    body = {"to": answer.address, "messages": _objects(answer)}
    return await _post("message/push", body, account, http, {"X-Line-Retry-Key": str(answer.retry_key)})


def _objects(answer: Answer) -> list[dict[str, str]]:
    return [{"type": "text", "text": text} for text in answer.texts]


async def _post(
    what: str, body: dict[str, Any], account: Account, http: httpx.AsyncClient, more: Mapping[str, str] | None = None
) -> httpx.Response:
    headers = {**_authorization(account), "Content-Type": "application/json", **(more or {})}
    content = json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode()
    return await post(http, _address(what, account), content=content, headers=headers)


def _address(what: str, account: Account) -> str:
    return f"{str(account.base_url).rstrip('/')}/v2/bot/{what}"


def _authorization(account: Account) -> dict[str, str]:
    return {"Authorization": f"Bearer {account.token.get_secret_value()}"}


def _replied(answer: Answer, response: httpx.Response) -> Replied:
    if not response.is_success:
        raise _failure(response)
    return Replied(texts=len(answer.texts), provider_id=response.headers.get("x-line-request-id"))


def _failure(response: httpx.Response) -> Failure:
    """LINE's answer as ours, with what to do about it."""
    failure, words = failure_of(response), response.text.lower()
    if isinstance(failure, TemporaryFailure):
        if response.status_code == HTTPStatus.TOO_MANY_REQUESTS and SPENT in words:
            return QuotaSpent(
                f"this month's messages of the LINE channel are used up ({failure}): replies in time cost none, for "
                "later ones wait for the next month or change the plan in the LINE Official Account Manager"
            )
        return failure
    if response.status_code == HTTPStatus.BAD_REQUEST and NOBODY in words:
        return Blocked(f"{failure}; the person has blocked the account, or the bot has left the group")
    advice = REDIRECT_ADVICE if response.has_redirect_location else ADVICE_BY_STATUS.get(response.status_code)
    return PermanentFailure(f"{failure}; {advice}") if advice else failure
