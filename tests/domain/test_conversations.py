from __future__ import annotations

from datetime import UTC, datetime, timedelta

from app.domain.conversations import Turn, remembered

NOON = datetime(2026, 12, 1, 12, tzinfo=UTC)
WEEK = timedelta(days=7)


def turn(mark: str, days: float) -> Turn:
    """So many days ago."""
    return Turn(mark=mark, side="person", text=mark, at=NOON - timedelta(days=days))


def marks(*turns: Turn, most: int = 12) -> str:
    return "".join(turn.mark for turn in remembered(turns, now=NOON, keep=WEEK, most=most))


def test_what_two_memories_have_is_one_talk_in_the_order_in_which_it_was_said():
    assert marks(turn("a", 4), turn("c", 2), turn("b", 3), turn("d", 1)) == "abcd"


def test_what_was_remembered_at_one_instant_stays_as_it_was():
    assert marks(turn("z", 1), turn("a", 1)) == "za"


def test_each_is_remembered_once_and_the_last_ones_alone():
    assert marks(turn("a", 3), turn("b", 2), turn("b", 2), turn("c", 1), most=2) == "bc"
    assert marks(turn("a", 3), most=0) == ""


def test_all_is_forgotten_at_once_so_long_after_the_last_word():
    assert marks(turn("a", 13), turn("b", 6.9)) == "ab"
    assert marks(turn("a", 13), turn("b", 7)) == ""
    assert marks() == ""
