from __future__ import annotations

from datetime import UTC

import pytest

from app.domain import cronwords, timings

WORDS = {
    "0 9 * * *": "every day at 09:00 Asia/Yangon",
    "@daily": "every day at 00:00 Asia/Yangon",
    "0 9,17 * * *": "every day at 09:00 and 17:00 Asia/Yangon",
    "0 */6 * * *": "every day at 00:00, 06:00, 12:00 and 18:00 Asia/Yangon",
    "0 */2 * * *": "every 2 hours from 00:00 on Asia/Yangon",
    "5 * * * *": "every hour at minute 5 Asia/Yangon",
    "15,45 * * * *": "every hour at minutes 15 and 45 Asia/Yangon",
    "* * * * *": "every minute",
    "*/15 * * * *": "every 15 minutes",
    "*/7 * * * *": 'by the cron line "*/7 * * * *" Asia/Yangon',
    "*/15 9-17 * * *": "every 15 minutes from 09:00 to 17:45 Asia/Yangon",
    "0 9-17 * * *": "every hour from 09:00 to 17:00 Asia/Yangon",
    "* 9 * * *": "every minute from 09:00 to 09:59 Asia/Yangon",
    "*/10 */2 * * *": 'by the cron line "*/10 */2 * * *" Asia/Yangon',
    "0 9 * * MON": "Mondays at 09:00 Asia/Yangon",
    "0 9 * * 7": "Sundays at 09:00 Asia/Yangon",
    "0 9 * * 1,4": "Mondays and Thursdays at 09:00 Asia/Yangon",
    "0 9 * * 4,0": "Thursdays and Sundays at 09:00 Asia/Yangon",
    "0 9 * * 1-5": "Monday to Friday at 09:00 Asia/Yangon",
    "0 9 * * SAT,SUN": "Saturdays and Sundays at 09:00 Asia/Yangon",
    "0 9 * * 0-6": "every day at 09:00 Asia/Yangon",
    "0 9 * 6 MON": "Mondays in June at 09:00 Asia/Yangon",
    "*/10 * * * 1-5": "every 10 minutes Monday to Friday Asia/Yangon",
    "0 9 * * MON#1": "on the first Monday of every month at 09:00 Asia/Yangon",
    "0 9 * 6 5L": "on the last Friday of June at 09:00 Asia/Yangon",
    "0 9 * * 1,5L": 'by the cron line "0 9 * * 1,5L" Asia/Yangon',
    "0 9 1 * *": "on the 1st of every month at 09:00 Asia/Yangon",
    "0 9 2,3,11,22 * *": "on the 2nd, 3rd, 11th and 22nd of every month at 09:00 Asia/Yangon",
    "0 9 1-20 * *": 'by the cron line "0 9 1-20 * *" Asia/Yangon',
    "0 9 L * *": "on the last day of every month at 09:00 Asia/Yangon",
    "0 9 LW * *": "on the last working day of every month at 09:00 Asia/Yangon",
    "0 9 1 6,12 *": "on the 1st of June and December at 09:00 Asia/Yangon",
    "0 9 * 6 *": "every day in June at 09:00 Asia/Yangon",
    "0 9 13 * FRI": 'by the cron line "0 9 13 * FRI" Asia/Yangon',
    "0 9 */2 * *": 'by the cron line "0 9 */2 * *" Asia/Yangon',
    "0 9 * * */2": 'by the cron line "0 9 * * */2" Asia/Yangon',
    "@every 6h": "every 6 hours",
    "@every 60m": "every hour",
    "@every 1h30m": "every 1 hour 30 minutes",
    "@every 1d": "every day",
    "@every 8d": "every 8 days",
    "@every 14d": "every 2 weeks",
    "@every 1s": "every second",
}


@pytest.mark.parametrize("written", WORDS)
def test_a_schedule_is_told_in_words_or_as_it_stands(written: str):
    assert cronwords.told(timings.parse(written, timezone="Asia/Yangon", zone=UTC)) == WORDS[written]
