from __future__ import annotations

import dataclasses
from datetime import UTC, datetime
from typing import get_args

import pytest

from app.domain import words
from app.domain.alerts import (
    MOST_KEPT,
    MOST_LINES,
    REASON_LENGTH,
    Incident,
    Kind,
    News,
    Undelivered,
    told,
    told_instead,
)

LANGUAGES = list(words.WORDS_BY_LANGUAGE)
OF_TICKS = {"tick_overdue", "tick_failed"}
COUNTED = {"job_failed", "source_failing", "message_failed", "source_blind", "source_silent", "reminder_failing"}
ENDING_ONE_WAY = {"tick_overdue", "tick_failed", "job_unknown", "config_broken"}


def incident(
    kind: Kind = "job_failed",
    subject: str = "mail",
    reason: str | None = None,
    *,
    failures: int = 1,
    kept: int = 0,
    healed: bool = True,
) -> Incident:
    return Incident(
        kind=kind,
        subject=subject,
        reason=reason,
        failures=failures,
        opened_at=datetime(2026, 11, 30, tzinfo=UTC),
        last_job=77 if kind in {"job_failed", "jobs_overdue"} else None,
        kept=kept,
        healed=healed,
    )


def test_what_broke_is_told_with_its_reason_before_what_is_over():
    opened = [
        incident(reason="no such  table\nDETAIL: none"),
        incident("source_failing", "board", "the answer holds no feed", failures=3),
        incident("message_failed", "me", None),
    ]
    resolved = [incident(subject="report"), incident("message_failed", "boss", healed=False)]

    lines = told(News(opened=opened, resolved=resolved), service="gigs", language="en").splitlines()

    assert lines == [
        "gigs: something needs a look",
        "Job mail failed (job 77): no such table DETAIL: none",
        "Source board failed 3 times in a row: the answer holds no feed",
        "A message to me could not be delivered",
        "Jobs of report go well again",
        "Recipient boss is configured no more",
    ]


def test_what_is_only_over_does_not_ask_for_a_look():
    assert (
        told(News(opened=[], resolved=[incident()]), service="gigs", language="en").splitlines()[0]
        == "gigs: alert closed"
    )


def test_a_source_that_answers_and_is_blind_all_the_same_is_told_with_what_to_do():
    opened = [
        incident("source_blind", "board", failures=3),
        incident("source_silent", "gigs", failures=14),
        incident("source_unstable", "jobs", "ignore_params"),
    ]

    assert told(News(opened=opened, resolved=[]), service="gigs", language="en").splitlines()[1:] == [
        "Source board lists nothing any more (rounds: 3), see whether its list has moved",
        "Source gigs has had nothing new (days: 14), see whether it still goes on",
        "Source jobs gives what is known new keys and is not told, say what tells items apart: ignore_params",
    ]


def test_more_than_one_failure_is_a_number():
    opened = [incident(failures=40, reason="full"), incident("message_failed", "me", failures=2)]

    assert told(News(opened=opened, resolved=[]), service="gigs", language="en").splitlines()[1:] == [
        "40 jobs of mail failed, the last is 77: full",
        "2 messages to me could not be delivered",
    ]


def test_what_is_over_says_what_goes_well_or_that_nothing_is_left():
    kinds: list[Kind] = ["job_failed", "source_failing", "message_failed"]
    over = [incident(kind, "board", healed=healed) for healed in (True, False) for kind in kinds]

    assert told(News(opened=[], resolved=over), service="gigs", language="en").splitlines()[1:] == [
        "Jobs of board go well again",
        "Source board answers again",
        "Messages to board arrive again",
        "No failed jobs of board are left",
        "Source board is configured no more",
        "Recipient board is configured no more",
    ]


@pytest.mark.parametrize(
    ("subject", "kept", "ending"),
    [
        ("mail", 1, "; 1 failed one is kept: GET /api/jobs?type=mail&status=failed"),
        ("mail", 4, "; 4 failed ones are kept: GET /api/jobs?type=mail&status=failed"),
        ("mail", MOST_KEPT, "; 1000 failed ones are kept: GET /api/jobs?type=mail&status=failed"),
        ("mail", MOST_KEPT + 1, "; 1000+ failed ones are kept: GET /api/jobs?type=mail&status=failed"),
        ("a b&c", 2, "; 2 failed ones are kept: GET /api/jobs?type=a%20b%26c&status=failed"),
    ],
)
def test_jobs_that_stay_failed_are_told_with_the_recovery_and_where_they_are(subject: str, kept: int, ending: str):
    [_, line] = told(
        News(opened=[], resolved=[incident(subject=subject, kept=kept)]), service="gigs", language="en"
    ).splitlines()

    assert line == f"Jobs of {subject} go well again{ending}"


def test_a_reason_is_cut_where_it_gets_long():
    [_, line] = told(
        News(opened=[incident(reason="x" * 5000)], resolved=[]), service="gigs", language="en"
    ).splitlines()

    assert line == f"Job mail failed (job 77): {'x' * (REASON_LENGTH - 1)}…"


@pytest.mark.parametrize("count", [MOST_LINES, MOST_LINES + 1, 500])
def test_many_are_ten_lines_that_tell_how_many_more(count: int):
    many = [incident(subject=f"type{number}") for number in range(count)]

    lines = told(News(opened=many, resolved=many), service="gigs", language="en").splitlines()

    assert len(lines) == 1 + 2 * MOST_LINES
    if count > MOST_LINES:
        assert lines[MOST_LINES] == lines[-1] == f"and {count - MOST_LINES + 1} more"


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("kind", get_args(Kind))
def test_every_language_names_what_it_is_about(language: str, kind: Kind):
    opened = told(
        News(opened=[incident(kind, "{odd} name", "because")], resolved=[]), service="gigs", language=language
    )
    over = [
        told(News(opened=[], resolved=[incident(kind, "board", healed=healed)]), service="gigs", language=language)
        for healed in (False, True)
    ]

    many = told(News(opened=[incident(kind, "board", failures=40)], resolved=[]), service="gigs", language=language)
    left = told(News(opened=[], resolved=[incident(kind, "board", kept=40)]), service="gigs", language=language)

    assert ("{odd} name" in opened) == (kind not in OF_TICKS)
    assert "because" in opened
    assert ("77" in opened) == ("77" in many) == (kind in {"job_failed", "jobs_overdue"})
    assert ("40" in many) == (kind in COUNTED)
    assert ("wakebell unblock board" in many) == (kind == "recipient_blocked")
    assert "40" in left
    assert all("gigs" in text and ("board" in text) == (kind not in OF_TICKS) for text in over)
    assert len({opened, *over}) == (2 if kind in ENDING_ONE_WAY else 3)


@pytest.mark.parametrize("language", LANGUAGES)
def test_what_is_told_again_says_since_when(language: str):
    again = dataclasses.replace(incident("source_failing", "board", "no feed", failures=9), again=True)

    heading, line = told(News(opened=[again]), service="gigs", language=language).splitlines()
    with_another = told(News(opened=[incident(), again]), service="gigs", language=language).splitlines()

    assert "gigs" in heading
    assert heading != with_another[0]
    assert with_another[2] == line
    assert "2026-11-30T00:00:00Z" in line
    assert line.endswith(": no feed")


def test_a_name_that_anybody_may_have_chosen_stays_on_its_line():
    [_, line] = told(News(opened=[incident(subject="a\nb" + "x" * 500)]), service="gigs", language="en").splitlines()

    assert len(line) < 120


@pytest.mark.parametrize("language", LANGUAGES)
def test_what_did_not_reach_somebody_names_them_and_repeats_it(language: str):
    heading, *rest = told_instead(Undelivered(recipient="boss", text="gigs: bad\nJob"), language=language).splitlines()

    assert "boss" in heading
    assert rest == ["gigs: bad", "Job"]
