from __future__ import annotations

from itertools import count

import pytest

from app.domain.patterns import MOST_CHARACTERS, Found, Searches, fault

ENDLESS = "(a|aa)+$"
LONG = "a" * 60 + "b"


def still() -> float:
    return 0.0


@pytest.mark.parametrize(
    "pattern",
    [
        r"\bpy(thon)?\b",
        "[[a-z]--[aeiou]]",
        "(?i)x",
        r"\p{Thai}+",
        "a{1000}",
        r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}",
        "(?:a{0,1000}){0,1000}",
        "[]a{9}]{3}",
        r"\({3}\)",
        "(" * 100 + ")" * 100,
        "(senior){e<=1}",
    ],
)
def test_a_pattern_that_can_be_searched_for_has_no_fault(pattern: str):
    assert fault(pattern) is None
    Searches(still).find(pattern, ["x"])


@pytest.mark.parametrize(
    ("pattern", "told"),
    [
        ("[", "is no regular expression (unterminated character set at position 1); mend it"),
        ("(", "is no regular expression (missing ) at position 1); mend it"),
        ("*a", "is no regular expression (nothing to repeat at position 0); mend it"),
        ("\\", "is no regular expression (bad escape (end of pattern) at position 1); mend it"),
        (r"\L<words>", "is no regular expression (undefined named list at position 9); mend it"),
        ("a" * (MOST_CHARACTERS + 1), "has more than 1,000 characters; write a shorter one"),
        ("(" * 490 + ")" * 490, "is nested too deeply; write a simpler one"),
        (
            "(((a{100}){100}){100}){100}",
            "is longer than 10,000 signs with its repetitions written out; repeat less in {}",
        ),
        ("a{9}{9}{9}{9}{9}", "is longer than 10,000 signs with its repetitions written out; repeat less in {}"),
        (f"a{{{'9' * 900}}}", "is longer than 10,000 signs with its repetitions written out; repeat less in {}"),
        ("a)" * 9 + "{99999}", "is longer than 10,000 signs with its repetitions written out; repeat less in {}"),
    ],
)
def test_a_pattern_that_cannot_be_searched_for_is_told_with_what_to_change(pattern: str, told: str):
    assert fault(pattern) == told


@pytest.mark.parametrize(
    ("pattern", "text", "found"),
    [
        ("straße", "STRASSE", "STRASSE"),
        ("RÉSUMÉ", "re\u0301sume\u0301", None),
        ("re\u0301sume\u0301", "r\u00e9sum\u00e9", "r\u00e9sum\u00e9"),
        ("น\u0e4d\u0e49\u0e32", "ขายน\u0e49\u0e33ดื่ม", "น\u0e49\u0e33"),
        ("(?-i:go)", "Go", None),
        ("^$", "", ""),
        ("x", "", None),
    ],
)
def test_upper_case_and_ways_of_writing_make_no_difference(pattern: str, text: str, found: str | None):
    assert Searches(still).find(pattern, [text]) == Found(found)


def test_the_first_text_in_which_a_pattern_finds_something_counts():
    assert Searches(still).find("[a-z]+", ["12", "ab", "cd"]) == Found("ab")


def test_a_search_that_takes_too_long_finds_nothing_and_the_next_text_is_looked_at():
    searches = Searches(still)

    assert searches.find(ENDLESS, [LONG]) == Found(None, slow=True)
    assert searches.find(ENDLESS, [LONG, "aa"]) == Found("aa")


def test_after_a_second_in_all_a_pattern_is_not_searched_for_any_more():
    ticking = count()
    searches = Searches(lambda: next(ticking) * 0.4)

    found = [searches.find("a", ["a"]) for _ in range(4)]

    assert found == [Found("a"), Found("a"), Found("a"), Found(None, slow=True)]
    assert searches.find("b", ["b"]) == Found("b")
