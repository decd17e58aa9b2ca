from __future__ import annotations

from dataclasses import fields
from typing import get_args

import pytest

from app.domain import chatwords
from app.settings.model import Language

LANGUAGES = get_args(Language)


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_language_has_words_of_its_own(language: str):
    words = chatwords.words_of(language)

    assert language in chatwords.WORDS_BY_LANGUAGE
    for field in fields(words):
        value = getattr(words, field.name)
        assert value
        assert language == "en" or value != getattr(chatwords.words_of("en"), field.name)


def test_a_language_without_words_speaks_english():
    assert chatwords.words_of("xx") == chatwords.words_of("en")


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_person_may_be_asked_for_in_the_language_and_in_english(language: str):
    words = chatwords.handover_of(language)

    assert {*chatwords.words_of(language).handover, "human"} <= set(words)
    assert len(words) == len(set(words))


@pytest.mark.parametrize(
    ("language", "text"),
    [
        ("en", "human"),
        ("en", "HUMAN please!"),
        ("en", "Can I talk  to a person?"),
        ("en", "(staff)"),
        ("en", "could I please speak to a human, now"),
        ("th", "ขอคุยกับเจ้าหน้าที่หน่อยครับ"),
        ("th", "แอดมินอยู่ไหม"),
        ("vi", "Cho tôi gặp NHÂN VIÊN"),
        ("vi", "nha\u0302n vie\u0302n"),
        ("my", "ဝန်ထမ်းနဲ့ပြောချင်ပါတယ်"),
    ],
)
def test_a_short_text_with_the_word_in_it_asks_for_a_person(language: str, text: str):
    assert chatwords.asks_for_person(text, chatwords.handover_of(language))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "hello",
        "is the book about human rights open?",
        "my agent told me to ask you",
        "What are humane prices?",
        "reagents",
        "staffing",
        "Our staff of 40 people needs a new website by next spring, what would that cost us?",
    ],
)
def test_other_texts_do_not(text: str):
    assert not chatwords.asks_for_person(text, chatwords.handover_of("en"))


def test_no_words_are_never_found():
    assert not chatwords.asks_for_person("human", ())
    assert not chatwords.asks_for_person("human", ("",))
