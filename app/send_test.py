"""One real message, now, and what the provider said of it."""

from __future__ import annotations

import uuid
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from app import main, plugins
from app.context import outbound, user_agent
from app.domain import pace, words
from app.domain.errors import PermanentFailure, QuotaSpent, ServiceError, TemporaryFailure, Unanswered
from app.domain.messages import Digest, Message
from app.settings import INBOX

if TYPE_CHECKING:
    from app.settings import Recipient, Settings


def stays_here(settings: Settings, name: str) -> bool:
    """Whether a message to the recipient goes no further than the database, which is needed then."""
    recipient = settings.recipients.get(name)
    return recipient is not None and settings.channels[recipient.channel].kind == INBOX


async def run(settings: Settings, name: str) -> str:
    """Send the recipient a test message past the queue; what happened, in one sentence.

    Raises:
        ServiceError: it was not taken; the sentence begins with that, and ends with what to do.
    """
    recipient = settings.recipients.get(name)
    if recipient is None:
        known = ", ".join(settings.recipients)
        raise ServiceError(f'the configuration has no recipient "{name}"; it has {known}')
    if stays_here(settings, name):
        return await _keep(settings, recipient)
    try:
        return await _send(settings, recipient)
    except Unanswered as failure:
        again = "it may have arrived all the same: look there before you try again"
        raise ServiceError(f"not known whether it was sent: {failure}; {again}") from failure
    except QuotaSpent as failure:  # its own words say what to do
        raise ServiceError(f"not sent: {failure}") from failure
    except TemporaryFailure as failure:
        raise ServiceError(f"not sent: {failure}; {_again(failure)}") from failure
    except PermanentFailure as failure:
        raise ServiceError(f"not sent: {failure}") from failure


def _again(failure: TemporaryFailure) -> str:
    """What can be done about it, beside what the failure itself says."""
    if failure.retry_after is None:
        return "try again in a minute, and if it stays so, check the channel's address and the provider's status page"
    return f"the provider wants to be left alone for {pace.told(failure.retry_after)}"


async def _send(settings: Settings, recipient: Recipient) -> str:
    channel = settings.channels[recipient.channel]
    module = plugins.load("app.channels", channel.kind)
    note = words.test_message(recipient.language, service=settings.service.name)
    digest = Digest(note=note, to=recipient.to, language=recipient.language)
    [body] = module.compose(digest, channel.options)
    message = Message(
        id=0,
        recipient=recipient.name,
        channel=channel.name,
        body=body.body,
        retry_key=uuid.uuid4(),
        first_tried_at=datetime.now(UTC),
    )
    async with outbound(user_agent(settings)) as http:
        receipt = await module.send(message, channel.options, http)
    told = f" (it calls it {receipt.provider_id})" if receipt.provider_id else ""
    return f"the channel {channel.name} took the message for {recipient.name}{told}: look whether it has arrived"


async def _keep(settings: Settings, recipient: Recipient) -> str:
    service = main.build(settings)
    note = words.test_message(recipient.language, service=settings.service.name)
    async with service.stores.database.held():
        await service.stores.require_schema()
        await service.stores.messages.note(note)
    return "the message is in the inbox"
