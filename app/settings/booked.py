"""Whom a booking is for: somebody of the configuration, or an address on one of its channels."""

from __future__ import annotations

from typing import TYPE_CHECKING

from app.domain.bookings import nobody, zone_of
from app.settings.kinds import address_check, needs_address
from app.settings.model import Recipient
from app.settings.problems import choose, quoted
from app.settings.zones import LANGUAGES

if TYPE_CHECKING:
    from app.domain.bookings import Booking
    from app.settings.model import Language, Settings

ADDRESS_LENGTH = 500


def booked(settings: Settings, booking: Booking) -> Recipient:
    """Who is told of a booking, in its language where it says one.

    Raises:
        ValueError: there is no such recipient, channel or time zone, or nobody can be reached there; never with the
            address.
    """
    try:
        zone_of(booking.timezone)
    except ValueError as error:
        raise ValueError(f"its timezone {error}") from None
    if booking.recipient is not None:
        recipient = settings.recipients.get(booking.recipient)
        if recipient is None:
            named = booking.recipient[:64]
            raise ValueError(
                f"there is no recipient {quoted(named)}; {choose(named, settings.recipients, none='name another')}"
            )
        return recipient
    if booking.channel is None:
        raise ValueError("it names neither a recipient nor a channel")
    name = booking.channel
    to = check_address(settings, name, booking.address or "")
    return Recipient(
        name=nobody(name),
        channel=name,
        to=to,
        timezone=booking.timezone,
        language=language_of(booking.language, settings.service.language),
    )


def check_address(settings: Settings, name: str, to: str) -> str:
    """The address as it is used. Raises ValueError, in words that do not repeat it."""
    channel = settings.channels.get(name)
    if channel is None:
        shown = name[:64]
        raise ValueError(
            f"there is no channel {quoted(shown)}; {choose(shown, settings.channels, none='name another')}"
        )
    if not needs_address(channel):
        if to:
            raise ValueError(f"the channel {name} says itself where its messages go; leave the address out")
        return ""
    if not to.strip():
        raise ValueError(f"whom to reach on the channel {name} is missing")
    check = address_check(channel)
    if len(to) > ADDRESS_LENGTH or any(not letter.isprintable() for letter in to):
        raise ValueError(f"is no address that the channel {name} can reach")
    if check is not None and (wrong := check(to)):
        raise ValueError(wrong)
    return to


def language_of(given: str | None, default: Language) -> Language:
    """The language that is named, if the service speaks it."""
    return next((language for language in LANGUAGES if language == given), default)
