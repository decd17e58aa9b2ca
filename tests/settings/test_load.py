"""The whole: a good file, the built-in things, and every problem at once."""

from __future__ import annotations

import dataclasses
from datetime import timedelta
from pathlib import Path

import pytest

from app.domain.errors import ConfigError
from app.domain.subscriptions import Subscription
from app.settings import Recipient, Retention, TickSettings, fingerprint_of, load
from tests.settings.conftest import CRON_SECRET, Load, Problems, options_of

GOOD = """
[service]
name = "gigs"
timezone = "Asia/Bangkok"
language = "en"
handlers = "handlers"

[tick]
max_jobs = 50
budget_seconds = 12.5
expected_every_minutes = 5

[sources.remote_jobs]
kind = "feed"
url = "https://jobs.example/feed.xml"
every_minutes = 0.5

[sources.gig_api]
kind = "feed"
url = "https://gigs.example/api/jobs"
headers = { Authorization = "env:GIG_TOKEN" }

[channels.line]
kind = "line"
token = "env:LINE_CHANNEL_ACCESS_TOKEN"

[recipients.me]
channel = "line"
to = "env:LINE_USER_ID"
timezone = "Asia/Yangon"
language = "th"

[subscriptions.python_gigs]
sources = ["remote_jobs", "gig_api"]
any = ["python", "fastapi", "บอท", "python"]
all = []
none = ["senior"]
min = { budget = 500 }
to = ["me"]

[retention]
items_days = 45
jobs_days = 0.5
messages_days = 90
"""

SECRETS = {
    "GIG_TOKEN": "Bearer gig-secret-value",
    "LINE_CHANNEL_ACCESS_TOKEN": "line-secret-value",
    "LINE_USER_ID": "U-user-id-value",
    "CRON_SECRET": CRON_SECRET,
    "CRON_SECRET_PREVIOUS": "the-previous-cron-secret",
    "API_TOKEN": "an-api-token-of-some-length",
    "DATABASE_URL": "postgres://bell:database-password@db.example/app",
    "HEARTBEAT_URL": "https://hc.example/heartbeat-key",
}


def test_a_good_file_is_read_whole(load_text: Load, folder: Path):
    (folder / "handlers").mkdir()

    settings = load_text(GOOD, SECRETS, need={"CRON_SECRET"})

    assert (settings.service.name, settings.service.timezone) == ("gigs", "Asia/Bangkok")
    assert settings.service.handlers == folder / "handlers"
    assert settings.tick == TickSettings(
        max_jobs=50, budget=timedelta(seconds=12.5), expected_every=timedelta(minutes=5)
    )
    assert list(settings.sources) == ["remote_jobs", "gig_api"]
    assert settings.sources["remote_jobs"].every == timedelta(seconds=30)
    assert settings.sources["gig_api"].every == timedelta(minutes=30)
    assert options_of(settings.sources["gig_api"])["headers"] == {"Authorization": "Bearer gig-secret-value"}
    assert options_of(settings.channels["line"])["token"].get_secret_value() == "line-secret-value"
    assert settings.recipients["me"] == Recipient(
        name="me", channel="line", to="U-user-id-value", timezone="Asia/Yangon", language="th"
    )
    assert settings.subscriptions == (
        Subscription(
            name="python_gigs",
            sources=frozenset({"remote_jobs", "gig_api"}),
            any=("python", "fastapi", "บอท"),
            none=("senior",),
            min={"budget": 500.0},
            to=("me",),
        ),
    )
    assert settings.retention == Retention(jobs=timedelta(hours=12))
    assert settings.environment.cron_secrets == (CRON_SECRET.encode(), b"the-previous-cron-secret")


@pytest.mark.parametrize(
    "url",
    [
        "https://wakebell.example",
        *("http://127.0.0.1:8080", "http://[::1]:8080", "http://10.1.2.3", "http://localhost"),
        *("http://wakebell:8080", "http://gigs.internal:8080", "http://nas.local."),
    ],
)
def test_a_tick_may_ring_at_an_address_that_nobody_can_listen_to(load_text: Load, url: str):
    assert load_text("[tick]\nfan_out = 10", {"PUBLIC_URL": url}).tick.fan_out == 10


@pytest.mark.parametrize(
    "url", ["http://wakebell.example", "HTTP://8.8.8.8", "http://[2606:4700::1]", "http://a.local.b"]
)
def test_the_cron_secret_is_not_sent_unencrypted(load_text: Load, problems_of: Problems, url: str):
    assert load_text("[tick]\nfan_out = 0", {"PUBLIC_URL": url}).tick.fan_out == 0
    [problem] = problems_of("[tick]\nfan_out = 1", {"PUBLIC_URL": url})
    assert problem.startswith("wakebell.toml: tick.fan_out: would send CRON_SECRET unencrypted; write https:// in")


def test_an_empty_file_gives_the_defaults_and_the_inbox(load_text: Load, folder: Path):
    settings = load_text("")

    assert settings.tick == TickSettings()
    assert settings.retention == Retention()
    assert settings.service.handlers == folder / "handlers"
    assert list(settings.channels) == ["inbox"]
    assert settings.recipients["inbox"].channel == "inbox"
    assert settings.subscriptions == ()


def test_sources_without_a_subscription_go_to_the_inbox(load_text: Load):
    settings = load_text('[sources.jobs]\nkind = "feed"\nurl = "https://jobs.example/feed.xml"')

    assert settings.subscriptions == (Subscription(name="everything", to=("inbox",)),)


def test_a_subscription_without_to_goes_to_the_inbox(load_text: Load):
    settings = load_text('[subscriptions.all]\nany = ["python"]')

    assert settings.subscriptions[0].to == ("inbox",)
    assert settings.subscriptions[0].sources is None


def test_recipients_speak_as_the_service_does_unless_they_say_otherwise(load_text: Load):
    settings = load_text('[service]\ntimezone = "Asia/Bangkok"\nlanguage = "vi"\n[recipients.me]\nchannel = "inbox"')

    me = settings.recipients["me"]
    assert (me.timezone, me.language) == ("Asia/Bangkok", "vi")


def test_the_inbox_may_be_written_out(load_text: Load):
    settings = load_text('[channels.inbox]\nkind = "inbox"')

    assert settings.channels["inbox"].kind == "inbox"


def test_a_channel_that_says_itself_where_messages_go_needs_no_address(load_text: Load):
    settings = load_text('[channels.team]\nkind = "slack"\n[recipients.team]\nchannel = "team"')

    assert settings.recipients["team"].to == ""


def test_a_mark_of_windows_editors_at_the_beginning_is_no_mistake(load_text: Load):
    assert load_text('\ufeff[service]\r\nname = "gigs"\r\n').service.name == "gigs"


def test_a_file_elsewhere_brings_its_own_handlers_folder(folder: Path):
    (folder / "config" / "jobs").mkdir(parents=True)
    (folder / "config" / "my.toml").write_text('[service]\nhandlers = "jobs"')

    settings = load({"WAKEBELL_CONFIG": "config/my.toml"})

    assert settings.service.handlers == folder / "config" / "jobs"
    assert settings.environment.config_path == Path("config/my.toml")


def test_kind_and_url_alone_make_the_fingerprint(load_text: Load):
    source = '[sources.jobs]\nkind = "feed"\nurl = "{url}"\nlimit = {limit}'
    first = load_text(source.format(url="https://a.example/feed", limit=1)).sources["jobs"].fingerprint
    same = load_text(source.format(url="https://a.example/feed", limit=2)).sources["jobs"].fingerprint
    other = load_text(source.format(url="https://b.example/feed", limit=1)).sources["jobs"].fingerprint

    assert first == same == fingerprint_of("feed", "https://a.example/feed")
    assert other != first
    assert len(first) == 64


def test_what_a_subscription_asks_for(load_text: Load):
    settings = load_text(
        "[subscriptions.paid]\n"
        "regex = ['\\bpy', 'rust', 'rust']\nmax = { pay = 900 }\nmax_age_days = 1.5\n"
        'fields = { company = ["Acme", "Bolt", "Acme"], city = [] }\n'
    )

    [asked] = settings.subscriptions
    assert asked.regex == (r"\bpy", "rust")
    assert asked.max == {"pay": 900.0}
    assert asked.max_age == timedelta(days=1.5)
    assert asked.fields == {"company": ("Acme", "Bolt")}


def test_a_source_says_itself_whether_it_may_lead_inside(load_text: Load):
    settings = load_text(
        "[service]\ndeny_private = true\nhost_gap_seconds = 0.5\n"
        '[sources.a]\nkind = "feed"\nurl = "https://a.example"\n'
        '[sources.b]\nkind = "feed"\nurl = "https://b.example"\ndeny_private = false\n'
    )

    assert settings.service.host_gap == timedelta(seconds=0.5)
    assert [source.deny_private for source in settings.sources.values()] == [True, False]


def test_more_than_ten_mistakes_are_told_at_once(problems_of: Problems):
    told = problems_of(
        """
[service]
nmae = "gigs"
timezone = "Asia/Bangkock"

[tick]
max_jobs = "100"

[sources.board]
kind = "feeed"
every_minutes = "often"

[sources."My Board"]
kind = "feed"
url = "https://board.example"

[channels.line]
kind = "line"
token = "env:LINE_TOKEN"

[recipients.me]
channel = "lime"

[subscriptions.gigs]
sources = ["bord"]
min = { budget = true }
to = ["you"]

[schedule.daily]
cron = "0 9 * * *"
""",
        {"PORT": "http"},
        need={"CRON_SECRET"},
    )

    assert told == [
        "CRON_SECRET: is not set; make one with: openssl rand -hex 32",
        'PORT: must be a whole number from 1 to 65535, not "http"; set PORT=8080 or remove it',
        (
            'wakebell.toml: schedule: there is no such key; did you mean "schedules"? (there are alerts, call_url, '
            "channels, chats, hooks, memory, recipients, reminders, retention, schedules, service, sources, "
            "subscriptions, tick)"
        ),
        "wakebell.toml: channels.line.token: the environment variable LINE_TOKEN is not set; set it",
        'wakebell.toml: service.timezone: there is no time zone "Asia/Bangkock"; did you mean "Asia/Bangkok"?',
        (
            'wakebell.toml: service.nmae: there is no such key; did you mean "name"? '
            "(there are deny_private, handlers, host_gap_seconds, language, name, timezone)"
        ),
        (
            "wakebell.toml: sources.board.every_minutes: must be a number of at least 0.0167 (one second) and at most "
            'a year, not "often"; write every_minutes = 30'
        ),
        'wakebell.toml: sources.board.kind: there is no kind "feeed"; did you mean "feed"? (there is only feed)',
        (
            'wakebell.toml: sources."My Board": a name holds 1 to 64 of a-z, 0-9, "_" and "-", and nothing else; '
            "rename it, for example my-board"
        ),
        (
            'wakebell.toml: recipients.me.channel: there is no channel "lime"; did you mean "line"? '
            "(there are inbox, line)"
        ),
        (
            'wakebell.toml: tick.max_jobs: must be a whole number from 1 to 1000, not "100"; '
            "write it without quotes: max_jobs = 100"
        ),
        (
            'wakebell.toml: subscriptions.gigs.sources: there is no source "bord"; did you mean "board"? '
            "(there are My Board, board)"
        ),
        'wakebell.toml: subscriptions.gigs.to: there is no recipient "you"; there are inbox, me',
        "wakebell.toml: subscriptions.gigs.min.budget: must be a number, not true; write budget = 500",
    ]


def test_kinds_that_do_not_exist_say_so_and_list_those_that_do(problems_of: Problems):
    told = problems_of(
        """
[sources.gig_api]
kind = "json"
url = "https://gigs.example/api/jobs"
items = "data.jobs[?open]"
fields = { budget = "price.max", company = "client.name" }

[sources.board]
kind = "html"
url = "https://board.example/latest"
items = "li.job"

[subscriptions.python_gigs]
sources = ["gig_api", "board"]
"""
    )

    assert told == [
        'wakebell.toml: sources.gig_api.kind: there is no kind "json"; there is only feed',
        'wakebell.toml: sources.board.kind: there is no kind "html"; there is only feed',
    ]


def test_a_missing_file_is_named_with_what_to_write_and_hides_no_other_problem(folder: Path):
    with pytest.raises(ConfigError) as caught:
        load({"LOG_LEVEL": "loud"})

    environment, file = caught.value.problems
    assert environment.startswith("LOG_LEVEL: must be one of DEBUG")
    assert file.startswith(f"wakebell.toml: there is no such file (in {folder}); write one that begins with [sources.")
    assert "WAKEBELL_CONFIG" in file


def test_a_folder_in_the_file_s_place_is_told(folder: Path):
    (folder / "wakebell.toml").mkdir()

    with pytest.raises(ConfigError, match=r"wakebell\.toml: cannot be read"):
        load({})


def test_a_file_that_is_not_utf8_is_told_with_its_line(folder: Path):
    (folder / "wakebell.toml").write_bytes('[service]\nname = "caf\xe9"'.encode("latin-1"))

    with pytest.raises(ConfigError, match=r"wakebell\.toml: line 2: is not UTF-8"):
        load({})


def test_no_repr_shows_a_secret(load_text: Load, folder: Path):
    (folder / "handlers").mkdir()

    settings = load_text(GOOD, SECRETS)

    shown = repr(settings) + "".join(repr(getattr(settings, f.name)) for f in dataclasses.fields(settings))
    for secret in (*SECRETS.values(), "database-password", "heartbeat-key", "gig-secret-value"):
        assert secret not in shown


def test_no_problem_shows_a_secret(problems_of: Problems):
    secrets = {name: f"{value} with spaces\u00a0" for name, value in SECRETS.items()}
    told = problems_of(
        """
[service]
timezone = "env:LINE_USER_ID"
language = "env:API_TOKEN"
handlers = "env:GIG_TOKEN"
[sources.a]
kind = "env:CRON_SECRET"
every_minutes = "env:GIG_TOKEN"
[sources.b]
kind = "feed"
url = "env:GIG_TOKEN"
strict = "env:LINE_USER_ID"
limit = "a literal that is long"
[channels.line]
kind = "line"
token = "env:LINE_CHANNEL_ACCESS_TOKEN"
base_url = ["env:API_TOKEN"]
[channels.other]
kind = "line"
token = "literal token"
[recipients.me]
channel = "env:LINE_USER_ID"
to = "https://hooks.example/literal-hook"
[subscriptions.x]
to = ["env:LINE_USER_ID", "https://hooks.example/literal-hook"]
sources = ["env:GIG_TOKEN"]
min = { a = "env:API_TOKEN" }
""",
        {**secrets, "CRON_SECRET": "short-cron", "API_TOKEN": "short-api", "HEARTBEAT_URL": "heartbeat-key"},
    )

    text = "\n".join(told)
    assert len(told) >= 15
    for value in (*SECRETS.values(), "short-cron", "short-api", "heartbeat-key", "literal token", "literal-hook"):
        assert value not in text
    assert "the variable LINE_USER_ID" in text


LINE = """
[channels.line]
kind = "line"
token = "x"
{more}
[recipients.me]
channel = "line"
to = "env:LINE_USER_ID"
"""


def test_an_address_that_cannot_be_right_is_told_but_not_repeated(problems_of: Problems):
    told = problems_of(LINE.format(more=""), {"LINE_USER_ID": "@somebody"})

    assert told == ["wakebell.toml: recipients.me.to: what the variable LINE_USER_ID holds is no id; write another"]


def test_addresses_of_a_stand_in_may_look_otherwise(load_text: Load):
    settings = load_text(LINE.format(more='base_url = "http://127.0.0.1:1"'), {"LINE_USER_ID": "somebody"})

    assert settings.recipients["me"].to == "somebody"


@pytest.mark.parametrize("value", ["...", "U...", "…", "U…"])
def test_a_placeholder_is_told(problems_of: Problems, value: str):
    told = problems_of(LINE.format(more=""), {"LINE_USER_ID": value})

    fault = "the environment variable LINE_USER_ID holds a placeholder; put the real value there"
    assert told == [f"wakebell.toml: recipients.me.to: {fault}"]


@pytest.mark.parametrize("written", ["handlers", "handlers/"])
def test_the_usual_folder_of_handlers_need_not_be_there(load_text: Load, folder: Path, written: str):
    assert load_text(f'[service]\nhandlers = "{written}"\n').service.handlers == folder / "handlers"
