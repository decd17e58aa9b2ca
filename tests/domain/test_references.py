from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.domain.references import ENTITY_BUDGET, MAX_REFERENCES, References


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        ("plain", "plain"),
        ("AT&T", "AT&T"),
        ("a &amp; b &lt; c &gt; &quot;&apos;", "a & b < c > \"'"),
        ("&amp;lt; &amp;#65; &amp;amp;", "&lt; &#65; &amp;"),
        ("&#38;lt; &#38;#65;", "&lt; &#65;"),
        ("&AMP;lt;", "&lt;"),
        ("&ldquo;quoted&rdquo; &nbsp;&copy;", "“quoted” \N{NO-BREAK SPACE}©"),
        ("&nosuch; &ampx", "&nosuch; &ampx"),
        ("&#55357;&#56832;", "😀"),
        ("&#xD83D;&#xDE00;", "😀"),
        ("&#55357; alone", "\ufffd alone"),
        ("&#1114112;&#0;&#x1F600;", "\ufffd\ufffd😀"),
        ("&#99999999999999999999;", "\ufffd"),
        ("&#146;s", "\u2019s"),
        ("&LT;b&GT;", "<b>"),
    ],
)
def test_references_become_characters(written: str, shown: str):
    assert References().resolve(written) == shown


@pytest.mark.parametrize(
    ("subset", "shown"),
    [
        (r'<!ENTITY x "a\b">', r"a\b"),
        ("<!ENTITY x 'it'>", "it"),
        ('<!ENTITY x "&y;"><!ENTITY y "1">', "&x;"),
        ('<!ENTITY x SYSTEM "file:///etc/passwd">', "&x;"),
        ('<!ENTITY x "<b>">', "&x;"),
        ('<!ENTITY % x "p">', "&x;"),
        ("<!ENTITY", "&x;"),
        ("", "&x;"),
    ],
)
def test_only_plain_texts_of_the_documents_own_are_known(subset: str, shown: str):
    references = References()
    references.declare(subset)

    assert references.resolve("&x;") == shown


def test_entities_cannot_make_a_document_huge():
    references = References()
    references.declare(f'<!ENTITY x "{"y" * 200}">')

    assert len(references.resolve("&x;" * 100_000)) < ENTITY_BUDGET + 100_000 * len("&x;")


def test_what_is_beyond_so_many_references_stays_as_it_is_written():
    references = References()

    shown = references.resolve("&copy; " * (MAX_REFERENCES + 2))

    assert shown.count("©") == MAX_REFERENCES
    assert references.resolve("&copy; &lt;") == "&copy; <"
    assert "too many references" in references.faults


@pytest.mark.parametrize(
    ("written", "faults"),
    [
        ("a &amp; b &#65;", set()),
        ("AT&T", {"stray & or <"}),
        ("&copy;", {"entities that are not declared"}),
    ],
)
def test_what_xml_forbids_is_told(written: str, faults: set[str]):
    references = References()
    references.resolve(written)

    assert references.faults == faults


@given(st.text())
def test_escaped_text_survives(written: str):
    escaped = written.replace("&", "&amp;").replace("<", "&lt;")

    assert References().resolve(escaped) == written
