from __future__ import annotations

from datetime import timedelta

import pytest

from tests.settings.conftest import Load, Problems


@pytest.mark.parametrize(
    ("text", "expected"),
    [("", ("inbox",)), ("[alerts]", ("inbox",)), ('[alerts]\nto = ["me", "inbox"]', ("me", "inbox"))],
)
def test_who_is_told_of_alerts_is_read_and_is_the_inbox_where_nobody_is_named(
    load_text: Load, text: str, expected: tuple[str, ...]
):
    settings = load_text(f'[recipients.me]\nchannel = "inbox"\n{text}')

    assert settings.alerts == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [("", timedelta(hours=24)), ("repeat_hours = 0", None), ("repeat_hours = 1.5", timedelta(minutes=90))],
)
def test_how_often_alerts_are_told_again_is_read(load_text: Load, text: str, expected: timedelta | None):
    assert load_text(f"[alerts]\n{text}").repeat_alerts == expected


@pytest.mark.parametrize("hours", ["-1", "9999", '"daily"'])
def test_an_impossible_repetition_is_refused(problems_of: Problems, hours: str):
    [problem] = problems_of(f"[alerts]\nrepeat_hours = {hours}")

    assert "repeat_hours" in problem
