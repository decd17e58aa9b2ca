"""Channels: whether each provider knows the account, by requests that send nothing."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from app import plugins
from app.clients import reaching
from app.clients.reasons import why
from app.doctor.looks import Look
from app.doctor.network import origin_of
from app.domain.findings import Finding, fail, ok, skipped, warn
from app.settings import INBOX

if TYPE_CHECKING:
    import httpx

    from app.settings import ChannelSettings, Settings

UNTOLD = "whether it takes messages cannot be told without sending one"


def looks(settings: Settings, http: httpx.AsyncClient) -> list[Look]:
    """One for each channel but the inbox, which goes nowhere."""
    return [
        Look(name=f"channel {channel.name}", work=partial(_channel, channel, _who(settings, channel), http))
        for channel in settings.channels.values()
        if channel.kind != INBOX
    ]


def _who(settings: Settings, channel: ChannelSettings) -> str:
    """Somebody on it."""
    return next((one.name for one in settings.recipients.values() if one.channel == channel.name), "RECIPIENT")


async def _channel(channel: ChannelSettings, recipient: str, http: httpx.AsyncClient) -> list[Finding]:
    module: Any = plugins.load("app.channels", channel.kind)
    if hasattr(module, "probe"):
        found: list[Finding] = await module.probe(channel.options, http)
        return found
    untold = skipped(UNTOLD, f"`wakebell send-test {recipient}` sends one")
    origin = origin_of(module, channel.options)
    return [untold] if origin is None else [await _met(origin), untold]


async def _met(origin: str) -> Finding:
    """Its name and its certificate: more would be a request, and nobody knows what that does there."""
    host = urlsplit(origin).hostname or ""
    if urlsplit(origin).scheme != "https":
        return warn(
            f"{host} is not asked by https: what is sent can be read on the way", "take an https address", name="tls"
        )
    try:
        met = await reaching.secured(origin)
    except (OSError, EOFError, ValueError) as error:
        reason, change = why(error)
        return fail(f"{host}: {reason}", change, name="tls")
    return ok(f"{host} is reached by {met.version}", name="tls")
