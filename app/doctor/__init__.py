"""A look at everything around the service, from where it runs: what is found, and what to change.

    configuration --> database --> schema, rights, rings
                  |-> names of hosts
                  |-> PUBLIC_URL --> the doors behind it
                  |-> channels, chats, models
                  `-> Redis, heartbeat

Everything is looked at side by side, each within its time. Nothing is changed, and nothing is sent to people.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING

from app import settings
from app.clients.reasons import finding_of
from app.context import outbound, user_agent
from app.doctor import address, channels, chats, configuration, database, memory, network, rings
from app.domain.errors import ConfigError, Failure, ServiceError
from app.domain.findings import Finding, fail
from app.domain.masking import NO_MASK

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from app.doctor.looks import Look
    from app.domain.masking import Mask
    from app.settings import Settings

MOST_LENGTH = 600
"""Characters of one finding."""


async def run(environ: Mapping[str, str], known: Sequence[str] = ()) -> list[Finding]:
    """Look at everything that can be looked at; in under a minute.

    `known` are problems that were found before: why there is no database to be looked at.
    """
    configured = _configured(environ)
    named = user_agent(configured) if configured is not None else "Wakebell"
    async with outbound(named) as http:
        looks: list[Look] = [*configuration.looks(environ), *database.looks(environ, configured, known)]
        if configured is not None:
            looks += [
                *network.looks(configured),
                *address.looks(configured, http),
                *channels.looks(configured, http),
                *chats.looks(configured, http),
                *memory.looks(configured),
                *rings.looks(configured),
            ]
        found = await asyncio.gather(*(_bounded(look) for look in looks))
    mask = configured.mask if configured is not None else NO_MASK
    return [_shown(finding, mask) for findings in found for finding in findings]


def _configured(environ: Mapping[str, str]) -> Settings | None:
    try:
        return settings.load(environ)
    except ConfigError:  # told by the look at the configuration
        return None


async def _bounded(look: Look) -> list[Finding]:
    try:
        async with asyncio.timeout(look.seconds):
            found = await look.work()
    except TimeoutError:
        found = [fail(f"nothing came of it within {look.seconds:g} s", "try again; it may have been asleep")]
    except Failure as failure:
        found = [finding_of(failure)]
    except ServiceError as error:
        found = [fail(str(error))]
    except Exception as error:  # noqa: BLE001 - one look that breaks must not hide the others
        found = [fail(f"looking at it broke off ({type(error).__name__})", "this is a fault of Wakebell's own")]
    return [finding.under(look.name) for finding in found]


def _shown(finding: Finding, mask: Mask) -> Finding:
    """On one line, without secrets, and no longer than a screen takes."""
    name, found, change = (
        "".join(letter if letter.isprintable() else " " for letter in mask(text))
        for text in (finding.name, finding.found, finding.change)
    )
    return replace(finding, name=name, found=found[:MOST_LENGTH], change=change[:MOST_LENGTH])
