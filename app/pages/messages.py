"""What was told, to whom and when: the inbox, and all other channels."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import ValidationError

from app.api.messages import MessagesQuery
from app.asked import refusal
from app.pages import words
from app.pages.asking import Shown, Trouble

if TYPE_CHECKING:
    from app.pages.asking import Asked

LIMIT = 25
FILTERS = ("status", "recipient", "channel")


async def show_all(asked: Asked) -> Shown:
    """A page of messages, the newest first."""
    chosen = asked.chosen(*FILTERS)
    try:
        query = MessagesQuery.model_validate(chosen)
    except ValidationError as error:
        raise refusal(error) from None
    page = await asked.stores.listings.list_messages(
        limit=LIMIT,
        before=asked.before(),
        status=query.status,
        recipient=query.recipient,
        channel=query.channel,
    )
    values = {
        "page": page,
        "chosen": chosen,
        "first": asked.before() is None,
        "statuses": list(words.MESSAGE_WORDS),
        "recipients": list(asked.settings.recipients),
        "channels": list(asked.settings.channels),
    }
    return Shown(template="messages.html", values=values)


async def show_one(asked: Asked) -> Shown:
    """One message with its story and the items that it tells of."""
    message = await asked.stores.listings.get_message(asked.id) if asked.id else None
    if message is None:
        raise Trouble(404, "There is no such message; one that is over is deleted after [retention] messages_days.")
    items = await asked.stores.listings.list_told(message.id)
    return Shown(template="message.html", values={"message": message, "items": items})
