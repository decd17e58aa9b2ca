"""What a reminder says: in the service's own words, or in those of a template of the user's.

Reminder: Haircut, tomorrow 09:00
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from app.domain import digests, textcut
from app.domain.phrasing import Moment, WordingError, compiled, line_of, reason_of

if TYPE_CHECKING:
    from datetime import datetime

    from app.domain.bookings import Booking

WORDS_BY_LANGUAGE = {
    "en": "Reminder: {title}, {when}",
    "th": "แจ้งเตือน: {title} {when}",
    "vi": "Nhắc lịch: {title}, {when}",
    "my": "သတိပေးချက်: {title}၊ {when}",
}

NAMES = ("title", "when", "date", "time", "start", "all_day", "timezone", "language")
"""What a template is given."""

SOURCE_LIMIT = 2000
"""Characters of a template."""

OUTPUT_LIMIT = 1000
"""Characters of what it makes: every channel takes so many in one message, and a reminder is one."""


class ReminderWording:
    """A template that can be used."""

    def __init__(self, source: str) -> None:
        """Raises WordingError."""
        if len(source) > SOURCE_LIMIT:
            raise WordingError(1, f"is longer than {SOURCE_LIMIT:,} characters; write a shorter one")
        self._template, _ = compiled(source, NAMES)

    def text(self, booking: Booking, *, now: datetime, language: str) -> str:
        """What it makes of a booking.

        Raises:
            WordingError: it cannot be filled in with this booking, or makes nothing of it.
        """
        try:
            made = "".join(self._template.generate(**_given(booking, now=now, language=language)))
        except Exception as error:  # a template is the user's: it may fail in any way
            raise WordingError(line_of(error), reason_of(error)) from error
        text = _shortened(digests.note_text(made))
        if not text:
            raise WordingError(1, "makes an empty text")
        return text


def text(booking: Booking, *, now: datetime, language: str) -> str:
    """The service's own words; English for a language that it does not speak."""
    words = WORDS_BY_LANGUAGE.get(language, WORDS_BY_LANGUAGE["en"])
    given = _given(booking, now=now, language=language)
    return _shortened(digests.note_text(words.format(title=given["title"], when=given["when"])))


def _given(booking: Booking, *, now: datetime, language: str) -> dict[str, object]:
    start = booking.start
    moment = Moment(start.at, now, start.zone, language)
    clock = moment.told("clock")
    near = moment.told()
    return {
        "title": digests.plain_title(booking.title) or booking.ref,
        "when": near.removesuffix(clock).rstrip() if start.all_day else near,
        "date": moment.told("date"),
        "time": "" if start.all_day else clock,
        "start": moment,
        "all_day": start.all_day,
        "timezone": booking.timezone,
        "language": language,
    }


def _shortened(told: str) -> str:
    return textcut.shorten(told, limit=OUTPUT_LIMIT, characters=OUTPUT_LIMIT) if len(told) > OUTPUT_LIMIT else told
