"""The keys that sign the rings of QStash."""

from __future__ import annotations

import pytest

from tests.fakes.qstash import CURRENT, NEXT
from tests.settings.conftest import Load, Problems

URL = {"PUBLIC_URL": "https://bell.example"}


def test_either_key_is_enough_and_both_count(load_text: Load):
    both = {"QSTASH_CURRENT_SIGNING_KEY": CURRENT, "QSTASH_NEXT_SIGNING_KEY": NEXT}

    assert load_text("", {**URL, **both}).environment.qstash_keys == (CURRENT.encode(), NEXT.encode())
    for name, key in both.items():
        assert load_text("", {**URL, name: key}).environment.qstash_keys == (key.encode(),)
    assert load_text("", {**URL, **dict.fromkeys(both, "")}).environment.qstash_keys == ()
    assert load_text("", {**URL, **dict.fromkeys(both, CURRENT)}).environment.qstash_keys == (CURRENT.encode(),)


@pytest.mark.parametrize("given", [f'"{CURRENT}"', f"'{CURRENT}'", f"  {CURRENT}\n", f'"{CURRENT} "'])
def test_a_key_is_taken_as_the_console_shows_it(load_text: Load, given: str):
    assert load_text("", {**URL, "QSTASH_NEXT_SIGNING_KEY": given}).environment.qstash_keys == (CURRENT.encode(),)


@pytest.mark.parametrize(
    ("key", "told"),
    [("short", "is shorter than 16"), ("undefined", "holds a placeholder"), ("a" * 20 + "\nb", "holds")],
)
def test_a_key_that_can_be_none_is_named(problems_of: Problems, key: str, told: str):
    [problem] = problems_of("", {**URL, "QSTASH_CURRENT_SIGNING_KEY": key})

    assert problem.startswith(f"QSTASH_CURRENT_SIGNING_KEY: {told}")
    assert problem.endswith("copy it from the QStash console")


@pytest.mark.parametrize("name", ["QSTASH_CURRENT_SIGNING_KEY", "QSTASH_NEXT_SIGNING_KEY"])
def test_a_key_needs_the_address_that_is_signed(problems_of: Problems, name: str):
    [problem] = problems_of("", {name: CURRENT})

    assert problem.startswith(f"PUBLIC_URL: is not set, and {name} is; set it to the address")
    [problem] = problems_of("", {name: CURRENT, "PUBLIC_URL": "bell.example"})
    assert problem.startswith("PUBLIC_URL: must be an http or https address")


def test_both_keys_are_secrets(load_text: Load):
    read = load_text("", {**URL, "QSTASH_CURRENT_SIGNING_KEY": CURRENT, "QSTASH_NEXT_SIGNING_KEY": NEXT})

    assert read.mask(f"{CURRENT} and {NEXT}") == "[secret] and [secret]"
    assert CURRENT not in repr(read)
