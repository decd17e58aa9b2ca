"""Facebook Messenger: a page's webhook events, answered by the Send API.

Source: developers.facebook.com/docs/messenger-platform (webhooks, send-api-reference, error-codes) and
.../docs/graph-api/webhooks/getting-started. A person may be answered for 24 hours after they have written.
"""

from __future__ import annotations

import hmac
import json
import re
from datetime import timedelta
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, HttpUrl, SecretStr

from app.chats import Secrets, bytes_of, header, one_by_one
from app.clients.http import failure_of, get, json_of, post, printable, retry_after
from app.domain import deliveries, doorways, signatures, textcut
from app.domain.chats import Malformed, Replied, Said
from app.domain.errors import (
    Blocked,
    Failure,
    PermanentFailure,
    RateLimited,
    SignatureError,
    TemporaryFailure,
)
from app.domain.findings import Finding, fail, ok, skipped

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    import httpx

    from app.domain.chats import Answer, Kind

CHANNEL: str | None = None

WITHIN = timedelta(seconds=20)

TEXT_LIMIT = 1999
"""The reference: text must be UTF-8 and under 2,000 characters. Which ones is not said; counted as the longest."""

MOST_TEXTS = 5
length = textcut.utf16_units

MARK = "wakebell"
"""Comes back as `metadata` of the echo of what we have sent."""

SIGNATURE = re.compile(rb"sha256=[0-9a-f]{64}")

REFUSED = "the header X-Hub-Signature-256 does not sign this body with the app secret of this chat"
UNKNOWN = "hub.verify_token is not the verify_token of this chat"
SUBSCRIBE = "subscribe"

OUTSIDE = {(10, 2018278), (10, 2018065)}
OUTSIDE_ADVICE = "the person has not written for 24 hours; they have to write first"

BLOCKED = {(551, None), (551, 1545041), (200, 1545041), (100, 2018001)}
BLOCKED_ADVICE = "the person has blocked the page, has left, or has never written to it"

TOO_MANY = frozenset({4, 17, 32, 613, 80006})
PASSING = frozenset({1, 2, 1200})
"""Codes that come with a 400 at times, and mean: later."""

ADVICE_BY_CODE = {
    10: "the app needs the permission pages_messaging for people who have no role in it",
    100: "check the chat's `version` and `base_url`",
    190: "the chat's `token` is wrong, has expired or was revoked: make a new token of the page",
    200: "the app needs the permission pages_messaging for people who have no role in it",
    230: "the app needs the permission pages_messaging",
}
REDIRECT_ADVICE = "redirects are not followed: check the chat's `base_url`"

SUBSCRIBING = "subscribe the page to the app in its settings, Messenger, API settings, Add subscriptions"
USEFUL = ("messaging_postbacks", "message_echoes")
TOLD_LENGTH = 200


def _token(value: SecretStr) -> SecretStr:
    token = value.get_secret_value().strip()
    if not token:
        raise ValueError("the page's access token is empty")
    if not (token.isascii() and token.isprintable() and " " not in token):
        raise ValueError("the page's access token holds characters that no token has: copy it again")
    return SecretStr(token)


def _digits(value: object) -> object:
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else value


class Options(BaseModel):
    """`[chats.x] kind = "messenger"`, its own keys."""

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)

    secret: Secrets
    """The app secret, by which Facebook signs."""

    verify_token: Secrets
    """A word of one's own, which is written into the app's webhook settings too."""

    token: Annotated[SecretStr, AfterValidator(_token)]
    """The page's access token, which answers."""

    app_id: Annotated[str, BeforeValidator(_digits), Field(pattern=r"^[0-9]{1,30}$")] | None = None
    """Tells what this app has sent from what people of the house write, besides our mark."""

    version: Annotated[str, Field(pattern=r"^v[0-9]{1,3}\.[0-9]$")] = "v25.0"
    """Of the Graph API."""

    base_url: HttpUrl = HttpUrl("https://graph.facebook.com")


def signed(headers: Mapping[str, str]) -> bool:
    """By its one signature."""
    return SIGNATURE.fullmatch(header(headers, "x-hub-signature-256")) is not None


def verify(raw: bytes, headers: Mapping[str, str], options: Options) -> None:
    """Over the bytes as they came. The older `X-Hub-Signature`, of SHA-1, counts for nothing."""
    right = [b"sha256=" + hmac.new(one, raw, "sha256").hexdigest().encode() for one in bytes_of(options.secret)]
    if not signatures.any_equal([header(headers, "x-hub-signature-256")], right):
        raise SignatureError(REFUSED)


def challenge(query: Mapping[str, str], options: Options) -> str | None:
    """`hub.challenge`, for who knows the verify token."""
    given = query.get("hub.verify_token", "").encode("utf-8", "surrogatepass")
    known = signatures.any_equal([given], bytes_of(options.verify_token))
    asked = deliveries.name(query.get("hub.challenge"))
    if not known or query.get("hub.mode") != SUBSCRIBE or asked is None:
        raise SignatureError(UNKNOWN)
    return asked


def parse(raw: bytes, options: Options) -> list[Said]:
    """Of a thread that another app has control of (`standby`), everything is `other`."""
    told = deliveries.document(raw)
    if not isinstance(told.get("entry"), list) or not isinstance(told.get("object"), str):
        raise Malformed("the body holds no `object` and no list `entry`, which every delivery of Facebook has")
    if told["object"] != "page":  # the app may have subscribed to more, and what is refused is delivered again
        return []
    return [said for entry in deliveries.tables(told["entry"]) for said in _entry(entry, options)]


async def reply(answer: Answer, account: Options, http: httpx.AsyncClient) -> Replied:
    """One request for each text; there is no key by which a repeat would be known.

    Raises:
        PermanentFailure: the person has not written for 24 hours.
        Blocked: nothing will reach this person.
    """

    async def send(text: str) -> str | None:
        body = {
            "messaging_type": "RESPONSE",
            "recipient": {"id": answer.address},
            "message": {"text": text, "metadata": MARK},
        }
        return deliveries.name(json_of(await _post(body, account, http)).get("message_id"))

    if answer.address is None:
        raise PermanentFailure("Facebook has not said who has written, so that nobody can be answered")
    return await one_by_one(answer.texts, send)


async def typing(address: str, account: Options, http: httpx.AsyncClient) -> None:
    """Three dots, for 20 seconds or until the answer."""
    await _post({"recipient": {"id": address}, "sender_action": "typing_on"}, account, http)


async def probe(door: str | None, account: Options, http: httpx.AsyncClient) -> list[Finding]:  # noqa: ARG001
    """Whose token it is, and what the page is subscribed to. Which address the app has, its token alone could ask.

    Raises:
        Failure: Facebook does not know the token, or cannot be asked.
    """
    page = json_of(await _get("me?fields=id,name", account, http))
    whose = ok(f"the token is that of {deliveries.name(page.get('name')) or 'a page'}")
    try:
        apps = json_of(await _get("me/subscribed_apps", account, http)).get("data")
    except PermanentFailure as failure:
        return [whose, skipped(f"not told to this token, which lacks pages_manage_metadata ({failure})", name="events")]
    ours = [app for app in deliveries.tables(apps) if account.app_id in {None, deliveries.name(app.get("id"))}]
    if not ours:
        return [whose, fail("the page is not subscribed to the app: nothing is delivered", SUBSCRIBING, name="events")]
    fields = {field for app in ours for field in app.get("subscribed_fields") or () if isinstance(field, str)}
    return [whose, doorways.subscribed(fields, needed=["messages"], useful=USEFUL, how=SUBSCRIBING)]


def _entry(entry: dict[str, Any], options: Options) -> Iterator[Said]:
    page = deliveries.name(entry.get("id")) or "page"
    for event in deliveries.tables(entry.get("messaging")):
        yield _said(event, page, options, active=True)
    for event in deliveries.tables(entry.get("standby")):
        yield _said(event, page, options, active=False)


def _said(event: dict[str, Any], page: str, options: Options, *, active: bool) -> Said:
    sender = deliveries.name(deliveries.table(event.get("sender")).get("id"))
    recipient = deliveries.name(deliveries.table(event.get("recipient")).get("id"))
    person = recipient if sender == page else sender
    message, postback = deliveries.table(event.get("message")), deliveries.table(event.get("postback"))
    by_page = sender == page or message.get("is_echo") is True
    kind = _kind(message, postback, options, by_page=by_page) if active and person is not None else "other"
    return Said(
        id=deliveries.event_id(message.get("mid") or postback.get("mid"), event),
        kind=kind,
        conversation=f"{page}:{person}" if person else page,
        address=person,
        person=None if by_page else person,
        text=_text(message) if message else deliveries.text(postback.get("title") or postback.get("payload")),
        at=deliveries.instant(event.get("timestamp"), per_second=1000),
    )


def _kind(message: dict[str, Any], postback: dict[str, Any], options: Options, *, by_page: bool) -> Kind:
    if by_page:
        return "staff" if message.get("is_echo") is True and not _ours(message, options) else "other"
    if message:
        return "other" if message.get("is_deleted") is True else "message"
    return "message" if postback else "other"


def _ours(echo: dict[str, Any], options: Options) -> bool:
    by_our_app = options.app_id is not None and deliveries.name(echo.get("app_id")) == options.app_id
    return by_our_app or echo.get("metadata") == MARK


def _text(message: dict[str, Any]) -> str:
    """What was written, or what was attached in place of it. A link that stands in a text is attached as well."""
    written = deliveries.text(message.get("text"))
    words = [_word(one) for one in deliveries.tables(message.get("attachments"))[: deliveries.MOST_NAMES]]
    shown = [word for word in words if not written or word != "[link]"]
    return deliveries.text(" ".join([*shown, written]))


def _word(attachment: dict[str, Any]) -> str:
    if "sticker_id" in deliveries.table(attachment.get("payload")):  # comes as an image
        return "[sticker]"
    kind = deliveries.name(attachment.get("type")) or "file"
    return deliveries.worded("link" if kind == "fallback" else kind)


async def _post(body: dict[str, Any], account: Options, http: httpx.AsyncClient) -> httpx.Response:
    """The answer to a success. The token goes into a header: addresses are written down on the way."""
    response = await post(
        http,
        _address("me/messages", account),
        content=json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode(),
        headers={**_authorization(account), "Content-Type": "application/json"},
    )
    if not response.is_success:
        raise _failure(response, account.token.get_secret_value())
    return response


async def _get(what: str, account: Options, http: httpx.AsyncClient) -> httpx.Response:
    response = await get(http, _address(what, account), headers=_authorization(account))
    if not response.is_success:
        raise _failure(response, account.token.get_secret_value())
    return response


def _address(what: str, account: Options) -> str:
    return f"{str(account.base_url).rstrip('/')}/{account.version}/{what}"


def _authorization(account: Options) -> dict[str, str]:
    return {"Authorization": f"Bearer {account.token.get_secret_value()}"}


def _failure(response: httpx.Response, token: str) -> Failure:
    """Facebook's answer as ours, with what to do about it. It repeats tokens that it does not know."""
    error = deliveries.table(json_of(response).get("error"))
    code, subcode = (value if isinstance(value := error.get(key), int) else None for key in ("code", "error_subcode"))
    if code is None:
        failure = failure_of(response)
        advised = REDIRECT_ADVICE if response.has_redirect_location else None
        return PermanentFailure(f"{failure}; {advised}") if advised else failure
    words = printable(deliveries.text(error.get("message")).replace(token, "…"))[:TOLD_LENGTH]
    told = f"{response.url.host} answered {response.status_code}: {words} (code {code}, subcode {subcode or 'none'})"
    if code in TOO_MANY:
        return RateLimited(told, retry_after=retry_after(response))
    if code in PASSING or error.get("is_transient") is True or response.is_server_error:
        return TemporaryFailure(told, retry_after=retry_after(response))
    if (code, subcode) in OUTSIDE:
        return PermanentFailure(f"{told}; {OUTSIDE_ADVICE}")
    if (code, subcode) in BLOCKED:
        return Blocked(f"{told}; {BLOCKED_ADVICE}")
    advice = ADVICE_BY_CODE.get(code)
    return PermanentFailure(f"{told}; {advice}" if advice else told)
