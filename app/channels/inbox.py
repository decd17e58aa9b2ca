"""The inbox: messages are kept for the status page, and go nowhere. It works before anyone has an account anywhere."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from pydantic import BaseModel, ConfigDict

from app.domain import digests
from app.domain.messages import Body, Digest, Message, Receipt

if TYPE_CHECKING:
    import httpx

REPEATABLE_FOR: timedelta | None = timedelta(days=365)
"""Sending does nothing, so that doing it again is harmless for as long as anyone tries."""

WHOLE = True
"""Nobody's phone rings for it, and it is the place to look for what was only counted elsewhere."""


class Options(BaseModel):
    """The inbox has nothing to set."""

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)


def compose(digest: Digest, options: Options) -> list[Body]:  # noqa: ARG001 - as every channel
    """One body with the whole digest; none for an empty one."""
    text = digests.as_text(digest)
    return [Body(body=text, text=text, items=tuple(range(len(digest.items))))] if text else []


async def send(message: Message, options: Options, http: httpx.AsyncClient) -> Receipt:  # noqa: ARG001
    """Nothing to do: the message's row is its delivery."""
    return Receipt()
