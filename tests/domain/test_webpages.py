from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.domain.webpages import base_of, content_type_of, is_challenge, title_of, unparsable


@pytest.mark.parametrize(
    ("body", "content_type", "found"),
    [
        (b'<meta charset="windows-874">', "text/html", "text/html; charset=windows-874"),
        (b"<META CHARSET=tis-620>", "", "text/html; charset=tis-620"),
        (b'<meta http-equiv="Content-Type" content="text/html; charset=big5">', "text/html", "text/html; charset=big5"),
        (b'<meta charset="windows-874">', "text/html; charset=utf-8", "text/html; charset=utf-8"),
        (b'<meta charset="utf-16">', "text/html", "text/html"),
        (b"<p>charset=big5</p>", "text/html", "text/html"),
        (b" " * 5000 + b"<meta charset=big5>", "text/html", "text/html"),
    ],
)
def test_a_page_may_declare_its_encoding(body: bytes, content_type: str, found: str):
    assert content_type_of(body, content_type) == found


@pytest.mark.parametrize(
    ("href", "base"),
    [
        (None, "https://e.test/a/b"),
        ("", "https://e.test/a/b"),
        ("c/", "https://e.test/a/c/"),
        ("//x.test/", "https://x.test/"),
        ("http://[", "https://e.test/a/b"),
    ],
)
def test_a_base_is_absolute(href: str | None, base: str):
    assert base_of(href, "https://e.test/a/b") == base


def test_a_title_tells_a_challenge_and_a_text_does_not():
    assert title_of("<TITLE id=x>\n Just\n a Moment... </TITLE>") == "just a moment..."
    assert is_challenge("<title>Just a moment...</title>")
    assert not is_challenge("<title>Jobs</title><p>just a moment")


@pytest.mark.parametrize(
    "document",
    [
        "<div>" * 30_000,
        "<DIV class='a>b'>" * 30_000,
        "<b><i>" * 15_000,
        "<div>" * 2_000 + "<p>x</p>" * 60_000,
        "<a " + "x " * 20_000 + ">",
        "<script></script><!-- -->" + "<div>" * 30_000,
    ],
)
def test_what_a_parser_would_take_long_for_is_not_given_to_it(document: str):
    assert unparsable(document)


@pytest.mark.parametrize(
    "document",
    [
        "<div></div>" * 30_000,
        "<li>x" * 30_000,
        "<tr><td>x" * 30_000,
        "<br><img src=x>" * 30_000,
        "<script>" + "<div>" * 30_000 + "</script>",
        "<script>" + "<div>" * 30_000,
        "<!--" + "<div>" * 30_000,
        "<tr><td><font>x</td>" * 3_000,
        f'<img src="data:image/png;base64,{"A" * 500_000}">',
        f'<path d="{"M 1 2 " * 50_000}">',
        "İ" * 100 + "<script>" + "<div>" * 30_000 + "</script>",
        "",
    ],
)
def test_what_is_merely_long_is_parsed(document: str):
    assert unparsable(document) is None


@given(st.lists(st.sampled_from(["<", ">", "<!--", "-->", "<script>", "</script>", "<div", "'", '"', "İ", "a "])))
def test_any_document_can_be_looked_at(parts: list[str]):
    assert unparsable("".join(parts)) is None


@pytest.mark.parametrize("closing", ["</p></rss>", "</item></content:encoded>", "</div>", "</table></td>"])
def test_end_tags_of_what_is_not_open_hide_no_nesting(closing: str):
    told = unparsable(("<channel><b>" + closing) * 30_000)

    assert told is not None


def test_lists_and_tables_of_thousands_are_no_nesting():
    rows = "<tr><td><a href='/j/1'>Job</a><td><span>500</span>" * 20_000
    menu = "<ul>" + "<li><a href='/'>x</a>" * 20_000 + "</ul>"

    assert unparsable(f"<html><body>{menu}<table>{rows}</table></body></html>") is None


def test_a_page_of_nothing_but_tags_is_refused():
    assert "400,000 tags" in str(unparsable("<br>" * 400_001))


def test_many_neighbours_are_refused_where_a_selector_counts_them():
    rows = "<table>" + "<tr><td>x" * 10_000

    assert unparsable(rows) is None
    assert ":nth-" in str(unparsable(rows, siblings_matter=True))
