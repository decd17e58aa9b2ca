from __future__ import annotations

from datetime import UTC, datetime

import pytest

from app.domain import words
from app.domain.alerts import MOST_LINES, REASON_LENGTH, Incident, Kind, told

LANGUAGES = list(words.WORDS_BY_LANGUAGE)


def incident(
    kind: Kind = "job_failed",
    subject: str = "mail",
    reason: str | None = None,
    *,
    failures: int = 1,
    healed: bool = True,
) -> Incident:
    at = datetime(2026, 11, 30, tzinfo=UTC)
    return Incident(kind=kind, subject=subject, reason=reason, failures=failures, opened_at=at, healed=healed)


def test_what_broke_is_told_with_its_reason_before_what_is_over():
    opened = [
        incident(reason="no such  table\nDETAIL: none"),
        incident("source_failing", "board", "the answer holds no feed", failures=3),
        incident("message_failed", "me", None),
    ]
    resolved = [incident(subject="report"), incident("message_failed", "boss", healed=False)]

    lines = told(opened, resolved, service="gigs", language="en").splitlines()

    assert lines == [
        "gigs: something needs a look",
        "Job mail failed: no such table DETAIL: none",
        "Source board failed 3 times in a row: the answer holds no feed",
        "A message to me could not be delivered",
        "Recovered: Job report failed",
        "Closed: A message to boss could not be delivered",
    ]


def test_what_is_only_over_does_not_ask_for_a_look():
    assert told([], [incident()], service="gigs", language="en").splitlines()[0] == "gigs: this is settled"


def test_more_than_one_failure_is_a_number():
    assert "Job mail failed (40)" in told([incident(failures=40)], [], service="gigs", language="en")


def test_a_reason_is_cut_where_it_gets_long():
    [_, line] = told([incident(reason="x" * 5000)], [], service="gigs", language="en").splitlines()

    assert line == f"Job mail failed: {'x' * (REASON_LENGTH - 1)}…"


@pytest.mark.parametrize("count", [MOST_LINES, MOST_LINES + 1, 500])
def test_many_are_ten_lines_that_tell_how_many_more(count: int):
    many = [incident(subject=f"type{number}") for number in range(count)]

    lines = told(many, many, service="gigs", language="en").splitlines()

    assert len(lines) == 1 + 2 * MOST_LINES
    if count > MOST_LINES:
        assert lines[MOST_LINES] == lines[-1] == f"and {count - MOST_LINES + 1} more"


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("kind", ["job_failed", "source_failing", "message_failed"])
def test_every_language_names_what_it_is_about(language: str, kind: Kind):
    opened = told([incident(kind, "{odd} name", "because")], [], service="gigs", language=language)
    over = [
        told([], [incident(kind, "board", healed=healed)], service="gigs", language=language)
        for healed in (False, True)
    ]

    assert "{odd} name" in opened
    assert "because" in opened
    assert all("gigs" in text and "board" in text for text in over)
    assert len({opened, *over}) == 3
