"""The configuration in short: `wakebell check` tells it in full. And whether the secrets can be guessed."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from app import check, handlers, settings
from app.doctor.looks import Look
from app.domain.errors import ConfigError
from app.domain.findings import Finding, fail, ok, skipped, warn

if TYPE_CHECKING:
    from collections.abc import Mapping

    from app.settings import Environment

GOOD_LENGTH = 24
"""Characters; what people make up themselves is mostly shorter."""

GOOD_VARIETY = 10
"""Different characters; 32 hexadecimal digits have about 14."""

CRON = "CRON_SECRET"
API = "API_TOKEN"

MAKE = "make one with: openssl rand -hex 32"

IN_FULL = "`wakebell check` tells it in full"


def looks(environ: Mapping[str, str]) -> list[Look]:
    """The file, and the secrets that it is not about."""
    return [
        Look(name="configuration", work=partial(_configuration, environ)),
        Look(name="", work=partial(_secrets, environ)),  # each has its own name
    ]


async def _configuration(environ: Mapping[str, str]) -> list[Finding]:
    problems = (await check.run(environ, database=False)).problems
    if problems:
        more = f", and {len(problems) - 1} more" if len(problems) > 1 else ""
        return [fail(f"{problems[0]}{more}", IN_FULL)]
    configured = settings.load(environ)
    try:
        types = handlers.known_to(configured)
    except ConfigError as error:
        return [fail(error.problems[0], IN_FULL)]
    counts = {
        "sources": len(configured.sources),
        "channels": len(configured.channels) - 1,  # the inbox is always there
        "chats": len(configured.chats),
        "schedules": len(configured.schedules),
        "handlers": len(types),
    }
    told = [f"{count} {name if count > 1 else name[:-1]}" for name, count in counts.items() if count]
    return [ok(", ".join(told) or "nothing is configured")]


async def _secrets(environ: Mapping[str, str]) -> list[Finding]:
    try:
        environment = settings.load(environ).environment
    except ConfigError:
        return [skipped("the configuration cannot be read", name=CRON)]
    return [*_cron(environment), _api(environment)]


def _cron(environment: Environment) -> list[Finding]:
    if not environment.cron_secrets:
        return [fail("it is not set, and without it the service does not start", MAKE, name=CRON)]
    found = [_judged(CRON, environment.cron_secrets[0])]
    if len(environment.cron_secrets) > 1:
        found.append(
            warn(
                "it is still taken as well",
                "remove it once every scheduler rings with the new one",
                name="CRON_SECRET_PREVIOUS",
            )
        )
    return found


def _api(environment: Environment) -> Finding:
    if environment.api_token is None:
        return skipped("it is not set: the API and the status page answer 503", "set it to use them", name=API)
    return _judged(API, environment.api_token)


def _judged(name: str, secret: bytes) -> Finding:
    """By its length and its variety: no more can be said without telling it."""
    if len(secret) < GOOD_LENGTH:
        return warn(f"it has {len(secret)} characters, and may be guessed", MAKE, name=name)
    if len(set(secret)) < GOOD_VARIETY:
        return warn("it is made of few different characters, and may be guessed", MAKE, name=name)
    return ok(f"it has {len(secret)} characters", name=name)
