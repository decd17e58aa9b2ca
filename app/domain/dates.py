"""Dates as sources write them."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, timezone
from email.utils import parsedate_tz

DATE_LIMIT = 100
"""Characters; no way to write a date takes as many."""

ZONES = {
    name: hours
    for hours, names in (
        (-10.0, "hst"),
        (-9.0, "akst"),
        (-8.0, "pst akdt"),
        (-7.0, "mst pdt"),
        (-6.0, "cst mdt"),
        (-5.0, "est cdt"),
        (-4.0, "ast edt"),
        (-3.0, "adt"),
        (0.0, "ut utc gmt z wet"),
        (1.0, "bst cet met west"),
        (2.0, "cest mest eet"),
        (3.0, "eest msk"),
        (5.0, "pkt"),
        (5.75, "npt"),
        (6.5, "mmt"),
        (7.0, "ict wib"),
        (8.0, "hkt sgt pht"),
        (9.0, "jst kst"),
        (10.0, "aest"),
        (11.0, "aedt"),
        (12.0, "nzst"),
        (13.0, "nzdt"),
    )
    for name in names.split()
}
"""Hours from UTC. Names that several zones share mean what they do in e-mail (RFC 822), or nothing at all."""

EARLIEST = 1900
"""A year before is no date of a publication, but what a program wrote that had none: 0001-01-01, 1899-12-30."""

YEAR_ONE = re.compile(r"(?<![+-])\b000\d\b")
"""In an e-mail's date, where two digits would be a year of this century."""

NUMERIC = re.compile(
    r"(\d{4})(?:[-/.](\d{1,2})(?:[-/.](\d{1,2}))?)?"
    r"(?:(?:\s{1,3}|,\s{0,3}|T)(\d{1,2}):(\d{1,2})(?::(\d{1,2})(?:[.,]\d{1,9})?)?)?"
    r"\s{0,3}([+-]\d{1,2}:?\d{2}|[+-]\d{1,2}|[A-Z]{1,5})?",
    re.IGNORECASE,
)
"""The year first, and less strict than ISO 8601."""

WEEKDAY = re.compile(r"^[A-Za-z]{2,9}[,.]?\s{1,3}(?=\d{4}[-/.])")
LAST_WORD = re.compile(r"(?:^|[\s\d:])\(?([A-Za-z]{1,5})\)?$")
LEAP_SECOND = re.compile(r"(?<=\d\d:\d\d:)60(?!\d)")
OFFSET = re.compile(r"(?:GMT|UTC)(?=[+-]\d)", re.IGNORECASE)


def moment(written: str) -> datetime | None:
    """A date of ISO 8601, of an e-mail or like one of these, in UTC, which is also the zone of one without.

    None when it is no date. A year of another calendar is taken for one of ours.
    """
    written = OFFSET.sub("", LEAP_SECOND.sub("59", " ".join(written[:DATE_LIMIT].split())))
    try:
        found = _iso(written) or _numeric(WEEKDAY.sub("", written)) or _email(written)
        return found.astimezone(UTC) if found and found.year >= EARLIEST else None
    except (ValueError, OverflowError, IndexError, TypeError):
        return None


def unknown_zone(written: str) -> bool:
    """Whether a date that can be read names a zone that we do not know, and take for UTC."""
    word = LAST_WORD.search(written[-DATE_LIMIT:].strip())
    return word is not None and word[1].lower() not in ZONES.keys() | {"am", "pm"} and moment(written) is not None


def _iso(written: str) -> datetime | None:
    try:
        found = datetime.fromisoformat(written.upper())
    except ValueError:
        return None
    return found if found.tzinfo else found.replace(tzinfo=UTC)


def _numeric(written: str) -> datetime | None:
    found = NUMERIC.fullmatch(written)
    if found is None:
        return None
    year, month, day, hour, minute, second = (
        int(number or default) for number, default in zip(found.groups()[:6], (1, 1, 1, 0, 0, 0), strict=True)
    )
    return datetime(year, month, day, hour, minute, second, tzinfo=_zone(found[7] or ""))


def _zone(written: str) -> timezone:
    if written[:1] not in {"+", "-"}:
        return timezone(timedelta(hours=ZONES.get(written.lower(), 0.0)))
    digits = written[1:].replace(":", "").ljust(4, "0") if len(written) > 2 else f"0{written[1:]}00"  # noqa: PLR2004 - a sign and a digit
    offset = timedelta(hours=int(digits[:2]), minutes=int(digits[2:]))
    return timezone(-offset if written[0] == "-" else offset)


def _email(written: str) -> datetime | None:
    """As RFC 5322 and its forerunners have it, and C's asctime."""
    found = parsedate_tz(written) or parsedate_tz(f"{written} 00:00:00")
    if found is None or YEAR_ONE.search(written):
        return None
    word = LAST_WORD.search(written)  # it takes a zone that it does not know for UTC, and knows America's only
    zone = _zone(word[1]) if word and word[1].lower() in ZONES else timezone(timedelta(seconds=found[9] or 0))
    return datetime(*found[:6], tzinfo=zone)
