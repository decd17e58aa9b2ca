from __future__ import annotations

from datetime import timedelta
from zoneinfo import ZoneInfo

import pytest

from app.domain.schedules import Cron, Every
from tests.settings.conftest import Load, Problems

DAILY = '[schedules.daily]\ncron = "0 9 * * *"\njob = "daily_report"\n'


def test_a_schedule_needs_a_time_and_a_job(load_text: Load):
    settings = load_text(f'[service]\ntimezone = "Asia/Yangon"\n{DAILY}')

    daily = settings.schedules["daily"]
    assert isinstance(daily.timing, Cron)
    assert daily.timing.line == "0 9 * * *"
    assert (daily.timing.timezone, daily.timing.zone) == ("Asia/Yangon", ZoneInfo("Asia/Yangon"))
    assert (daily.name, daily.written, daily.job, daily.payload) == ("daily", "0 9 * * *", "daily_report", {})
    assert (daily.queue, daily.priority, daily.catch_up) == ("default", 0, "latest")


def test_it_may_say_more(load_text: Load):
    text = """
[schedules.often]
cron = "@every 6h"
timezone = "Europe/Berlin"
job = "clean"
payload = { days = 1, deep = { names = ["a"], token = "env:TOKEN" } }
queue = "slow"
priority = 7
catch_up = "none"
grace_minutes = 0.5
"""
    often = load_text(text, {"TOKEN": "s3cr3t"}).schedules["often"]

    assert isinstance(often.timing, Every)
    assert (often.timing.interval, often.timing.timezone) == (timedelta(hours=6), "Europe/Berlin")
    assert often.payload == {"days": 1, "deep": {"names": ["a"], "token": "s3cr3t"}}
    assert type(often.payload["deep"]["token"]) is str
    assert (often.queue, often.priority, often.catch_up) == ("slow", 7, "none")
    assert often.grace == timedelta(seconds=30)


def test_one_ring_may_be_left_out_before_a_slot_is_too_late(load_text: Load):
    settings = load_text(f'[tick]\nexpected_every_minutes = 20\n{DAILY}catch_up = "none"\n')

    assert settings.schedules["daily"].grace == timedelta(minutes=40)


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ('timezone = "Asia/Yangoon"', 'timezone: there is no time zone "Asia/Yangoon"; did you mean "Asia/Yangon"?'),
        ('catch_up = "skip"', 'catch_up: must be one of them, not "skip"; there are all, latest, none'),
        ('catch_up = "lates"', 'catch_up: must be one of them, not "lates"; did you mean "latest"?'),
        ("grace_minutes = 5", 'grace_minutes: says nothing but with catch_up = "none"; write that, or remove the line'),
        ('catch_up = "none"\ngrace_minutes = 0', "grace_minutes: must be a number of at least 0.0167"),
        ("priority = 101", "priority: must be a whole number from 0 to 100, not 101"),
        ('queue = "wakebell.send"', 'queue: names that begin with "wakebell." are the service\'s own; choose another'),
        (f'queue = "{"q" * 201}"', "queue: is longer than 200 bytes; write a shorter name"),
        ("payload = 5", "payload: must be a table, not 5; write [payload] above its keys"),
        ("payload = { since = 2026-01-01 }", "payload.since: is a date or a time, which JSON does not have; put it in"),
        ("payload = { rate = nan }", "payload.rate: is not a finite number, which JSON does not have"),
        ("payload = { a = [{ b = inf }] }", "payload.a.b: is not a finite number"),
        ('payload = { name = "a\\u0000" }', "payload.name: holds a NUL character, which PostgreSQL cannot store"),
        ('payload = { "a\\u0000" = 1 }', 'payload: has the key "a?", which holds a NUL character; rename it'),
        (f'payload = {{ name = "{"é" * 131073}" }}', "payload: must be at most 256 KiB; keep the rest elsewhere"),
        ('payload = { token = "env:NOT_SET" }', "payload.token: the environment variable NOT_SET is not set; set it"),
        ("enabled = false", "enabled: there is no such key; there are catch_up, cron, grace_minutes, job, payload, pr"),
        ("every_minutes = 5", "every_minutes: there is no such key; "),
    ],
)
def test_what_is_wrong_with_it_is_told(problems_of: Problems, line: str, told: str):
    [problem] = problems_of(f"{DAILY}{line}\n")

    assert problem.startswith(f"wakebell.toml: schedules.daily.{told}")


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('job = "a"', "cron: is missing: when the job is to be queued; write cron = "),
        ('cron = 9\njob = "a"', 'cron: must be a text in quotes, not 9; write cron = "0 9 * * *"'),
        ('cron = "0 9 * *"\njob = "a"', 'cron: "0 9 * *" must have five fields'),
        ('cron = "0 9 31 2 *"\njob = "a"', 'cron: "0 9 31 2 *" never fires: no month that it names has such a day'),
        ('cron = "@reboot"\njob = "a"', 'cron: "@reboot" has no meaning for a service that sleeps'),
        ('cron = "@daily"', "job: is missing: the type of the jobs that are queued; write job = "),
        ('cron = "@daily"\njob = ""', 'job: is empty; write job = "daily_report"'),
    ],
)
def test_what_is_missing_is_told(problems_of: Problems, text: str, told: str):
    [problem] = problems_of(f"[schedules.x]\n{text}\n")

    assert problem.startswith(f"wakebell.toml: schedules.x.{told}")


def test_names_are_like_all_names(problems_of: Problems):
    told = problems_of(DAILY.replace("daily]", '"Every Day"]') + DAILY.replace("daily]", "wakebell_x]"))

    assert [problem.partition(": ")[2].partition(": ")[0] for problem in told] == [
        'schedules."Every Day"',
        "schedules.wakebell_x",
    ]


def test_every_problem_is_told_at_once(problems_of: Problems):
    told = problems_of('[schedules.x]\ncron = "x"\ncatch_up = 1\npriority = -1\nfoo = 1\n')

    assert len(told) == 5
