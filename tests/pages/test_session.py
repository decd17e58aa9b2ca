from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from app.pages import session

TOKEN = b"an-api-token-of-thirty-letters"
NOW = datetime(2026, 11, 30, 9, tzinfo=UTC)


def test_a_login_lasts_twelve_hours():
    begun = session.begin(TOKEN, now=NOW)

    assert session.read(TOKEN, begun.cookie, now=NOW) == begun
    assert session.read(TOKEN, begun.cookie, now=NOW + timedelta(hours=12, seconds=-1)) == begun
    assert session.read(TOKEN, begun.cookie, now=NOW + timedelta(hours=12)) is None


def test_another_token_logs_everybody_out():
    begun = session.begin(TOKEN, now=NOW)

    assert session.read(b"another-token-of-thirty-letters", begun.cookie, now=NOW) is None


def test_a_cookie_that_was_tampered_with_is_none():
    ends, name, mark = session.begin(TOKEN, now=NOW).cookie.split(".")

    for forged in (
        f"{int(ends) + 1}.{name}.{mark}",
        f"{ends}.{name[:-1]}{'A' if name[-1] != 'A' else 'B'}.{mark}",
        f"{ends}.{name}.{mark[:-1]}{'0' if mark[-1] != '0' else '1'}",
        f"{ends}.{name}.{mark}\n",
        f"{ends}.{name}.",
        f"٣{ends[1:]}.{name}.{mark}",
        f"{ends}.{name}",
        "",
    ):
        assert session.read(TOKEN, forged, now=NOW) is None, forged
    assert session.read(TOKEN, None, now=NOW) is None


def test_the_token_of_forms_is_no_part_of_the_cookie_and_belongs_to_one_login():
    one, other = session.begin(TOKEN, now=NOW), session.begin(TOKEN, now=NOW)

    assert one.form_token not in one.cookie
    assert one.sent(one.form_token)
    assert not one.sent(other.form_token)
    assert not one.sent("")


@pytest.mark.parametrize("given", ["ก", "x" * 10_000])
def test_any_word_can_be_compared(given: str):
    assert not session.begin(TOKEN, now=NOW).sent(given)
