from __future__ import annotations

from datetime import timedelta
from uuid import UUID

import pytest

from app.domain import textcut
from app.domain.chats import Answer, Said, split


def test_what_was_said_shows_no_person_no_text_and_no_token():
    said = Said(
        id="1", kind="message", conversation="b:U1", address="U1", person="U1", text="my password", reply_token="tok"
    )
    answer = Answer(
        texts=("secret",), address="U1", reply_token="tok", retry_key=UUID(int=1), waited=timedelta(seconds=1)
    )

    assert "password" not in repr(said)
    assert "tok" not in repr(said) + repr(answer).replace("reply_token", "")
    assert "secret" not in repr(answer)


def test_a_short_text_is_one():
    assert split(" Hello\n", limit=100, length=len, most=5) == ("Hello",)


def test_nothing_to_say_is_no_text():
    assert split(" \n\0", limit=100, length=len, most=5) == ()


def test_a_long_text_is_cut_between_its_paragraphs():
    assert split("one two\n\nthree four\n\nfive", limit=12, length=len, most=5) == ("one two", "three four", "five")


@pytest.mark.parametrize("character", ["x", "😀", "ที่", "မြန်မာ", "👩‍👩‍👧", "คำไทยยาว ๆ "])
def test_what_is_more_than_the_most_ends_with_an_ellipsis(character: str):
    texts = split(character * 4000, limit=500, length=textcut.utf16_units, most=3)

    assert len(texts) == 3
    assert all(0 < textcut.utf16_units(text) <= 500 for text in texts)
    assert texts[-1].endswith("…")
    assert not any(text.startswith(("่", "ี", "\u200d")) for text in texts)


def test_half_a_character_is_replaced():
    assert split("a\ud83db", limit=10, length=len, most=1) == ("a\N{REPLACEMENT CHARACTER}b",)
