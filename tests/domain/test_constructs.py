from __future__ import annotations

from base64 import b64encode

import pytest

from app.domain.constructs import MAX_MARKS, Construct, Texts, looks_like_html


def construct(written: str, usual: str = "text/plain", *, atom: bool = False, **attributes: str) -> Construct:
    found = Construct.of(attributes, usual, atom=atom)
    found.add(written)
    return found


@pytest.mark.parametrize(
    ("read", "title"),
    [
        (construct("A <b> B"), "A <b> B"),
        (construct("<b>A</b> B"), "A B"),
        (construct("A &amp; B"), "A & B"),
        (construct("A &amp; B", atom=True), "A &amp; B"),
        (construct("A &amp; B", atom=True, type="html"), "A & B"),
        (construct("A &amp; B", atom=True, type="text/html; charset=utf-8"), "A & B"),
        (construct("<b>A</b>", atom=True, type="text"), "<b>A</b>"),
        (construct("A < B & C", type="xhtml"), "A < B & C"),
        (construct(b64encode("ไทย &lt;".encode()).decode(), mode="base64"), "ไทย <"),
        (construct(b64encode(b"<b>A</b>").decode(), type="application/octet-stream"), "A"),
        (construct("no base64 at all", mode="base64"), "no base64 at all"),
    ],
)
def test_a_title_is_read_by_what_it_says_it_is(read: Construct, title: str):
    assert Texts().title(read) == title


@pytest.mark.parametrize(
    ("read", "description"),
    [
        (construct("<p>A</p><p>B", "text/html"), "A B"),
        (construct("A < B", "text/plain"), "A < B"),
        (construct("<p>A</p>", "text/plain", type="plain"), "A"),
        (construct("<p>A</p>", atom=True, type="text"), "<p>A</p>"),
        (construct("AAAA", type="image/png"), ""),
    ],
)
def test_a_description_is_read_by_what_it_says_it_is(read: Construct, description: str):
    assert Texts().description(read) == description


def test_tags_of_the_document_are_tags_of_the_text():
    read = construct("A & ", "text/html")
    for tag in ("<b>", "<xhtml:i class='x'>"):
        read.inline(tag[1:].partition(" ")[0].rstrip(">"), tag)
    read.add("B < C")
    read.closed("xhtml:i")
    read.closed("b")

    assert read.value() == ("A & <b><i>B &lt; C</i></b>", True)
    assert Texts().description(read) == "A & B < C"


@pytest.mark.parametrize(
    ("written", "html"),
    [
        ("<b>A</b>", True),
        ("A &amp; B", True),
        ("A &#8217; B", True),
        ("A & B <c>", False),
        ("from <a> to <area>", False),
        ("List<String></String>", False),
        ("A &nosuch; B", False),
        ("plain", False),
    ],
)
def test_only_what_can_be_nothing_else_looks_like_html(written: str, html: bool):  # noqa: FBT001
    assert looks_like_html(written) is html


def test_a_documents_markup_is_read_up_to_a_limit():
    texts = Texts()
    heavy = "text" + "<b>" * (MAX_MARKS // 2)

    assert [texts.of_html(heavy) for _ in range(4)] == ["text", "text", "", ""]
    assert texts.left_out == 2
