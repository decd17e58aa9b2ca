from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.domain.items import Item
from app.domain.matching import contains, fold, fold_item, judge
from app.domain.subscriptions import Subscription


def subscription(**conditions: Any) -> Subscription:
    return Subscription(name="gigs", to=("me",), **conditions)


def item(title: str = "Python developer", **more: Any) -> Item:
    return Item(key="k", title=title, **more)


@pytest.mark.parametrize(
    ("word", "text"),
    [
        ("go", "Go developer"),
        ("go", "a backend (go)"),
        ("go", "Go, Rust"),
        ("go", "golang/go"),
        ("go", "#go_dev"),
        ("Go", "WE GO"),
        ("c", "C, Rust or Zig"),
        ("c", "C/C++"),
        ("c++", "C++ developer"),
        ("c++", "modern C++20"),
        ("c++", "C/C++"),
        ("c++", "(C++)"),
        ("c#", "C#/.NET"),
        ("c#", "C#12"),
        ("c#", "C♯"),
        (".net", ".NET developer"),
        (".net", "ASP.NET"),
        ("node.js", "Node.js and React"),
        ("node", "Node.js"),
        ("python", "Python3/python"),
        ("python", "Python+Django"),
        ("data engineer", "Data\n   Engineer wanted"),
        ("data engineer", "data\N{NO-BREAK SPACE}engineer"),
        ("full-stack", "a Full-Stack role"),
        ("full-stack", "a full stack role"),
        ("full stack", "a full-stack role"),
        ("full-stack", "a full\N{NON-BREAKING HYPHEN}stack role"),
        ("don't", "we don\u2019t"),
        ("python", "ＰＹＴＨＯＮ engineer"),
        ("ｐｙｔｈｏｎ", "python"),
        ("résumé", "re\u0301sume\u0301 check"),
        ("straße", "STRASSE"),
        ("yazılım", "YAZILIM"),
        ("istanbul", "İSTANBUL"),
        ("разработчик", "Нужен РАЗРАБОТЧИК."),
        ("προγραμματιστής", "ΠΡΟΓΡΑΜΜΑΤΙΣΤΉΣ"),
        ("บอท", "รับเขียนบอทไลน์"),
        ("น้ำ", "ขายน\u0e49\u0e4d\u0e32ดื่ม"),
        ("น\u0e4d\u0e49\u0e32", "ขายน้ำดื่ม"),
        ("นักพัฒนา", "นัก\u200bพัฒนา"),
        ("python", "เขียนPythonได้"),
        ("line บอท", "ทำ LINE บอทให้ร้าน"),
        ("ນ້ຳ", "ດື່ມນ\u0ec9\u0ecd\u0eb2"),
        ("ឈ្នះ", "យើងឈ្នះហើយ"),
        ("မြန်မာ", "ကျွန်တော်မြန်မာစကား"),
        ("开发", "软件开发工程师"),
        ("python", "招聘python工程师"),
        ("エンジニア", "急募ｴﾝｼﾞﾆｱです"),
        ("さくら", "桜とさくらの木"),
    ],
)
def test_a_word_is_found(word: str, text: str):
    assert contains(fold(text), word)


@pytest.mark.parametrize(
    ("word", "text"),
    [
        ("go", "Django"),
        ("go", "good"),
        ("go", "cargo"),
        ("go", "go4"),
        ("c", "C++ only"),
        ("c", "C# only"),
        ("c", "C#12 only"),
        ("c++", "abc++"),
        ("c+", "C++"),
        (".net", "internet"),
        (".net", ".network"),
        ("node.js", "nodexjs"),
        ("java", "JavaScript"),
        ("data engineer", "data. engineer"),
        ("data engineer", "database engineer"),
        ("cafe", "cafe\u0301s"),
        ("разработ", "разработчик"),
        ("line บอท", "online บอท"),
        ("บอท", "บอล"),
        ("", "anything"),
        (" \u200b", "anything"),
        ("python", ""),
    ],
)
def test_a_word_is_not_found(word: str, text: str):
    assert not contains(fold(text), word)


def test_words_are_looked_for_in_title_text_and_fields_and_not_in_the_link():
    found = item("Title", text="Text", fields={"company": "Field", "budget": 5}, link="https://e.test/link")

    words = fold_item(found).words

    assert [contains(words, word) for word in ("title", "text", "field", "link")] == [True, True, True, False]


def test_a_phrase_does_not_reach_from_the_title_into_the_text():
    assert not contains(fold_item(item("Data", text="engineer")).words, "data engineer")


@pytest.mark.parametrize(
    ("conditions", "matched", "why"),
    [
        ({}, True, "it takes every item of the source"),
        ({"any": ("fastapi", "python")}, True, '"python" is in it'),
        ({"any": ("developer", "python")}, True, '"developer", "python" are in it'),
        ({"any": ("rust", "zig")}, False, 'none of "rust", "zig" is in it'),
        ({"any": ("rust",)}, False, '"rust" is not in it'),
        ({"all": ("python", "senior")}, False, '"senior" is not in it'),
        ({"all": ("rust", "zig")}, False, '"rust", "zig" are not in it'),
        ({"all": ("python", "developer")}, True, '"python", "developer" are in it'),
        ({"none": ("senior",)}, True, "it takes every item of the source"),
        ({"any": ("python",), "none": ("Developer",)}, False, '"Developer" is in it and is excluded'),
        ({"min": {"budget": 500}}, False, "budget 300 is below 500"),
        ({"min": {"budget": 300}}, True, "budget 300 is at least 300"),
        ({"min": {"budget": 0.5}, "any": ("python",)}, True, '"python" is in it and budget 300 is at least 0.5'),
        ({"min": {"rate": 5}}, False, 'has no number "rate"'),
        ({"min": {"note": 5}}, False, 'has no number "note"'),
        ({"min": {"pay": 700}}, True, "pay 500 to 800 is at least 700"),
        ({"min": {"pay": 900}}, False, "pay 500 to 800 is below 900"),
        ({"sources": frozenset({"board"})}, True, "it takes every item of the source"),
        ({"sources": frozenset({"other"})}, False, "board is not one of its sources"),
        ({"sources": frozenset()}, False, "board is not one of its sources"),
    ],
)
def test_the_verdict_says_why(conditions: dict[str, Any], matched: bool, why: str):  # noqa: FBT001
    verdict = judge(
        item(fields={"budget": 300, "note": "soon", "pay": "$500-800"}), "board", subscription(**conditions)
    )

    assert (verdict.matched, verdict.why) == (matched, why)


def test_an_item_folded_once_is_judged_the_same():
    asked = subscription(any=("บอท",))
    found = item("รับเขียนบอทไลน์")

    assert judge(fold_item(found), "board", asked) == judge(found, "board", asked)


@given(st.text(), st.text(max_size=5))
def test_any_text_can_be_asked_for_any_word(text: str, word: str):
    assert contains(fold(text), word) in {True, False}


@given(st.from_regex(r"\A[a-z]{1,8}\Z"))
def test_a_word_between_commas_is_always_found(word: str):
    assert contains(fold(f"One,{word.upper()},two"), word)
