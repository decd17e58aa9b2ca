"""Instants as APIs and pages write them."""

from __future__ import annotations

import math
import re
from datetime import UTC, datetime
from typing import Any

from app.domain.dates import moment

SECONDS_BELOW, MILLISECONDS_BELOW, MICROSECONDS_BELOW = 1e11, 1e14, 1e17
"""An epoch below the first is in seconds (until the year 5138), below the second in milliseconds, and so on."""

COMPACT = re.compile(r"(?:19|2[0-9])\d\d(?:0[1-9]|1[0-2])(?:0[1-9]|[12]\d|3[01])")
"""`20261130`: as an epoch, it would be a day of the year 1970."""

EPOCH = re.compile(r"-?\d{9,19}(?:\.\d{1,9})?")

MONTHS = {
    word: number
    for words in (
        "jan feb mar apr may jun jul aug sep oct nov dec",
        "ม.ค. ก.พ. มี.ค. เม.ย. พ.ค. มิ.ย. ก.ค. ส.ค. ก.ย. ต.ค. พ.ย. ธ.ค.",
        "มกราคม กุมภาพันธ์ มีนาคม เมษายน พฤษภาคม มิถุนายน กรกฎาคม สิงหาคม กันยายน ตุลาคม พฤศจิกายน ธันวาคม",
    )
    for number, word in enumerate(words.split(), 1)
}
BUDDHIST = 2400
"""Years from here on, beside the name of a month, are counted as in Thailand: 543 more."""

CLOCK = r"(?:,? (?:at )?(\d{1,2}):(\d\d)(?::(\d\d))?)?"
DAY_FIRST = re.compile(rf"(\d{{1,2}})(?:st|nd|rd|th)? (\w{{3}})[a-z]*\.?,? (\d{{4}}){CLOCK}", re.ASCII | re.IGNORECASE)
MONTH_FIRST = re.compile(
    rf"(\w{{3}})[a-z]*\.? (\d{{1,2}})(?:st|nd|rd|th)?,? (\d{{4}}){CLOCK}", re.ASCII | re.IGNORECASE
)
THAI = re.compile(rf"(\d{{1,2}}) ({'|'.join(map(re.escape, (m for m in MONTHS if not m.isascii())))}) (\d{{4}}){CLOCK}")


def moment_of(value: Any) -> datetime | None:
    """The instant that a value means, in UTC, which is also the zone of one without; None when it means none.

    ISO 8601, the dates of e-mails, an epoch in seconds or milliseconds, and days such as "30 Nov 2026".
    """
    if isinstance(value, bool):
        return None
    if isinstance(value, int | float):
        return _compact(f"{value:.0f}" if abs(value) < 1e9 else "") or _epoch(value)  # noqa: PLR2004 - eight digits
    if not isinstance(value, str):
        return None
    written = " ".join(value[:100].split())
    if EPOCH.fullmatch(written):
        return _epoch(float(written))
    return _compact(written) or moment(written) or _worded(written)


def _epoch(number: float) -> datetime | None:
    try:
        if not math.isfinite(number) or abs(number) < 1e8:  # noqa: PLR2004 - before 1973: a count, a year
            return None
        size = abs(number)
        per_second = 1 if size < SECONDS_BELOW else 1e3 if size < MILLISECONDS_BELOW else 1e6
        return datetime.fromtimestamp(number / (per_second if size < MICROSECONDS_BELOW else 1e9), UTC)
    except (OverflowError, ValueError, OSError):
        return None


def _compact(written: str) -> datetime | None:
    if not COMPACT.fullmatch(written):
        return None
    try:
        return datetime(int(written[:4]), int(written[4:6]), int(written[6:]), tzinfo=UTC)
    except ValueError:
        return None


def _worded(written: str) -> datetime | None:
    """A day with its month in words, English or Thai."""
    if found := MONTH_FIRST.fullmatch(written):
        name, day, year = found[1], found[2], found[3]
    elif found := DAY_FIRST.fullmatch(written) or THAI.fullmatch(written):
        day, name, year = found[1], found[2], found[3]
    else:
        return None
    month = MONTHS.get(name.lower())
    if month is None:
        return None
    years = int(year) - 543 if int(year) >= BUDDHIST else int(year)
    hour, minute, second = (int(part or 0) for part in found.groups()[3:])
    try:
        return datetime(years, month, int(day), hour, minute, second, tzinfo=UTC)
    except ValueError:
        return None
