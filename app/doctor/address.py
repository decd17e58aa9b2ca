"""PUBLIC_URL, as somebody from outside meets it: its certificate, whether this service answers there, and its doors."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING

from app.clients.front_door import Met, meet
from app.doctor.looks import Look
from app.domain.errors import Failure
from app.domain.findings import Finding, fail, ok, skipped, warn

if TYPE_CHECKING:
    import httpx

    from app.settings import Settings
    from app.settings.chats import ChatSettings

NAME = "PUBLIC_URL"

SECONDS = 55.0
"""The host may have to start first; then its doors answer at once."""

SLOW_SECONDS = 5.0

SOON_DAYS = 14
"""Whoever renews certificates by himself has done so by then: Let's Encrypt's are renewed a month before their end."""

TICK = "/api/cron/tick"
WRONG = {"Authorization": "Bearer not-the-secret-but-a-look-whether-it-is-asked-for"}
WRONG_QUERY = "?hub.mode=subscribe&hub.verify_token=not-the-word&hub.challenge=1"

OWN = "PUBLIC_URL must be this service's own address, as people and providers reach it"
IN_FRONT = "look at what stands in front of the service: its protection against bots, its passwords, its paths"


def looks(settings: Settings, http: httpx.AsyncClient) -> list[Look]:
    """One: the doors are met once the host is awake."""
    return [Look(name=NAME, work=partial(_look, settings, http), seconds=SECONDS)]


async def _look(settings: Settings, http: httpx.AsyncClient) -> list[Finding]:
    url = settings.environment.public_url
    if url is None:
        needed = bool(settings.chats) or settings.tick.fan_out > 0
        told = "it is not set, so that nobody can tell whether people and providers reach this service"
        return [(warn if needed else skipped)(told, "set it to the address of this service")]
    met = await meet(http, "GET", f"{url}/healthz")
    found = [_healthz(met), *_tls(met)]
    if found[0].status == "fail":
        return found
    found.append(await _door(http, "POST", f"{url}{TICK}", name="tick", headers=WRONG))
    for chat in settings.chats.values():
        found += await _chat(url, chat, http)
    return found


def _healthz(met: Met) -> Finding:
    if met.redirects:
        return fail(f"it answered {met.status} and leads elsewhere", "write into PUBLIC_URL where it leads to")
    if met.status in {502, 503, 504}:
        return fail(
            f"it answered {met.status}: somebody is there for the service, and does not reach it",
            "look whether it runs, listens on 0.0.0.0 and PORT, and what its log says",
        )
    if met.status != 200 or met.told.get("status") != "ok":  # noqa: PLR2004 - as HTTP has it
        return fail(f"what answers there ({met.status}) is not this service", OWN)
    told = f"this service, or one like it, answers in {met.seconds:.1f} s"
    if met.seconds > SLOW_SECONDS:
        return warn(told, "it slept, or is far: a provider that waits less is answered late")
    return ok(told)


def _tls(met: Met) -> list[Finding]:
    if met.tls is None:
        told = "there is none: secrets are read by whoever is between, and no provider delivers there"
        return [warn(told, "take the https address", name="tls")]
    if met.tls.until is None:
        return [ok(f"{met.tls.version}", name="tls")]
    days = (met.tls.until - datetime.now(UTC)).days
    told = f"{met.tls.version}, and the certificate is good for {days} days more"
    return [warn(told, "see that it is renewed", name="tls") if days < SOON_DAYS else ok(told, name="tls")]


async def _chat(url: str, chat: ChatSettings, http: httpx.AsyncClient) -> list[Finding]:
    """It is to refuse what nobody has signed, and whoever asks without the word, where one is asked for."""
    name = f"chat {chat.name}"
    found = [await _door(http, "POST", f"{url}{chat.path}", name=name)]
    if hasattr(chat.options, "verify_token") and found[0].status == "ok":
        found.append(await _door(http, "GET", f"{url}{chat.path}{WRONG_QUERY}", name=f"{name} question", refusal=403))
    return found


async def _door(
    http: httpx.AsyncClient,
    method: str,
    url: str,
    *,
    name: str,
    headers: dict[str, str] | None = None,
    refusal: int = 401,
) -> Finding:
    try:
        met = await meet(http, method, url, headers={**(headers or {}), "Content-Type": "application/json"})
    except Failure as failure:
        return fail(str(failure), IN_FRONT, name=name)
    ours = met.headers.get("Content-Type", "").startswith("application/problem+json")
    if ours and met.status == refusal:
        return ok(f"it refuses whoever does not prove who they are ({refusal}), as it should", name=name)
    if ours and met.status == 404:  # noqa: PLR2004 - as HTTP has it
        return fail("the service there has no such door", "deploy this release and this configuration there", name=name)
    if met.redirects:
        return fail(
            f"it answered {met.status} and leads elsewhere", "write into PUBLIC_URL where it leads to", name=name
        )
    if 200 <= met.status < 300:  # noqa: PLR2004 - as HTTP has it
        return fail(f"it takes what comes from anybody ({met.status}): that is another service", OWN, name=name)
    return fail(f"it answered {met.status}, and not by this service's own words", IN_FRONT, name=name)
