from __future__ import annotations

from xml.etree import ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.domain.markup import ENTITY_BUDGET, repair


def title(document: str) -> str | None:
    """What a strict parser reads once the document is repaired."""
    return ET.fromstring(repair(document).xml).findtext("title")


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        ("plain", "plain"),
        ("AT&T", "AT&T"),
        ("a &amp; b &lt; c", "a & b < c"),
        ("a < b", "a < b"),
        ("a <3 b", "a <3 b"),
        ("x <y z", "x <y z"),
        ("&ldquo;quoted&rdquo; &nbsp;&copy;", "“quoted” \N{NO-BREAK SPACE}©"),
        ("&nosuch; &ampx", "&nosuch; &ampx"),
        ("&#55357;&#56832;", "😀"),
        ("&#xD83D;&#xDE00;", "😀"),
        ("&#55357; alone", "\ufffd alone"),
        ("&#1114112;&#0;&#x1F600;", "\ufffd\ufffd😀"),
        ("&#99999999999999999999;", "\ufffd"),
        ("&#146;s", "\u2019s"),
        ("a\x08\ufffeb\0", "ab"),
        ("]]> is no end", "]]> is no end"),
        ("<![CDATA[a & b <c> &amp;]]>", "a & b <c> &amp;"),
        ("<![CDATA[&#55357;&#56832; &#65;]]>", "&#128512; &#65;"),
        ("be<!-- > ]]> & -->fore", "before"),
        ("<?php echo ?>x", "x"),
        ("&LT;b&GT;", "<b>"),
    ],
)
def test_a_strict_parser_reads_it(written: str, shown: str):
    assert title(f"<rss><title>{written}</title></rss>") == shown


def test_attributes_are_repaired_too():
    repaired = repair("""<rss><link href="?a=1&b=2&copy=3" title='a > "b"'/></rss>""")

    link = ET.fromstring(repaired.xml)[0]
    assert link.attrib == {"href": "?a=1&b=2&copy=3", "title": 'a > "b"'}


@pytest.mark.parametrize(
    ("document", "shown"),
    [
        (r'<!DOCTYPE rss [<!ENTITY x "a\b">]><rss><title>&x;</title></rss>', r"a\b"),
        ('<!DOCTYPE rss SYSTEM "a.dtd"><rss><title>&x;</title></rss>', "&x;"),
        ('<!DOCTYPE rss [<!ENTITY x "&y;"><!ENTITY y "1">]><rss><title>&x;</title></rss>', "&x;"),
        ('<!DOCTYPE rss [<!ENTITY x SYSTEM "file:///etc/passwd">]><rss><title>&x;</title></rss>', "&x;"),
        ('<!DOCTYPE rss [<!ENTITY x "<b>">]><rss><title>&x;</title></rss>', "&x;"),
        ('<?xml version="1.0" encoding="big5"?><rss><title>&nbsp;x</title></rss>', "\N{NO-BREAK SPACE}x"),
        ("Warning: something\n<rss><title>x</title></rss>", "x"),
        ("<rss><title>x</title></rss><script>if (a < b && c) {}</script>", "x"),
    ],
)
def test_what_stands_before_and_after_the_root_does_no_harm(document: str, shown: str):
    assert title(document) == shown


def test_entities_cannot_make_a_document_huge():
    declared = f'<!DOCTYPE rss [<!ENTITY x "{"y" * 200}">]>'

    repaired = repair(f"{declared}<rss><title>{'&x;' * 100_000}</title></rss>")

    assert len(repaired.xml) < ENTITY_BUDGET + 100_000 * len("&amp;x;") + 100


@pytest.mark.parametrize(
    ("document", "whole"),
    [
        ("<rss></rss>", True),
        ("<rss/>", True),
        ("<RSS></rss>", True),
        ("<rss></rss> <!-- cached -->", True),
        ("<feed><feed></feed></feed>", True),
        ("<feed><feed></feed>", False),
        ("<rss><a></a>", False),
        ("<rss><![CDATA[ </rss>", False),
        ("<rss><!-- </rss>", False),
        ("<rss><a title='</rss>", True),
        ("<rss></rss", False),
        ("<rss", False),
        ("", False),
    ],
)
def test_a_missing_end_is_seen(document: str, whole: bool):  # noqa: FBT001
    assert repair(document).whole is whole


@pytest.mark.parametrize(
    "unit",
    [
        "<![CDATA[",
        "<!--",
        "<?",
        "<!DOCTYPE [",
        "<",
        "<a ",
        '<a "',
        "<a '\"",
        "&",
        "&#55357;",
        "&amp",
        "]]>",
        "<a>",
        "[",
    ],
)
def test_a_hostile_document_is_read_to_its_end(unit: str):
    document = "<rss>" + unit * (200_000 // len(unit))

    assert not repair(document).whole


@given(st.text(alphabet=st.sampled_from("<>&;#\"'/ abr!-=[]?5x\0"), max_size=80))
def test_any_document_is_repaired_somehow(document: str):
    assert repair(document).xml.startswith("<?xml")


@given(st.text(max_size=50))
def test_escaped_text_survives(written: str):
    escaped = written.replace("&", "&amp;").replace("<", "&lt;")

    again = repair(f"<rss><title>{escaped}</title></rss>").xml
    assert repair(again.partition("\n")[2]).xml == again
