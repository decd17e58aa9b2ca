"""Judges what a provider says of our door: where it delivers to, what it delivers, and how that went."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from app.domain.findings import Finding, fail, ok, warn

if TYPE_CHECKING:
    from collections.abc import Collection

NAME = "address"
"""What the finding about the address is called."""


def registered(told: str | None, address: str | None, *, how: str) -> Finding:
    """Whether a provider delivers to our address. `how` says how it is told of one.

    Of another address only the host is named: what others write into its path may be a secret of theirs.
    """
    if not told:
        return fail("the provider has no address to deliver to", how, name=NAME)
    if address is None:
        return warn(
            f"the provider delivers to {_host(told)}, and without PUBLIC_URL nobody knows whether that is this service",
            "set PUBLIC_URL to the address of this service",
            name=NAME,
        )
    if told == address:
        return ok(f"the provider delivers to {address}", name=NAME)
    if _host(told) != _host(address):
        return fail(f"the provider delivers to another host, {_host(told)}", f"{how}: {address}", name=NAME)
    return fail("the provider delivers to this host, and to another path of it", f"{how}: {address}", name=NAME)


def subscribed(given: Collection[str], *, needed: Collection[str], useful: Collection[str], how: str) -> Finding:
    """Whether a provider delivers what is needed of it, and what is of use. `how` says how it is told to."""
    missing = [one for one in needed if one not in given]
    if missing:
        return fail(f"the provider does not deliver {' and '.join(missing)}", how, name="events")
    lacking = [one for one in useful if one not in given]
    if lacking:
        return warn(f"the provider does not deliver {' and '.join(lacking)}", how, name="events")
    return ok("the provider delivers all that is of use", name="events")


def delivered(waiting: int, error: str, *, change: str) -> Finding:
    """How deliveries went, by how many wait and what the last refusal was; empty: there was none."""
    wait = f"{waiting} events wait" if waiting != 1 else "1 event waits"
    if error and waiting:
        return fail(f"{wait}, and the last delivery failed: {error}", change, name="deliveries")
    if error:
        return ok(f"none waits; the last one that failed did so for this: {error}", name="deliveries")
    if waiting:
        return warn(
            wait, "write to the bot and look again: a service that sleeps is delivered to late", name="deliveries"
        )
    return ok("none waits, and none has failed", name="deliveries")


def _host(address: str) -> str:
    try:
        return urlsplit(address).hostname or "an address without a host"
    except ValueError:
        return "an address that cannot be read"
