from __future__ import annotations

from typing import get_args

import pytest

from app.domain.watching import State, told


@pytest.mark.parametrize(
    ("state", "said"),
    [
        ("ok", None),
        ("blind", "listed nothing for 3 rounds in a row"),
        ("silent", "listed nothing new for 14 days"),
        ("unstable", "say in ignore_params, id_regex or key"),
    ],
)
def test_each_state_has_a_reason_in_plain_words(state: State, said: str | None):
    reason = told(state, empty_rounds=3, quiet_days=14)

    assert (reason is None) if said is None else (said in str(reason))


def test_one_is_not_told_as_many():
    assert "for 1 round," in str(told("blind", empty_rounds=1, quiet_days=0))
    assert "for 1 day," in str(told("silent", empty_rounds=0, quiet_days=1))


def test_all_states_are_told_of():
    assert [state for state in get_args(State) if told(state, empty_rounds=1, quiet_days=1) is None] == ["ok"]
