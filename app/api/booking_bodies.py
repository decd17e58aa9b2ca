"""Bookings as programs write them and as they are told of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from app.asked import Refused, Text, refusal, storable
from app.domain.bookings import REF_LENGTH, Booking, Start, instant, read_start, zone_of
from app.domain.shown import instant as written
from app.settings.booked import booked
from app.settings.problems import quoted
from app.settings.zones import LANGUAGES

if TYPE_CHECKING:
    from app.settings import Settings
    from app.stores.bookings import StoredBooking

TITLE_LENGTH = 500
SHOWN_LENGTH = 64


class _Asked(BaseModel):
    """A booking. A key that is null counts as left out."""

    model_config = ConfigDict(extra="forbid", strict=True)

    title: Annotated[Text, Field(min_length=1, max_length=TITLE_LENGTH)]
    starts_at: Any
    to: Any
    timezone: Text | None = None
    language: Text | None = None
    all_day: bool | None = None


class _Address(BaseModel):
    """Somebody on a channel whom the configuration does not name."""

    model_config = ConfigDict(extra="forbid", strict=True)

    channel: Text
    to: Text = ""


def known_ref(ref: str) -> str:
    """A name that a booking can have.

    Raises:
        Refused: it cannot.
    """
    try:
        storable(ref)
    except ValueError as error:
        raise Refused(f"ref: {error}") from None
    if not ref.strip() or len(ref) > REF_LENGTH or not ref.isprintable():
        raise Refused(f"ref: must be 1 to {REF_LENGTH} characters, none of them a control character")
    return ref


def read(ref: str, given: dict[str, Any], settings: Settings) -> Booking:
    """The booking that is asked for.

    Raises:
        Refused: it cannot work, and which field is to blame.
    """
    try:
        asked = _Asked.model_validate({name: value for name, value in given.items() if value is not None})
    except ValidationError as error:
        raise refusal(error) from None
    if not asked.title.strip():
        raise Refused("title: is empty")
    if asked.language is not None and asked.language not in LANGUAGES:
        raise Refused(f"language: must be one of {', '.join(LANGUAGES)}")
    recipient, channel, address = _whom(asked.to)
    timezone = asked.timezone or _zone_name(recipient, settings)
    booking = Booking(
        ref=ref,
        title=asked.title,
        start=_start(asked, timezone),
        timezone=timezone,
        recipient=recipient,
        channel=channel,
        address=address,
        language=asked.language,
    )
    try:
        booked(settings, booking)
    except ValueError as error:
        raise Refused(f"to: {error}") from None
    return booking


def shown(booking: StoredBooking, settings: Settings) -> dict[str, Any]:
    """A booking as it stands, with each reminder of its start: when it falls due, and the message that tells it."""
    to = booking.recipient if booking.recipient is not None else {"channel": booking.channel, "to": booking.address}
    return {
        "ref": booking.ref,
        "title": booking.title,
        "starts_at": written(booking.starts_at),
        "all_day": booking.all_day,
        "timezone": booking.timezone,
        "to": to,
        "language": booking.language,
        "created_at": written(booking.created_at),
        "updated_at": written(booking.updated_at),
        "reminders": _reminders(booking, settings),
    }


def _reminders(booking: StoredBooking, settings: Settings) -> list[dict[str, Any]]:
    try:
        zone = zone_of(booking.timezone)
    except ValueError:
        zone = zone_of("UTC")
    start = Start(at=booking.starts_at, all_day=booking.all_day, zone=zone)
    rules = [one.rule for one in settings.reminders.values() if one.query is None]
    return [
        {
            "reminder": rule.name,
            "due_at": written(instant(start, rule).at),
            "message": booking.reminders.get(rule.name),
        }
        for rule in rules
    ]


def _start(asked: _Asked, timezone: str) -> Start:
    try:
        zone = zone_of(timezone)
    except ValueError as error:
        raise Refused(f"timezone: {quoted(timezone[:SHOWN_LENGTH])} {error}") from None
    try:
        return read_start(asked.starts_at, zone, all_day=asked.all_day)
    except ValueError as error:
        raise Refused(f"starts_at: {error}") from None


def _whom(to: Any) -> tuple[str | None, str | None, str | None]:
    match to:
        case str():
            return _storable(to), None, None
        case dict():
            try:
                address = _Address.model_validate({name: value for name, value in to.items() if value is not None})
            except ValidationError as error:
                raise refusal(error, within="to", hidden=to) from None
            return None, address.channel, address.to
        case _:
            raise Refused("to: must be a recipient's name, or {channel, to}")


def _storable(name: str) -> str:
    try:
        return storable(name)
    except ValueError as error:
        raise Refused(f"to: {error}") from None


def _zone_name(recipient: str | None, settings: Settings) -> str:
    """The recipient's, else the service's own."""
    known = settings.recipients.get(recipient) if recipient is not None else None
    return settings.service.timezone if known is None else known.timezone
