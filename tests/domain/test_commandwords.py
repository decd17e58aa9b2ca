from __future__ import annotations

import string
from dataclasses import fields
from typing import get_args

import pytest

from app.domain import commandwords
from app.settings.model import Language

LANGUAGES = get_args(Language)


def _braces(told: str) -> set[str]:
    return {name for _, name, _, _ in string.Formatter().parse(told) if name}


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_language_has_words_of_its_own_that_tell_the_same(language: str):
    words, english = commandwords.words_of(language), commandwords.words_of("en")

    for field in fields(words):
        own, other = getattr(words, field.name), getattr(english, field.name)
        assert own
        if field.name == "aliases":
            assert set(own) == set(commandwords.NAMES)
        else:
            assert language == "en" or own != other
            assert _braces(own) == _braces(other), field.name


def test_a_language_without_words_speaks_english():
    assert commandwords.words_of("xx") == commandwords.words_of("en")


@pytest.mark.parametrize("language", LANGUAGES)
def test_no_words_stand_for_two_commands(language: str):
    written = [alias for _, alias in commandwords.aliases_of(language)]

    assert len(written) == len(set(written))
