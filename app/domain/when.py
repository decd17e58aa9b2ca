"""Instants as people are told them: by the clock on their wall, in their language.

today 09:00    tomorrow 09:00    Mon 7 Dec 09:00    Mon 7 Dec 2027 09:00
วันนี้ 09:00     พรุ่งนี้ 09:00      จ. 7 ธ.ค. 09:00     จ. 7 ธ.ค. 2570 09:00
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Literal, get_args

if TYPE_CHECKING:
    from datetime import date, datetime, tzinfo

Style = Literal["time", "date", "clock"]
"""The day and the time; the day alone, by its date; the time of the day alone."""

STYLES: tuple[str, ...] = get_args(Style)


@dataclass(frozen=True, slots=True, kw_only=True)
class Calendar:
    """One language's names, in the order of weeks from Monday and of years, parted by spaces."""

    today: str
    tomorrow: str
    yesterday: str
    weekdays: str
    months: str

    dated: str = "{weekday} {day} {month}"
    years_ahead: int = 0
    """Of the calendar that is written in that language."""

    year: str = " {year}"


CALENDAR_BY_LANGUAGE = {
    "en": Calendar(
        today="today",
        tomorrow="tomorrow",
        yesterday="yesterday",
        weekdays="Mon Tue Wed Thu Fri Sat Sun",
        months="Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec",
    ),
    "th": Calendar(
        today="วันนี้",
        tomorrow="พรุ่งนี้",
        yesterday="เมื่อวาน",
        weekdays="จ. อ. พ. พฤ. ศ. ส. อา.",
        months="ม.ค. ก.พ. มี.ค. เม.ย. พ.ค. มิ.ย. ก.ค. ส.ค. ก.ย. ต.ค. พ.ย. ธ.ค.",
        years_ahead=543,
    ),
    "vi": Calendar(
        today="hôm nay",
        tomorrow="ngày mai",
        yesterday="hôm qua",
        weekdays="T2 T3 T4 T5 T6 T7 CN",
        months="1 2 3 4 5 6 7 8 9 10 11 12",
        dated="{weekday} {day}/{month}",
        year="/{year}",
    ),
    "my": Calendar(
        today="ယနေ့",
        tomorrow="မနက်ဖြန်",
        yesterday="မနေ့က",
        weekdays="တနင်္လာ အင်္ဂါ ဗုဒ္ဓဟူး ကြာသပတေး သောကြာ စနေ တနင်္ဂနွေ",
        months="ဇန်နဝါရီ ဖေဖော်ဝါရီ မတ် ဧပြီ မေ ဇွန် ဇူလိုင် ဩဂုတ် စက်တင်ဘာ အောက်တိုဘာ နိုဝင်ဘာ ဒီဇင်ဘာ",
        dated="{weekday} {month} {day}",
    ),
}

DAY = timedelta(days=1)


def told(at: datetime, *, now: datetime, zone: tzinfo, language: str, style: Style = "time") -> str:
    """An instant in that zone and language, as seen at `now`. English for a language that is not spoken."""
    calendar = CALENDAR_BY_LANGUAGE.get(language, CALENDAR_BY_LANGUAGE["en"])
    wall, today = at.astimezone(zone), now.astimezone(zone).date()
    clock = f"{wall:%H:%M}"
    if style == "clock":
        return clock
    if style == "date":
        return _date(wall.date(), today, calendar)
    near = {today - DAY: calendar.yesterday, today: calendar.today, today + DAY: calendar.tomorrow}
    return f"{near.get(wall.date()) or _date(wall.date(), today, calendar)} {clock}"


def _date(day: date, today: date, calendar: Calendar) -> str:
    """With its year where that is another one than today's."""
    dated = calendar.dated.format(
        weekday=calendar.weekdays.split()[day.weekday()], day=day.day, month=calendar.months.split()[day.month - 1]
    )
    return dated if day.year == today.year else dated + calendar.year.format(year=day.year + calendar.years_ahead)
