"""Each way in which a configuration file can be wrong, and what is said of it."""

from __future__ import annotations

import pytest

from tests.settings.conftest import Load, Problems, options_of

FEED = '[sources.jobs]\nkind = "feed"\nurl = "https://jobs.example/feed.xml"\n'
LINE = '[channels.line]\nkind = "line"\ntoken = "literal-token"\n'

SYNTAX = [
    ("[service]\nname = gigs", "line 2, column 8: is not TOML: invalid value; mend that line (a text needs quotes)"),
    ("[service\n", "line 1, column 9: is not TOML"),
    ('[service]\nname = "gigs', "line 2, where the file ends: is not TOML: unterminated string"),
    ("[sources.a]\n[sources.a]", "line 2, column 11: [sources.a] stands there a second time; join the two"),
    ('[service]\nname = "a"\nname = "b"\n', "line 3"),
    ('name = "a"\nname = "b"\n', "a key stands there a second time; remove one of the two"),
    ("[tick]\nmax_jobs = " + "9" * 5000, "holds a number or a nesting that is too large"),
]

STRUCTURE = [
    ("[source.jobs]\n", 'source: there is no such key; did you mean "sources"?'),
    ("sevrice = 1\n", 'sevrice: there is no such key; did you mean "service"?'),
    ("service = 1\n", "service: must be a table, not 1; write [service] above its keys"),
    ("[[sources]]\n", "sources: must be a table for each name, not a list; write [sources.NAME]"),
    ("[sources]\njobs = 3\n", "sources.jobs: must be a table, not 3; write [sources.NAME] above its keys"),
    ("[tick]\nmax_job = 3\n", 'tick.max_job: there is no such key; did you mean "max_jobs"?'),
    ("[retention]\nfoo = 3\n", "retention.foo: there is no such key; there are items_days, jobs_days, messages_days"),
]

VALUES = [
    (
        '[service]\ndeny_private = "yes"\n',
        'service.deny_private: must be true or false, not "yes"; write deny_private = true',
    ),
    ("[service]\nhost_gap_seconds = 61\n", "service.host_gap_seconds: must be a number from 0 to 60, not 61"),
    ("[service]\nname = 5\n", 'service.name: must be a text in quotes, not 5; write name = "gigs"'),
    ('[service]\nname = " "\n', "service.name: is empty"),
    ('[service]\nname = "a\\u0000b"\n', "service.name: holds a control character"),
    (f'[service]\nname = "{"n" * 101}"\n', "service.name: is longer than 100 characters"),
    ("[service]\nname = 2026-01-01\n", "service.name: must be a text in quotes, not a date or a time"),
    ('[service]\nlanguage = "de"\n', 'service.language: must be one of en, th, vi, my, not "de"'),
    ('[service]\ntimezone = "asia/bangkok"\n', 'there is no time zone "asia/bangkok"; did you mean "Asia/Bangkok"?'),
    ('[service]\ntimezone = "+07:00"\n', 'there is no time zone "+07:00"; write it as in "Asia/Bangkok"'),
    ('[service]\ntimezone = "../etc/passwd"\n', "there is no time zone"),
    ('[service]\ntimezone = "Asia"\n', "there is no time zone"),
    ('[service]\nhandlers = "jobs"\n', 'service.handlers: there is no folder "jobs" beside the file; make it'),
    ("[tick]\nmax_jobs = true\n", "tick.max_jobs: must be a whole number from 1 to 1000, not true"),
    ("[tick]\nmax_jobs = 10.5\n", "tick.max_jobs: must be a whole number from 1 to 1000, not 10.5"),
    ("[tick]\nmax_jobs = 0\n", "tick.max_jobs: must be a whole number from 1 to 1000, not 0"),
    ("[tick]\nmax_jobs = 1001\n", "tick.max_jobs: must be a whole number from 1 to 1000, not 1001"),
    (f"[tick]\nmax_jobs = {'9' * 400}\n", "not so large a number"),
    ("[tick]\nbudget_seconds = 301\n", "tick.budget_seconds: must be a number from 1 to 300, not 301"),
    ('[tick]\nbudget_seconds = "25"\n', "write it without quotes: budget_seconds = 25"),
    ("[tick]\nbudget_seconds = nan\n", "tick.budget_seconds: must be a number from 1 to 300, not nan"),
    ("[tick]\nfan_out = 11\n", "tick.fan_out: must be a whole number from 0 to 10, not 11; write fan_out = 0"),
    ("[tick]\nfan_out = 1\n", "tick.fan_out: needs PUBLIC_URL, the address that it rings; set it, or remove the line"),
    ("[tick]\nexpected_every_minutes = 0\n", "tick.expected_every_minutes: must be a number of at least 0.0167"),
    ("[retention]\nitems_days = 0\n", "retention.items_days: must be a number of days, more than 0"),
    ("[retention]\njobs_days = inf\n", "not inf; write jobs_days = 14"),
    ("[retention]\nmessages_days = false\n", "not false; write messages_days = 90"),
    (f"{FEED}every_minutes = 0.016\n", "sources.jobs.every_minutes: must be a number of at least 0.0167 (one second)"),
    (f"{FEED}every_minutes = true\n", "not true; write every_minutes = 30"),
    (f"{FEED}every_minutes = -5\n", "not -5"),
    (f"{FEED}every_minutes = 1e300\n", "sources.jobs.every_minutes: must be"),
    (f"{FEED}every_minutes = {'9' * 400}\n", "sources.jobs.every_minutes: must be"),
    (f'{FEED}every_minutes = "30"\n', "write it without quotes: every_minutes = 30"),
]

NAMES = [
    ('[sources.Board]\nkind = "feed"\nurl = "https://a.example"\n', "rename it, for example board"),
    ('[sources.""]\nkind = "feed"\nurl = "https://a.example"\n', 'sources."": a name holds 1 to 64'),
    (f'[channels.{"a" * 65}]\nkind = "slack"\n', "a name holds 1 to 64"),
    ('[recipients."งาน"]\nchannel = "inbox"\n', 'recipients."งาน": a name holds'),
    ('[recipients."a\\nb"]\nchannel = "inbox"\n', 'recipients."a?b": a name holds'),
    ("[subscriptions.wakebell_x]\n", "subscriptions.wakebell_x: names that begin with wakebell are the service's own"),
    ('[recipients.inbox]\nchannel = "inbox"\n', "recipients.inbox: the recipient inbox is built in; remove it"),
    ('[channels.inbox]\nkind = "slack"\n', "channels.inbox: the channel inbox is built in; give this one another"),
]

KINDS = [
    ("[sources.a]\n", "sources.a.kind: is missing; write one of the kinds there are: feed"),
    ("[sources.a]\nkind = 3\n", "sources.a.kind: must be a text in quotes, not 3"),
    ('[sources.a]\nkind = "json"\n', 'sources.a.kind: there is no kind "json"; there is only feed'),
    ('[sources.a]\nkind = "__init__"\n', 'sources.a.kind: there is no kind "__init__"'),
    ('[channels.a]\nkind = "slak"\n', 'there is no kind "slak"; did you mean "slack"? (there are inbox, line, slack)'),
    ('[sources.a]\nkind = "feed"\n', "sources.a.url: is missing; write it"),
    ('[sources.a]\nkind = "feed"\nurl = "no address"\n', "sources.a.url: must be an address; write it like https"),
    ('[sources.a]\nkind = "feed"\nurl = "ftp://a.example"\n', "sources.a.url: must be an http or https address"),
    (f"{FEED}ulr = 1\n", 'sources.jobs.ulr: there is no such key; did you mean "url"?'),
    (f"{FEED}every_minute = 1\n", 'sources.jobs.every_minute: there is no such key; did you mean "every_minutes"?'),
    (f"{FEED}headers = 1\n", "sources.jobs.headers: must be a table"),
    (f"{FEED}headers = {{ A = 1 }}\n", "sources.jobs.headers.A: must be a text; put it in quotes"),
    (f'{FEED}limit = "3"\n', "sources.jobs.limit: must be a whole number; write it without quotes"),
    (f"{FEED}limit = true\n", "sources.jobs.limit: must be a whole number; write it without quotes"),
    (
        f"{FEED}limit = 2.5\n",
        "sources.jobs.limit: must be a whole number; write it without quotes and without a fraction",
    ),
    (f"{FEED}limit = 0\n", "sources.jobs.limit: must be greater than or equal to 1; change it"),
    (f"{FEED}strict = 1\n", "sources.jobs.strict: must be true or false; write it without quotes"),
    (
        f'{LINE}on_uncertain = "again"\n',
        'line.on_uncertain: must be resend or drop, not "again"; there are drop, resend',
    ),
    ('[channels.a]\nkind = "line"\ntoken = "two words"\n', "channels.a.token: holds a space: …"),
    ('[channels.a]\nkind = "line_notify"\ntoken = "x"\n', "channels.a: LINE Notify ended on 31 March 2025"),
    (f'{LINE}base_url = "https://notify-api.line.me"\n', 'use kind = "line"'),
    ('[sources.a]\nkind = "feed"\nurl = "https://NOTIFY-API.line.me/api/notify"\n', "sources.a: LINE Notify ended"),
]

AUDIENCE = [
    ("[recipients.me]\n", "recipients.me.channel: is missing; write the name of a channel (there is only inbox)"),
    (f'{LINE}[recipients.me]\nchannel = "line"\n', "recipients.me.to: is missing: whom to reach on the channel"),
    (f'{LINE}[recipients.me]\nchannel = "line"\nto = ""\n', "recipients.me.to: is empty"),
    (f'{LINE}[recipients.me]\nchannel = "line"\nto = "@me"\n', 'recipients.me.to: "@me" is no id; write another'),
    (f'{LINE}[recipients.me]\nchannel = "line"\nto = 12345\n', "recipients.me.to: must be a text in quotes, not 12345"),
    ('[recipients.me]\nchannel = "line"\n', 'recipients.me.channel: there is no channel "line"; there is only inbox'),
    (
        '[recipients.me]\nchannel = "inbox"\nfallback = "you"\n',
        'me.fallback: there is no recipient "you"; there are inbox',
    ),
    ('[recipients.me]\nchannel = "inbox"\nfallback = "me"\n', "recipients.me.fallback: is the recipient itself; name"),
    (
        "".join(f'[recipients.{a}]\nchannel = "inbox"\nfallback = "{b}"\n' for a, b in ("ab", "bc", "cb")),
        'recipients.b.fallback: leads in a circle by way of "c"; take one of its lines away',
    ),
    ('[recipients.me]\nchannel = "inbox"\ntimezone = "Mars"\n', 'recipients.me.timezone: there is no time zone "Mars"'),
    ('[recipients.me]\nchannel = "inbox"\nlanguage = "xx"\n', "recipients.me.language: must be one of"),
    ('[subscriptions.x]\nsources = ["jobs"]\n', 'x.sources: there is no source "jobs"; remove the name'),
    ("[subscriptions.x]\nsources = []\n", "x.sources: is empty, so that nothing would ever be told; remove the line"),
    (f'{FEED}[subscriptions.x]\nsources = ["jobs", "jobs"]\n', 'x.sources: names "jobs" twice; remove one of them'),
    ('[subscriptions.x]\nto = ["me"]\n', 'subscriptions.x.to: there is no recipient "me"; there is only inbox'),
    ("[subscriptions.x]\nto = []\n", "subscriptions.x.to: is empty"),
    ('[subscriptions.x]\nto = "inbox"\n', 'x.to: must be a list of texts, not "inbox"; write to = ["inbox"]'),
    ('[subscriptions.x]\nto = ["inbox", "inbox"]\n', 'x.to: names "inbox" twice'),
    ('[subscriptions.x]\nany = "python"\n', 'x.any: must be a list of texts, not "python"; write any = ["python"]'),
    ("[subscriptions.x]\nall = [1]\n", "x.all: must hold only texts, not 1; put each in quotes"),
    ('[subscriptions.x]\nnone = ["a", " "]\n', "x.none: holds an empty text; remove it"),
    ('[subscriptions.x]\nany = ["a\\u0000"]\n', "x.any: holds a control character; remove it"),
    ("[subscriptions.x]\nmin = 500\n", "x.min: must be a table, not 500; write min = { budget = 500 }"),
    ('[subscriptions.x]\nmin = { pay = "500" }\n', 'x.min.pay: must be a number, not "500"; write it without quotes'),
    ("[subscriptions.x]\nmin = { pay = true }\n", "x.min.pay: must be a number, not true"),
    ("[subscriptions.x]\nmin = { pay = inf }\n", "x.min.pay: must be a number, not inf"),
    (f"[subscriptions.x]\nmin = {{ pay = {'9' * 400} }}\n", "x.min.pay: must be a number, not so large a number"),
    ('[subscriptions.x]\nmax = { pay = "5" }\n', 'x.max.pay: must be a number, not "5"; write it without quotes'),
    ("[subscriptions.x]\nmaximum = { pay = 5 }\n", "x.maximum: there is no such key; did you mean"),
    ("[subscriptions.x]\nmax_age_days = 0\n", "x.max_age_days: must be a number of days, more than 0 and at most a"),
    ('[subscriptions.x]\nmax_age_days = "7"\n', 'not "7"; write it without quotes: max_age_days = 7'),
    ('[subscriptions.x]\nregex = "a"\n', 'x.regex: must be a list of texts, not "a"; write regex = ["python[0-9]*"]'),
    (
        '[subscriptions.x]\nregex = ["a", "["]\n',
        'x.regex: "[" is no regular expression (unterminated character set at position 1); mend it',
    ),
    (f'[subscriptions.x]\nregex = ["a", "({"b" * 40}"]\n', "x.regex: pattern 2 of the list is no regular expression"),
    ('[subscriptions.x]\nregex = ["(a{1000}){1000}"]\n', 'x.regex: "(a{1000}){1000}" is longer than 10,000 signs'),
    (
        '[subscriptions.x]\nfields = ["a"]\n',
        'fields: must be a table, not a list; write fields = { company = ["Acme"] }',
    ),
    (
        '[subscriptions.x]\nfields = { of = "Acme" }\n',
        'x.fields.of: must be a list of texts, not "Acme"; write of = ["',
    ),
    ("[subscriptions.x]\nfields = { of = [5] }\n", "x.fields.of: must hold only texts, not 5; put each in quotes"),
]

REFERENCES = [
    ('[sources.a]\nkind = "feed"\nurl = "env:URL"\n', "sources.a.url: the environment variable URL is not set; set it"),
    ('[sources.a]\nkind = "feed"\nurl = "env:EMPTY"\n', "sources.a.url: the environment variable EMPTY is empty"),
    ('[sources.a]\nkind = "feed"\nurl = "env:"\n', 'must be followed by the name of a variable; write "env:NAME"'),
    ('[sources.a]\nkind = "feed"\nurl = "env:A B"\n', "must be followed by the name of a variable"),
    (f'{FEED}headers = {{ A = "env:GIG" }}\n', "sources.jobs.headers.A: the environment variable GIG is not set"),
    (f'{FEED}headers = {{ A = "Bearer env:GIG" }}\n', '"env:GIG" must be the whole text; put the words before it into'),
    ('[recipients.me]\nchannel = "inbox"\nto = "env:ID"\n', "recipients.me.to: the environment variable ID is not set"),
    ('[subscriptions.x]\nto = ["env:WHO"]\n', "subscriptions.x.to: the environment variable WHO is not set"),
    ('[service]\nname = "env:LATIN"\n', "service.name: the environment variable LATIN is not UTF-8"),
]

ENVIRON = {"EMPTY": "  ", "LATIN": "caf\udce9"}


ALERTS = [
    ('[alerts]\nto = "inbox"', "alerts.to: "),
    ("[alerts]\nto = []", "alerts.to: is empty, so that nothing would ever be told; remove the line to tell the inbox"),
    ('[alerts]\nto = ["me"]', 'alerts.to: there is no recipient "me"'),
    ('[alerts]\nto = ["inbox", "inbox"]', 'alerts.to: names "inbox" twice; remove one of them'),
    ("[alerts]\nrepeat = 24", "repeat"),
]


@pytest.mark.parametrize(
    ("text", "sentence"), [*SYNTAX, *STRUCTURE, *VALUES, *NAMES, *KINDS, *AUDIENCE, *ALERTS, *REFERENCES]
)
def test_one_mistake_is_one_problem_that_names_it(text: str, sentence: str, problems_of: Problems):
    told = problems_of(text, ENVIRON)

    assert len(told) == 1, told
    assert told[0].startswith("wakebell.toml: ")
    assert sentence in told[0]


def test_a_reference_is_read_without_the_line_end_it_came_with(load_text: Load):
    settings = load_text(f'{FEED}headers = {{ A = "env:GIG" }}', {"GIG": "a token\n"})

    assert options_of(settings.sources["jobs"])["headers"] == {"A": "a token"}


def test_a_name_that_refers_to_a_broken_thing_is_no_further_problem(problems_of: Problems):
    told = problems_of(
        '[sources.a]\nkind = "x"\n[channels.c]\nkind = "x"\n'
        '[recipients.me]\nchannel = "c"\n[subscriptions.s]\nsources = ["a"]\nto = ["me"]\n'
    )

    assert [problem.split(": ")[1] for problem in told] == ["sources.a.kind", "channels.c.kind"]


def test_a_system_without_time_zones_is_told_from_a_wrong_name(problems_of: Problems, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("zoneinfo.available_timezones", set)

    assert problems_of('[service]\ntimezone = "Mars"\n') == [
        (
            "wakebell.toml: service.timezone: this system has no time zones at all; "
            "install the package tzdata, or write UTC"
        )
    ]
