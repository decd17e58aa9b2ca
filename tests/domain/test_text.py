from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.domain import text

PRINTED = st.text(alphabet=st.sampled_from("<>&;#\"'/ abAB!-=[]5x\ud83d\ude00\u202e\0\n"), max_size=60)


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        ("  two\n\t words ", "two words"),
        ("a\0b\x07c", "abc"),
        ("\ud83d\ude00 and \ud83d", "😀 and"),
        ("safe\u202egnp.exe\u2066", "safegnp.exe"),
        ("\ufeffไทย", "ไทย"),
        ("non\N{NO-BREAK SPACE}breaking", "non breaking"),
        ("👩\u200d👩\u200d👧", "👩\u200d👩\u200d👧"),
    ],
)
def test_what_is_no_text_is_removed(written: str, shown: str):
    assert text.clean(written) == shown


@pytest.mark.parametrize(
    ("markup", "shown"),
    [
        ("<b>Bot</b> &amp; C", "Bot & C"),
        ("Intent: <a> as <area> & more", "Intent: <a> as <area> & more"),
        ("<test>", "<test>"),
        ("List<String> in Java", "List<String> in Java"),
        ("Py<i>thon</i>", "Python"),
        ("one<br/>two", "one two"),
        ('<a href="https://e.test/?a=1>2">link</a> text', "link text"),
        ("<p>Title</p>", "Title"),
        ("1 < 2 &lt; 3", "1 < 2 < 3"),
        ("AT&T &nosuch; &copy;", "AT&T &nosuch; ©"),
        ("&#8217;&#x2019;&#146;", "\u2019\u2019\u2019"),
        ("&#55357;&#56832; &#1114112;", "😀 \ufffd"),
        ("<!-- hidden -->shown", "shown"),
        ("safe<script>no()</script> title", "safe title"),
        ("what <script> does", "what <script> does"),
        ("", ""),
    ],
)
def test_a_title_of_html_is_read_as_a_person_would(markup: str, shown: str):
    assert text.title_of_html(markup) == shown


@pytest.mark.parametrize(
    ("markup", "shown"),
    [
        ("<p>One</p><p>Two</p>", "One Two"),
        ("<ul><li>a<li>b</ul>", "a b"),
        ("Py<b>thon</b>", "Python"),
        ("<script>alert('<p>no</p>')</script>yes", "yes"),
        ("<style>p {}</style>yes<STYLE>p{}</STYLE>", "yes"),
        ('<img alt="a > b" src=x>after', "after"),
        ('<p><img src=x alt="Only &amp; a picture"></p>', "Only & a picture"),
        ("<img src=x>", ""),
        ("budget < 500 &amp; more", "budget < 500 & more"),
        ("unclosed <a href='x", "unclosed <a href='x"),
        ('it<b title="x>y</b>', "ity"),
        ("<!-- never closed <p>text", ""),
    ],
)
def test_a_description_of_html_is_read_as_a_person_would(markup: str, shown: str):
    assert text.text_of_html(markup) == shown


def test_a_long_title_is_cut_between_characters_as_read():
    cut = text.title("ที่" * 2000)

    assert len(cut) <= text.TITLE_LIMIT
    assert cut.rstrip("…") == "ที่" * (len(cut.rstrip("…")) // 3)


def test_a_long_text_is_cut():
    assert len(text.text_of_html("<p>word</p>" * 10_000)) == text.TEXT_LIMIT


@pytest.mark.parametrize(
    ("plain", "first"),
    [("", ""), ("few words", "few words"), ("w " * 50, "w w w w w w w w w w w w …")],
)
def test_the_first_words_name_what_has_no_title(plain: str, first: str):
    assert text.first_words(plain) == first


@pytest.mark.parametrize("unit", ["<", "<a ", '<a "', "<a '\"", "<!--", "&", "&#1;", "<b>", '"">', "<script>"])
def test_hostile_markup_is_read_to_its_end(unit: str):
    markup = unit * (200_000 // len(unit))

    assert len(text.text_of_html(markup)) <= text.TEXT_LIMIT
    assert len(text.title_of_html(markup)) <= text.TITLE_LIMIT


@given(PRINTED | st.text())
def test_whatever_comes_out_can_be_stored_and_sent(written: str):
    for read in (text.title, text.title_of_html, text.text, text.text_of_html):
        shown = read(written)

        shown.encode()
        assert "\0" not in shown
        assert shown == " ".join(shown.split())
