from __future__ import annotations

import json

import pytest

from app.domain.masking import NO_MASK, Mask

SECRET = "s3cr3t/+=&?"


@pytest.mark.parametrize(
    "text",
    [SECRET, f"a{SECRET}b", f"{SECRET}{SECRET}", "s3cr3t%2F%2B%3D%26%3F", "x=s3cr3t/%2B%3D%26%3F"],
)
def test_a_secret_is_taken_out_wherever_it_stands_and_however_an_address_spells_it(text: str):
    masked = Mask([SECRET])(text)

    assert "s3cr3t" not in masked
    assert "[secret]" in masked


def test_the_longest_goes_first():
    assert Mask(["secret", "secret-and-more"])("secret-and-more") == "[secret]"


@pytest.mark.parametrize("short", ["", " ", "a", "12345", "inbox"])
def test_what_is_short_may_stand_in_ordinary_words(short: str):
    assert Mask([short])(f"the {short} is here") == f"the {short} is here"


def test_a_word_is_no_part_of_another_one():
    mask = Mask(["postgres"])

    assert mask("postgresql and Postgres") == "postgresql and Postgres"
    assert mask("user postgres:postgres@db") == "user [secret]:[secret]@db"


def test_other_scripts_are_taken_out_too():
    assert Mask(["รหัสลับของฉัน"])("รหัสลับของฉัน!") == "[secret]!"


@pytest.mark.parametrize(
    ("secret", "text"),
    [
        ('pa/ss"word', r'{"a": "pa\/ss\"word"}'),
        ('pa/ss"word', r'{"a": "pa\u002Fss\u0022word"}'),
        ('pa/ss"word', r'{"a": "{\"b\": \"pa\\/ss\\\"word\"}"}'),
        ("รหัสลับของฉัน", json.dumps("รหัสลับของฉัน")),
        ("😀😀😀😀😀😀", json.dumps("😀😀😀😀😀😀")),
        ("back\\slash", json.dumps("back\\slash")),
    ],
)
def test_a_secret_is_taken_out_however_json_spells_it(secret: str, text: str):
    masked = Mask([secret])(text)

    assert "[secret]" in masked
    assert not any(part in masked for part in ("word", "slash", "u0e23", "ud83d"))


def test_nothing_to_hide_changes_nothing():
    assert NO_MASK("text") == "text"


@pytest.mark.parametrize("spelt", [SECRET, "s3cr3t%2F%2B%3D%26%3F", json.dumps("s3cr3t/+=&?\u00e9")[1:-1]])
def test_somebody_is_told_no_secret_but_what_they_have_said_themselves(spelt: str):
    mask = Mask([SECRET, "s3cr3t/+=&?\u00e9", "another-one"])

    assert mask.struck(f"it is {spelt}", known=["hello"]) == "it is [secret]"
    assert (
        mask.struck(f"it is {spelt}, or another-one", known=["hello", f"is it {spelt}?"])
        == f"it is {spelt}, or [secret]"
    )


def test_where_there_is_no_secret_nothing_is_struck():
    assert NO_MASK.struck("it is a\\b", known=[]) == "it is a\\b"
