"""Other words for an item: a template of the user's, in Jinja's language, that makes the lines of one item.

    {{ item.title }}
    {{ item.fields.company }}, {{ item.published }}
    {{ item.link }}

It runs while messages are composed, in a transaction that must not wait: `phrasing` says how it is kept short. What it
makes is cut after so many characters. Jinja is imported only where somebody has written a template.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from app.domain import digests
from app.domain.phrasing import VALUE_LIMIT, AnyFields, Fields, Moment, WordingError, compiled, line_of, reason_of

if TYPE_CHECKING:
    from datetime import datetime, tzinfo

    from app.domain.messages import OwedItem

SOURCE_LIMIT = 4000
"""Characters of a template."""

OUTPUT_LIMIT = 4000
"""Characters of what it makes of one item."""


class Wording:
    """A template that can be used."""

    def __init__(self, source: str) -> None:
        """Raises WordingError."""
        if len(source) > SOURCE_LIMIT:
            raise WordingError(1, f"is longer than {SOURCE_LIMIT:,} characters; write a shorter one")
        self._template, self._named = compiled(source)

    @property
    def fields(self) -> dict[str, int]:
        """Those that it names, each with the first line that does."""
        return self._named.fields

    def try_out(self, item: OwedItem, *, now: datetime, zone: tzinfo) -> None:
        """Fill it in with that item, whatever its fields hold: numbers or texts. Raises WordingError."""
        try:
            self._filled(item, AnyFields(any=500), "sample", language="en", now=now, zone=zone)
        except Exception:  # noqa: BLE001 - whatever it is: some fields are texts
            try:
                self._filled(item, AnyFields(any="sample"), "sample", language="en", now=now, zone=zone)
            except Exception as error:
                raise WordingError(line_of(error), reason_of(error)) from error

    def lines(
        self, item: OwedItem, *, subscription: str, language: str, now: datetime, zone: tzinfo
    ) -> tuple[str, ...]:
        """The lines that it makes of an item, with something in them, safe beside other text; perhaps none.

        Raises:
            WordingError: it cannot be filled in with this item.
        """
        try:
            made = self._filled(item, Fields(item.fields), subscription, language=language, now=now, zone=zone)
        except Exception as error:  # a template is the user's: it may fail in any way
            raise WordingError(line_of(error), reason_of(error)) from error
        return digests.shown_lines(made, characters=OUTPUT_LIMIT)

    def _filled(
        self, item: OwedItem, fields: Fields, subscription: str, *, language: str, now: datetime, zone: tzinfo
    ) -> str:
        at = item.published_at
        given = {
            "title": digests.shown_title(item, language),
            "link": digests.shown_link(item.link or ""),
            "source": item.source,
            "published": None if at is None else Moment(at, now, zone, language),
            "text": digests.shown_words(item.text[:VALUE_LIMIT]) if "text" in self._named.parts else "",
            "fields": fields,
        }
        made, room = [], OUTPUT_LIMIT * 2  # white space and isolates are counted here, and are not later
        for piece in self._template.generate(item=given, subscription=subscription, language=language):
            made.append(piece[:room])
            room -= len(piece)
            if room <= 0:
                break
        return "".join(made)
