from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.domain.folding import contains, fold, spelt, written


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


@pytest.mark.parametrize(
    ("text", "forms"),
    [
        ("Full-Stack Go", ("Full-Stack Go",)),
        ("re\u0301sume\u0301", ("r\u00e9sum\u00e9",)),
        ("ขายน\u0e49\u0e33", ("ขายน\u0e49\u0e33",)),
        ("ขายน\u0e4d\u0e49\u0e32", ("ขายน\u0e49\u0e33",)),
        ("ນ\u0ec9\u0ecd\u0eb2", ("ນ\u0ec9\u0eb3",)),
        ("นัก\u200bพัฒนา", ("นักพัฒนา",)),
        ("ＰＹＴＨＯＮ３", ("ＰＹＴＨＯＮ３", "PYTHON3")),
        ("10 m²", ("10 m²", "10 m2")),
        ("", ("",)),
    ],
)
def test_a_pattern_sees_a_text_as_it_is_written_and_with_one_form_for_each_character(text: str, forms: tuple[str, ...]):
    assert written(text) == forms


@given(st.text())
def test_spelling_makes_no_sign_of_patterns_out_of_what_is_none(text: str):
    signs = set("()[]{}*+?|^$.\\")

    assert [c for c in spelt(text) if c in signs] == [c for c in text if c in signs]


@given(st.text(), st.text(max_size=5))
def test_any_text_can_be_asked_for_any_word(text: str, word: str):
    assert contains(fold(text), word) in {True, False}


@given(st.from_regex(r"\A[a-z]{1,8}\Z"))
def test_a_word_between_commas_is_always_found(word: str):
    assert contains(fold(f"One,{word.upper()},two"), word)
