"""LINE, by push messages of the Messaging API.

Source: developers.line.biz/en/reference/messaging-api and .../docs/messaging-api/retrying-api-request.
"""

from __future__ import annotations

import asyncio
import json
import re
from datetime import timedelta
from http import HTTPStatus
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, HttpUrl, SecretStr

from app.clients.http import failure_of, get, json_of, post
from app.clients.reasons import finding_of
from app.domain import digests, textcut
from app.domain.errors import Blocked, Failure, PermanentFailure, QuotaSpent, TemporaryFailure
from app.domain.findings import Finding, ok, warn
from app.domain.messages import Body, Digest, Message, Part, Receipt
from app.domain.quota import Allowance

if TYPE_CHECKING:
    import httpx

REPEATABLE_FOR: timedelta | None = timedelta(hours=24)
"""How long LINE knows a retry key; after that the same key sends again."""

TEXT_LIMIT = 5000
"""UTF-16 code units in one text object."""

OBJECTS_A_PUSH = 5
"""A push of five costs as much of the month's messages as one of one. Five full texts are under 100 kB of the 2 MB
that a body may have."""

SPENT = "monthly limit"
"""In the answer that refuses a push since the month's messages are used up; any other 429 is a rate limit. None of them
has reached anybody. The same words also come while another delivery has messages reserved."""

NOBODY = "failed to send messages"
"""In the 400 of an unknown user, and of a group or room that the bot has left."""

MEMBERS_BY_LETTER = {"C": "group", "R": "room"}
"""Where the members of a chat are counted, by the first letter of its id: a push to it costs one message for each."""

ADDRESS = re.compile("[UCR][0-9a-f]{32}")
"""The pattern of the reference, Common properties of webhook events: source."""

ADVICE_BY_STATUS = {
    400: "the recipient's `to` must be the id of a user who is a friend of this bot, or of a group or room it is in",
    401: "the channel access token is wrong or expired: issue a new one in the LINE Developers console, "
    "tab Messaging API",
    403: "the channel may not send push messages: look at its plan and permissions in the LINE Developers console",
    404: "there is no Messaging API at this address: check the channel's `base_url`",
}
REDIRECT_ADVICE = "redirects are not followed: check the channel's `base_url`"


def _access_token(value: SecretStr) -> SecretStr:
    token = value.get_secret_value().strip()
    if not token:
        raise ValueError("the channel access token is empty")
    if re.fullmatch("[A-Za-z0-9]{43}", token):
        raise ValueError(
            "this looks like a token of LINE Notify, which ended on 31 March 2025: "
            "use the channel access token of a Messaging API channel"
        )
    if not (token.isascii() and token.isprintable() and " " not in token):
        raise ValueError("the channel access token holds characters that no token has: copy it again")
    return SecretStr(token)


def _not_line_notify(url: HttpUrl) -> HttpUrl:
    if url.host == "notify-api.line.me":
        raise ValueError("LINE Notify ended on 31 March 2025: leave `base_url` out to use the Messaging API")
    return url


class Options(BaseModel):
    """`[channels.x] kind = "line"`."""

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)

    token: Annotated[SecretStr, AfterValidator(_access_token)]

    monthly_limit: Annotated[int, Field(ge=0, le=10**9)] | None = None
    """Messages a month, fewer or more than the plan has; None: as many as LINE says."""

    base_url: Annotated[HttpUrl, AfterValidator(_not_line_notify)] = HttpUrl("https://api.line.me")


def check_address(to: str) -> str | None:
    """Why nobody can be reached there; None: it may be somebody's id."""
    if ADDRESS.fullmatch(to):
        return None
    return (
        "is no id of LINE: that of a user is U and 32 more characters, that of a group or a room begins with C or R; "
        "your own is in the LINE Developers console, tab Basic settings, Your user ID"
    )


def compose(digest: Digest, options: Options) -> list[Body]:  # noqa: ARG001 - as every channel
    """Texts as full as LINE takes them, five to a push: what counts against the month is the push."""
    parts = digests.portions(digest, limit=TEXT_LIMIT, length=textcut.utf16_units)
    return [_push(digest.to, parts[start : start + OBJECTS_A_PUSH]) for start in range(0, len(parts), OBJECTS_A_PUSH)]


async def send(message: Message, options: Options, http: httpx.AsyncClient) -> Receipt:
    """Push the frozen bytes under the message's retry key. A 409 says that an earlier try had arrived.

    Raises:
        QuotaSpent: the month's messages are used up.
        Blocked: there is nobody at this address.
    """
    response = await post(
        http,
        _address(options, "message/push"),
        content=message.body.encode(),
        headers={
            **_authorization(options),
            "Content-Type": "application/json",
            "X-Line-Retry-Key": str(message.retry_key),
        },
    )
    if response.is_success:
        return Receipt(provider_id=response.headers.get("x-line-request-id"))
    if response.status_code == HTTPStatus.CONFLICT:
        return Receipt(provider_id=response.headers.get("x-line-accepted-request-id"), repeated=True)
    raise _failure(response)


async def validate(body: str, options: Options, http: httpx.AsyncClient) -> None:
    """Have LINE look at a push that is not sent.

    Raises:
        Failure: it would refuse it, and why; or it could not be asked.
    """
    messages = json.loads(body)["messages"]
    told = await post(
        http,
        _address(options, "message/validate/push"),
        content=json.dumps({"messages": messages}, ensure_ascii=False).encode(),
        headers={**_authorization(options), "Content-Type": "application/json"},
    )
    if not told.is_success:
        raise _failure(told)


async def allowance(options: Options, http: httpx.AsyncClient) -> Allowance:
    """This month's messages: the plan's or `monthly_limit`, and about how many are spent by now, those by hand too.

    Raises:
        Failure: LINE does not say.
    """
    if options.monthly_limit is not None:
        used = await _number(options, http, "message/quota/consumption", "totalUsage")
        return Allowance(limit=options.monthly_limit, used=used)
    limit, used = await asyncio.gather(
        _plan_limit(options, http), _number(options, http, "message/quota/consumption", "totalUsage")
    )
    return Allowance(limit=limit, used=used)


async def members(to: str, options: Options, http: httpx.AsyncClient) -> int:
    """How many messages a push there costs: one, or one for each member of a group or room.

    Raises:
        Failure: LINE does not say.
    """
    kind = MEMBERS_BY_LETTER.get(to[:1])
    return 1 if kind is None else await _number(options, http, f"{kind}/{to}/members/count", "count")


async def probe(options: Options, http: httpx.AsyncClient) -> list[Finding]:
    """Whose token it is, and what is left of the month.

    Raises:
        Failure: LINE does not know the token, or cannot be asked.
    """
    response = await get(http, _address(options, "info"), headers=_authorization(options))
    if not response.is_success:
        raise _failure(response)
    bot = json_of(response)
    whose = ok(f"the token is that of {bot.get('displayName', 'a bot')} ({bot.get('basicId', 'without an id')})")
    try:
        return [whose, _left(await allowance(options, http))]
    except Failure as failure:
        return [whose, finding_of(failure, name="quota")]


def _left(month: Allowance) -> Finding:
    if month.limit is None:
        return ok(f"{month.used:,} messages this month, of as many as one likes", name="quota")
    told = f"{month.used:,} of this month's {month.limit:,} messages are used up"
    if month.used < month.limit:
        return ok(told, name="quota")
    return warn(told, "wait for the next month or change the plan in the LINE Official Account Manager", name="quota")


async def _plan_limit(options: Options, http: httpx.AsyncClient) -> int | None:
    told = await _told(options, http, "message/quota")
    if told.get("type") != "limited":
        return None
    return _whole(told, "value")


async def _number(options: Options, http: httpx.AsyncClient, what: str, key: str) -> int:
    return _whole(await _told(options, http, what), key)


async def _told(options: Options, http: httpx.AsyncClient, what: str) -> dict[str, Any]:
    response = await get(http, _address(options, what), headers=_authorization(options))
    if not response.is_success:
        raise failure_of(response)
    return json_of(response)


def _whole(told: dict[str, Any], key: str) -> int:
    value = told.get(key)
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise TemporaryFailure(f"LINE answered without a number in `{key}`")
    return value


def _address(options: Options, what: str) -> str:
    return f"{str(options.base_url).rstrip('/')}/v2/bot/{what}"


def _authorization(options: Options) -> dict[str, str]:
    return {"Authorization": f"Bearer {options.token.get_secret_value()}"}


def _push(to: str, portions: list[digests.Portion]) -> Body:
    texts = [portion.text for portion in portions]
    objects = [{"type": "text", "text": text} for text in texts]
    return Body(
        body=json.dumps({"to": to, "messages": objects}, ensure_ascii=False, separators=(",", ":")),
        text="\n\n".join(texts),
        parts=tuple(Part(text=text, length=textcut.utf16_units(text), limit=TEXT_LIMIT) for text in texts),
        items=tuple(place for portion in portions for place in portion.items),
    )


def _failure(response: httpx.Response) -> Failure:
    """LINE's answer as ours, with what to do about it."""
    failure, words = failure_of(response), response.text.lower()
    if isinstance(failure, TemporaryFailure):
        if response.status_code == HTTPStatus.TOO_MANY_REQUESTS and SPENT in words:
            return QuotaSpent(
                f"this month's messages of the LINE channel are used up ({failure}): "
                "wait for the next month or change the plan in the LINE Official Account Manager"
            )
        return failure
    advice = REDIRECT_ADVICE if response.has_redirect_location else ADVICE_BY_STATUS.get(response.status_code)
    if response.status_code == HTTPStatus.BAD_REQUEST and NOBODY in words:
        return Blocked(f"{failure}; {advice}")
    return PermanentFailure(f"{failure}; {advice}") if advice else failure
