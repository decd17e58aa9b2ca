from __future__ import annotations

import pytest

from app.domain.templates import filled, filled_address, parse


def test_without_braces_it_is_one_expression():
    template = parse(" client.name ")

    assert (template.literals, template.expressions) == ((), ("client.name",))


def test_what_stands_in_braces_is_an_expression():
    template = parse("https://x.example/jobs/{ id }?lang={meta.lang}")

    assert template.literals == ("https://x.example/jobs/", "?lang=", "")
    assert template.expressions == ("id", "meta.lang")


def test_doubled_braces_are_braces():
    template = parse("{{{id}}}")

    assert (template.literals, template.expressions) == (("{", "}"), ("id",))


@pytest.mark.parametrize(
    ("written", "told"),
    [
        (" ", "is empty"),
        ("jobs/{id", "a brace without its partner"),
        ("jobs/id}", "a brace without its partner"),
        ("jobs/{}", "nothing between { and }"),
        ("jobs/{ }", "nothing between { and }"),
    ],
)
def test_what_cannot_be_meant_is_told(written: str, told: str):
    with pytest.raises(ValueError, match=told):
        parse(written)


@pytest.mark.parametrize(
    ("written", "values", "text"),
    [
        ("{a} at {b}", ["Bot", "Acme"], "Bot at Acme"),
        ("{a} - {b}", ["Bot", ""], "Bot"),
        ("{a}-{b} USD", ["", "80"], "80 USD"),
        ("{a} {b}", ["", ""], ""),
        ("-{a}", ["5"], "-5"),
    ],
)
def test_values_are_filled_in(written: str, values: list[str], text: str):
    assert filled(parse(written).literals, values) == text


@pytest.mark.parametrize(
    ("written", "values", "address"),
    [
        ("https://x.example/jobs/{id}", ["7"], "https://x.example/jobs/7"),
        ("https://x.example/jobs/{id}", [""], ""),
        ("https://x.example/jobs/{id}", ["a b/c?d#e"], "https://x.example/jobs/a%20b/c%3Fd%23e"),
        (
            "https://x.example/?q={q}&p=1",
            ["C# & ไทย"],
            "https://x.example/?q=C%23%20%26%20%E0%B9%84%E0%B8%97%E0%B8%A2&p=1",
        ),
        ("https://x.example{path}", ["/jobs/7?x=1"], "https://x.example/jobs/7?x=1"),
        ("{url}?ref=me", ["https://x.example/a/b"], "https://x.example/a/b?ref=me"),
    ],
)
def test_a_value_in_an_address_is_encoded_for_its_place(written: str, values: list[str], address: str):
    assert filled_address(parse(written).literals, values) == address
