from __future__ import annotations

import dataclasses
import re

import pytest

from app.domain import words

LANGUAGES = list(words.WORDS_BY_LANGUAGE)
BLOCK_BY_LANGUAGE = {"th": "\u0e00-\u0e7f", "my": "\u1000-\u109f", "vi": "A-Za-zÀ-ỹ", "en": "A-Za-z"}


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_language_has_the_same_places_to_fill(language):
    english = dataclasses.asdict(words.WORDS_BY_LANGUAGE["en"])
    spoken = dataclasses.asdict(words.WORDS_BY_LANGUAGE[language])

    for name, text in english.items():
        assert sorted(re.findall(r"{\w+}", spoken[name])) == sorted(re.findall(r"{\w+}", text)), name


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_word_is_written_in_its_own_script(language):
    for name, text in dataclasses.asdict(words.WORDS_BY_LANGUAGE[language]).items():
        plain = re.sub(r"{\w+}", "", text)
        assert re.fullmatch(rf"[{BLOCK_BY_LANGUAGE[language]}0-9 .:,()]+", plain), name


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("count", [1, 2, 37])
def test_the_heading_tells_the_count(language, count):
    assert str(count) in words.new_items(language, count)


def test_one_is_not_told_as_many():
    assert words.new_items("en", 1) == "1 new item"
    assert words.new_items("en", 2) == "2 new items"


@pytest.mark.parametrize("language", LANGUAGES)
def test_names_are_filled_in(language):
    assert "gigs" in words.test_message(language, service="gigs")
    assert "board" in words.watching(language, source="board", count=40)
    assert "40" in words.watching(language, source="board", count=40)


def test_a_name_with_braces_is_not_filled_again():
    assert "{count}" in words.watching("en", source="{count}", count=40)


def test_an_unknown_language_is_told_in_english():
    assert words.untitled("xx") == "(no title)"
