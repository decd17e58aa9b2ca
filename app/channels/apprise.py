"""Some hundred and forty further services, through the Apprise library, an optional extra.

Source: github.com/caronc/apprise. It speaks HTTP by itself: it takes an address of its own kind instead of a
`base_url`, and tells neither an id nor a reason nor how long to wait. So every refusal is one for now, repeated as long
as any message is; success proves no more than that a service said so. There is no idempotency key.
"""

from __future__ import annotations

import asyncio
import importlib.util
import logging
import re
from datetime import timedelta  # noqa: TC003 - a Protocol's attribute
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, SecretStr

from app.domain import layouts, textcut
from app.domain.errors import PermanentFailure, TemporaryFailure, Unanswered
from app.domain.messages import Body, Digest, Message, Part, Receipt
from app.threads import in_thread

if TYPE_CHECKING:
    import httpx

REPEATABLE_FOR: timedelta | None = None
"""Whether a service knows a repeat is not for Apprise to say."""

ADDRESSED = False
"""The channel's own `url` says where its messages go; its recipients need no `to`."""

TIMEOUT_SECONDS = 18
"""Of the 20 that a send may take; a thread that hangs longer is left behind."""

NARROW = 1000
"""UTF-16 code units in one message where nothing else is said: few services take less. Apprise counts code points and
cuts by itself or not at all, so that it gets no text which it could find too long."""

PACKAGE = "apprise"
MISSING = (
    'the package that kind = "apprise" needs is not installed; install it with pip install "wakebell[apprise]", or '
    "choose another kind"
)


def _address(value: SecretStr) -> SecretStr:
    address = value.get_secret_value().strip()
    if not re.match("[A-Za-z][A-Za-z0-9]*://.", address):
        raise ValueError("this is no address of Apprise; write one such as pover://user@token")
    if importlib.util.find_spec(PACKAGE) is None:
        raise ValueError(MISSING)
    return SecretStr(address)


class Options(BaseModel):
    """`[channels.x] kind = "apprise"`."""

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)

    url: Annotated[SecretStr, AfterValidator(_address)]

    limit: Annotated[int, Field(ge=100, le=100_000)] = NARROW
    """UTF-16 code units in one message."""


def compose(digest: Digest, options: Options) -> list[Body]:
    """Plain texts, one to a message, which no service has to cut."""
    return [
        Body(
            body=portion.text,
            text=portion.text,
            parts=(Part(text=portion.text, length=textcut.utf16_units(portion.text), limit=options.limit),),
            items=portion.items,
        )
        for portion in layouts.portions(digest, limit=options.limit, length=textcut.utf16_units)
    ]


async def send(message: Message, options: Options, http: httpx.AsyncClient) -> Receipt:  # noqa: ARG001 - as every channel
    """Hand the frozen text to Apprise, in a thread: it blocks."""
    try:
        async with asyncio.timeout(TIMEOUT_SECONDS):
            taken = await in_thread(_notify, options.url.get_secret_value(), message.body)
    except TimeoutError as error:
        raise Unanswered(f"Apprise did not say within {TIMEOUT_SECONDS} s whether it sent it") from error
    if not taken:
        raise TemporaryFailure(
            "Apprise could not send it and does not say why: check the channel's `url`, and try it with "
            "the apprise command"
        )
    return Receipt()


def _notify(address: str, text: str) -> bool:
    apprise = _library()
    service = apprise.Apprise(
        asset=apprise.AppriseAsset(app_id="Wakebell", app_desc="Wakebell", async_mode=False, storage_mode="memory")
    )
    if not service.add(address):
        raise PermanentFailure("Apprise does not know the service or does not understand the channel's `url`")
    return bool(service.notify(body=text, body_format="text", interpret_escapes=False))


def _library() -> Any:
    """Imported at the first use, which takes longer than an idle tick; and silent, since it logs addresses."""
    import apprise  # noqa: PLC0415

    for name in ("apprise", "urllib3", "requests"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
    return apprise
