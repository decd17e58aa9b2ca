"""An address by its fingerprint: what is kept of it is not for others to read, nor for another address to inherit."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from app.settings.model import ChannelSettings, Recipient, Settings

ACCOUNTS = ("token", "url", "webhook_url", "topic")
"""Options that say which account of a provider writes, or which address is written to."""


def address_of(settings: Settings, recipient: Recipient) -> str:
    """SHA-256, hexadecimal, of the kind and the account of the recipient's channel and of its `to`."""
    return fingerprint(settings.channels[recipient.channel], recipient.to)


def fingerprint(channel: ChannelSettings, to: str) -> str:
    """Two recipients who are one address have one fingerprint; another token or `to` has another one."""
    accounts = [_plain(getattr(channel.options, name, None)) for name in ACCOUNTS]
    return hashlib.sha256("\n".join([channel.kind, *accounts, to]).encode("utf-8", "replace")).hexdigest()


def _plain(value: Any) -> str:
    if value is None:
        return ""
    secret = getattr(value, "get_secret_value", None)
    return str(secret() if secret is not None else value)
