from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.domain import textcut

WHOLE = [
    "ที่",  # base, vowel and tone mark
    "น้ำ",  # sara am
    "เที่",  # a vowel written before its consonant
    "ระ",
    "ກຳ",
    "မြန်",  # with the consonant that ends the syllable
    "မာ",
    "က္ခ",  # stacked
    "ကျွန်ုပ်",
    "အင်္ဂါ",  # stacked under an ending consonant
    "👩‍👩‍👧",
    "👍🏽",
    "❤️‍🔥",
    "1️⃣",
    "🏴󠁧󠁢󠁥󠁮󠁧󠁿",
    "🇹🇭",
    "각",
    "ế",
    "क्षि",
]
ALPHABET = st.one_of(st.sampled_from([*WHOLE, " ", "\n", "\n\n", "a", "bc", "\u0301", "\u200d", "🇹"]), st.characters())
TEXTS = st.lists(ALPHABET, max_size=60).map("".join).map(textcut.well_formed)


@pytest.mark.parametrize("character", WHOLE)
def test_what_is_read_as_one_is_one_cluster(character):
    assert textcut.clusters(character * 3) == [character] * 3


@given(TEXTS)
def test_clusters_lose_nothing(text):
    assert "".join(textcut.clusters(text)) == text


def test_a_character_outside_the_basic_plane_is_two_units():
    assert textcut.utf16_units("a😀é") == 4


@given(st.text())
def test_units_are_those_of_the_encoding(text):
    assert textcut.utf16_units(text) == len(text.encode("utf-16-le", "surrogatepass")) // 2


def test_surrogates_are_joined_or_replaced():
    assert textcut.well_formed("\ud83d\ude00 \ud800") == "😀 \ufffd"


@given(TEXTS, st.integers(min_value=16, max_value=60))
def test_every_part_is_within_the_limit(text, limit):
    parts = textcut.cut(text, limit=limit, length=textcut.utf16_units)

    assert all(textcut.utf16_units(part) <= limit for part in parts)


@given(TEXTS, st.integers(min_value=4, max_value=40))
def test_only_white_space_is_left_out(text, limit):
    parts = textcut.cut(text, limit=limit, length=textcut.utf8_bytes)

    assert "".join("".join(parts).split()) == "".join(text.split())


@pytest.mark.parametrize("character", WHOLE)
def test_no_cluster_is_cut(character):
    parts = textcut.cut(character * 200, limit=40, length=textcut.utf16_units)

    assert [cluster for part in parts for cluster in textcut.clusters(part)] == [character] * 200


@given(st.lists(st.sampled_from(WHOLE), max_size=80).map("".join), st.integers(min_value=16, max_value=60))
def test_a_mixed_text_is_cut_between_clusters(text, limit):
    parts = textcut.cut(text, limit=limit, length=textcut.utf16_units)

    assert [cluster for part in parts for cluster in textcut.clusters(part)] == textcut.clusters(text)


def test_the_best_place_for_a_cut_is_an_empty_line_then_a_line_then_a_space():
    assert textcut.cut("one two\nthree\n\nfour five", limit=13, length=len) == ["one two\nthree", "four five"]
    assert textcut.cut("one two\nthree", limit=8, length=len) == ["one two", "three"]
    assert textcut.cut("one two three", limit=8, length=len) == ["one two", "three"]
    assert textcut.cut("abcdefghij", limit=4, length=len) == ["abcd", "efgh", "ij"]


def test_a_link_is_not_cut_even_where_no_space_parts_it_from_its_word():
    text = "ดูที่" + "https://e.test/abc" + " " + "รายการ" * 4

    parts = textcut.cut(text, limit=20, length=len)

    assert parts[:2] == ["ดูที่", "https://e.test/abc"]
    assert "".join(parts).replace(" ", "") == text.replace(" ", "")


LINKED = st.lists(st.sampled_from(["ที่", "မြန်", "dev ", "\n", "https://e.test/a?b=c ", "ftp://e.test/ "]), max_size=40)


@given(LINKED.map("".join), st.integers(min_value=24, max_value=60))
def test_no_link_that_fits_is_cut(text, limit):
    parts = textcut.cut(text, limit=limit, length=textcut.utf16_units)

    whole = [link for link in textcut.LINK.findall(text) if textcut.utf16_units(link) <= limit]
    assert sorted(link for part in parts for link in textcut.LINK.findall(part)) == sorted(whole)


def test_a_space_under_a_mark_is_no_place_for_a_cut():
    assert textcut.cut("abc \u0301def", limit=5, length=len) == ["abc \u0301", "def"]


def test_a_heap_of_marks_is_cut_where_it_must_be():
    parts = textcut.cut("a" + "\u0301" * 20, limit=8, length=len)

    assert [len(part) for part in parts] == [8, 8, 5]


@pytest.mark.parametrize("text", ["", " ", "\n\n", " " * 50, "\n" * 50])
def test_blank_text_has_no_part(text):
    assert textcut.cut(text, limit=10, length=len) == []


def test_a_short_text_is_not_shortened():
    assert textcut.shorten("ที่" * 10, limit=10, characters=100) == "ที่" * 10


def test_a_long_text_ends_in_an_ellipsis_after_a_whole_cluster():
    assert textcut.shorten("👩‍👩‍👧" * 11, limit=10, characters=100) == "👩‍👩‍👧" * 9 + "…"
    assert textcut.shorten("👩‍👩‍👧" * 11, limit=10, characters=17) == "👩‍👩‍👧" * 3 + "…"


@given(TEXTS, st.integers(min_value=1, max_value=30), st.integers(min_value=1, max_value=60))
def test_shortened_text_keeps_both_limits(text, limit, characters):
    shortened = textcut.shorten(text, limit=limit, characters=characters)

    assert len(shortened) <= characters
    assert len(textcut.clusters(shortened)) <= limit


def test_a_cut_text_never_begins_with_a_mark():
    text = "".join(WHOLE) * 50

    for part in textcut.cut(text, limit=30, length=textcut.utf16_units):
        assert not unicodedata.category(part[0]).startswith("M")


@pytest.mark.parametrize("text", [*WHOLE, "x", "😀"])
def test_what_does_not_fit_is_its_beginning_in_whole_clusters(text: str):
    fitted = textcut.fit(text * 50, limit=40, length=textcut.utf8_bytes)

    assert textcut.utf8_bytes(fitted) <= 40
    assert fitted == text * fitted.count(text) + "…"
    assert textcut.utf8_bytes(fitted + text) > 40


def test_what_fits_stays():
    assert textcut.fit("ที่", limit=9, length=textcut.utf8_bytes) == "ที่"
