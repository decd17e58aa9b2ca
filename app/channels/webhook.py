"""Any receiver that speaks Standard Webhooks.

Source: github.com/standard-webhooks/standard-webhooks, spec/standard-webhooks.md. The address comes from the operator's
own configuration, so that one in a private network is as good as any.
"""

from __future__ import annotations

import base64
import binascii
import hmac
import json
import time
from dataclasses import replace
from datetime import timedelta  # noqa: TC003 - a Protocol's attribute
from http import HTTPStatus
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, HttpUrl, Secret, SecretStr

from app.clients.http import failure_of, post
from app.domain import digests
from app.domain.errors import Blocked, Failure, PermanentFailure
from app.domain.messages import Body, Digest, DigestItem, Message, Part, Receipt

if TYPE_CHECKING:
    from collections.abc import Iterator

    import httpx

REPEATABLE_FOR: timedelta | None = None
"""The `webhook-id` of a message never changes, and a receiver is to drop what it has seen; whether it does, and for how
long it remembers, is not for us to know."""

BODY_LIMIT = 20_000
"""Bytes. The specification's advice: many receivers refuse more."""

SECRET_PREFIX = "whsec_"  # noqa: S105 - what every such secret begins with
SECRET_BYTES = range(24, 65)

MOST_MORE = 10**9

WHOLE = True
"""Programs read it: what is left out is lost to them."""

EVENT = "items.new"
NOTE_EVENT = "service.note"
NOTE_LENGTH = 4000
"""Characters, of at most 4 bytes each: an alert or a test is far shorter."""

ADDRESSED = False
"""The channel's own `url` says where its messages go; its recipients need no `to`."""

ADVICE_BY_STATUS = {
    401: "the receiver does not take the signature: check that both sides have the same secret",
    404: "check the channel's `url`",
    410: "the receiver said that it is gone: change the channel's `url`, or remove the channel",
}
REDIRECT_ADVICE = "redirects are not followed: put the new address into the channel's `url`"


def _signing_secret(value: SecretStr) -> SecretStr:
    secret = value.get_secret_value().strip()
    if not secret.startswith(SECRET_PREFIX):
        raise ValueError("the secret must be `whsec_` followed by base64")
    try:
        length = len(base64.b64decode(secret.removeprefix(SECRET_PREFIX), validate=True))
    except binascii.Error:
        raise ValueError("what follows `whsec_` in the secret must be base64 with its padding") from None
    if length not in SECRET_BYTES:
        raise ValueError(
            f"the secret holds {length} bytes and must hold 24 to 64: make one of `openssl rand -base64 32`"
        )
    return SecretStr(secret)


def _not_line_notify(url: Secret[HttpUrl]) -> Secret[HttpUrl]:
    if url.get_secret_value().host == "notify-api.line.me":
        raise ValueError('LINE Notify ended on 31 March 2025: use a channel of kind = "line"')
    return url


class Options(BaseModel):
    """`[channels.x] kind = "webhook"`. The `url` is kept as a secret, since many hold one."""

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)

    url: Annotated[Secret[HttpUrl], AfterValidator(_not_line_notify)]
    secret: Annotated[SecretStr, AfterValidator(_signing_secret)]


def compose(digest: Digest, options: Options) -> list[Body]:  # noqa: ARG001 - as every channel
    """Events of as many items as 20 kB hold. They carry no time of their own: `webhook-timestamp` does, at each try."""
    if digest.note is not None:
        text = digests.as_text(digest)
        return [_body(_json({"type": NOTE_EVENT, "data": {"text": text[:NOTE_LENGTH]}}), text)] if text else []
    batches = list(_batches(digest.items)) or [()] * bool(digest.more)
    return [
        _items(replace(digest, items=batch, more=digest.more if number == len(batches) else 0), first=first)
        for number, (first, batch) in enumerate(_numbered(batches), 1)
    ]


async def send(message: Message, options: Options, http: httpx.AsyncClient) -> Receipt:
    """Post the frozen bytes, signed anew at each try under the same `webhook-id`. Any 2xx is a success."""
    body = message.body.encode()
    webhook_id = f"msg_{message.retry_key}"
    timestamp = str(int(time.time()))
    response = await post(
        http,
        str(options.url.get_secret_value()),
        content=body,
        headers={
            "Content-Type": "application/json",
            "webhook-id": webhook_id,
            "webhook-timestamp": timestamp,
            "webhook-signature": _signature(options.secret, f"{webhook_id}.{timestamp}.".encode() + body),
        },
    )
    if response.is_success:
        return Receipt(provider_id=webhook_id)
    raise _failure(response)


def origin(options: Options) -> str:
    """Where the receiver is."""
    url = options.url.get_secret_value()
    return f"{url.scheme}://{url.host}:{url.port}"


def _body(body: str, text: str) -> Body:
    """Counted as it is sent: in bytes of JSON."""
    return Body(body=body, text=text, parts=(Part(text=body, length=_size(body), limit=BODY_LIMIT),))


def _items(digest: Digest, *, first: int) -> Body:
    """`first` is the place of its first item among all."""
    body = _body(_event([_facts(item) for item in digest.items], digest.more), digests.as_text(digest))
    return replace(body, items=tuple(range(first, first + len(digest.items))))


def _numbered(batches: list[tuple[DigestItem, ...]]) -> Iterator[tuple[int, tuple[DigestItem, ...]]]:
    first = 0
    for batch in batches:
        yield first, batch
        first += len(batch)


def _batches(items: tuple[DigestItem, ...]) -> Iterator[tuple[DigestItem, ...]]:
    room = BODY_LIMIT - _size(_event([], more=MOST_MORE))
    batch: list[DigestItem] = []
    left = room
    for item in items:
        size = _size(_json(_facts(item))) + len(",")
        if batch and size > left:
            yield tuple(batch)
            batch, left = [], room
        batch.append(item)
        left -= size
    if batch:
        yield tuple(batch)


def _facts(item: DigestItem) -> dict[str, Any]:
    """What a receiver is told of an item. What would fill a body alone is left out: the link, then subscriptions."""
    facts: dict[str, Any] = {
        "title": digests.plain_title(item.title),
        "link": digests.shown_link(item.link or "") or None,
        "source": item.source,
        "subscriptions": list(item.subscriptions),
    }
    for name, nothing in (("link", None), ("subscriptions", [])):
        if _size(_event([facts])) > BODY_LIMIT:
            facts[name] = nothing
    return facts


def _event(items: list[dict[str, Any]], more: int = 0) -> str:
    """`more` says how many items are new besides and not told, where the recipient wants no more."""
    return _json({"type": EVENT, "data": {"items": items} | ({"more": more} if more else {})})


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _size(text: str) -> int:
    return len(text.encode())


def _signature(secret: SecretStr, signed: bytes) -> str:
    key = base64.b64decode(secret.get_secret_value().removeprefix(SECRET_PREFIX))
    return f"v1,{base64.b64encode(hmac.digest(key, signed, 'sha256')).decode()}"


def _failure(response: httpx.Response) -> Failure:
    failure = failure_of(response)
    if not isinstance(failure, PermanentFailure):
        return failure
    advice = REDIRECT_ADVICE if response.has_redirect_location else ADVICE_BY_STATUS.get(response.status_code)
    if response.status_code == HTTPStatus.GONE:  # the specification: to be disabled, and sent no more messages
        return Blocked(f"{failure}; {advice}")
    return PermanentFailure(f"{failure}; {advice}") if advice else failure
