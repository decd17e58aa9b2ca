from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.domain import deliveries
from app.domain.chats import Malformed


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"{",
        b"[]",
        b"null",
        b"1",
        b'"events"',
        b"\xff{}",
        b'{"a": NaN}',
        b'{"a": -Infinity}',
        b'{"a": ' + b"1" * 5000 + b"}",
        b'{"a": ' + b"[" * 100_000 + b"}",
        b"a=1&b=2",
    ],
)
def test_what_is_no_json_object_is_refused_without_repeating_it(raw: bytes):
    with pytest.raises(Malformed) as caught:
        deliveries.document(raw)

    assert str(caught.value) == "the body is no JSON object"


def test_an_object_is_read():
    assert deliveries.document('{"text": "สวัสดี 😀"}'.encode()) == {"text": "สวัสดี 😀"}


@pytest.mark.parametrize(
    ("given", "name"),
    [
        ("U4af", "U4af"),
        (-1001234567890, "-1001234567890"),
        (0, "0"),
        ("x" * 255, "x" * 255),
        ("x" * 256, None),
        ("", None),
        ("a\0b", None),
        ("\ud83d", None),
        ("a\nb", None),
        (True, None),
        (None, None),
        (1.5, None),
        ([], None),
        ({}, None),
    ],
)
def test_a_name_is_a_short_visible_word_or_a_whole_number(given: object, name: str | None):
    assert deliveries.name(given) == name


def test_an_events_own_id_is_taken():
    assert deliveries.event_id("01JD", {"type": "message"}) == "01JD"


def test_an_id_that_is_too_long_is_known_by_its_digest():
    one, other = (deliveries.event_id(end * 400, {}) for end in "ab")

    assert one != other
    assert len(one) < 100
    assert one == deliveries.event_id("a" * 400, {"more": 1})


def test_an_event_without_an_id_is_known_by_its_content_whatever_the_order_of_its_keys():
    first = deliveries.event_id(None, {"a": 1, "b": {"c": "\ud83d"}, "again": False}, without=("again",))
    again = deliveries.event_id(None, {"again": True, "b": {"c": "\ud83d"}, "a": 1}, without=("again",))

    assert first == again
    assert first != deliveries.event_id(None, {"a": 2})


def test_a_text_keeps_its_lines_and_its_joined_characters():
    assert deliveries.text("ที่\r\n👩‍👩‍👧\rtwo\n\nမြန်မာ") == "ที่\n👩‍👩‍👧\ntwo\n\nမြန်မာ"


@pytest.mark.parametrize("unwanted", ["\0", "\ud83d", "\u202e", "\u2067", "\ufeff", "\x1b", "\ufffe"])
def test_what_is_no_text_is_removed_from_one(unwanted: str):
    assert deliveries.text(f" a{unwanted}b ") == "ab"


@pytest.mark.parametrize("character", ["x", "😀", "ที่", "a\u0301"])
def test_a_text_is_limited_to_5000_characters(character: str):
    told = deliveries.text(character * 6000)

    assert 4990 <= len(told) <= 5000
    assert told.endswith("…")


@pytest.mark.parametrize("given", [None, 1, True, [], {}, ["a"]])
def test_what_is_no_text_is_an_empty_one(given: object):
    assert deliveries.text(given) == ""


def test_what_is_no_text_has_a_word_in_its_place():
    assert deliveries.worded("image") == "[image]"
    assert deliveries.worded("image", "my cat") == "[image] my cat"


@pytest.mark.parametrize(
    ("given", "per_second", "at"),
    [
        (1_764_547_200_123, 1000, datetime(2025, 12, 1, microsecond=123_000, tzinfo=UTC)),
        (1_764_547_200, 1, datetime(2025, 12, 1, tzinfo=UTC)),
        (0, 1, None),
        (-1, 1, None),
        (10**30, 1000, None),
        ("1764547200", 1, None),
        (1.5, 1, None),
        (True, 1, None),
        (None, 1, None),
    ],
)
def test_an_instant_is_told_in_whole_numbers(given: object, per_second: int, at: datetime | None):
    assert deliveries.instant(given, per_second=per_second) == at


def test_a_name_within_a_text_is_found_by_utf16_units():
    written = "😀 @gigs_bot hi"

    assert deliveries.piece(written, 3, 9) == "@gigs_bot"
    assert deliveries.without_names(written, [(3, 9)]) == "😀  hi"


def test_what_does_not_begin_with_an_at_sign_is_left_there():
    assert deliveries.without_names("hello there", [(0, 5), (-1, 3), (6, 500), (0, 0)]) == "hello there"


JSON: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=8,
)


@given(JSON, JSON, JSON)
def test_nothing_that_json_can_say_breaks_the_reading(one: Any, two: Any, three: Any):
    deliveries.name(one)
    deliveries.instant(one, per_second=1000)
    assert len(deliveries.text(one)) <= deliveries.TEXT_LIMIT
    assert deliveries.event_id(one, {"two": two, "three": three})
    assert isinstance(deliveries.piece(str(two), one, three), str)
    assert deliveries.tables(one) == [] or isinstance(one, list)
