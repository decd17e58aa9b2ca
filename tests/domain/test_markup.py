from __future__ import annotations

from xml.etree import ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.domain.markup import MAX_ATTRIBUTES, MAX_TAGS, Scan, attributes_of
from app.domain.references import References


class Told:
    """What a scan tells, written down."""

    def __init__(self) -> None:
        self.heard: list[str] = []
        self.references = References()

    def open(self, name: str, tag: str, *, alone: bool) -> bool:
        self.heard.append(f"<{name}{'/' * alone}>")
        return True

    def close(self, name: str) -> bool:
        self.heard.append(f"</{name}>")
        return name != "end"

    def leaf(self, name: str, tag: str, text: str) -> bool:
        self.open(name, tag, alone=False)
        self.text(text, literal=False)
        return self.close(name)

    def text(self, piece: str, *, literal: bool) -> None:
        self.heard.append(piece if literal else self.references.resolve(piece))


def heard(document: str) -> str:
    told = Told()
    Scan(document, told, told.references).run()
    return "".join(told.heard)


@pytest.mark.parametrize(
    ("document", "told"),
    [
        ("<a>b</a>", "<a>b</a>"),
        ("<A><B/></A>", "<a><b/></a>"),
        ("<a/>b</a>", "<a/>b</a>"),
        ("<a x='/'>b</a>", "<a>b</a>"),
        ("<a>b</a >c</A>", "<a>b</a>c</a>"),
        ("<dc:Date\n x='1'\n>", "<dc:date>"),
        ("a < b", "a < b"),
        ("a <3 b", "a <3 b"),
        ("x <y z", "x <y z"),
        ("<a title='>'>b", "<a>b"),
        ('<a title="it\'s > that">b', "<a>b"),
        ("<a title='never closed>b", "<a>b"),
        ("<a title='</a>", "<a title='</a>"),
        ("a\x08\ufffeb\0", "ab"),
        ("]]> is no end", "]]> is no end"),
        ("<![CDATA[a & b <c> &amp;]]>", "a & b <c> &amp;"),
        ("x<![CDATA[ never closed <a>", "x"),
        ("be<!-- > ]]> & -->fore", "before"),
        ("<?php echo ?>x", "x"),
        ("<!DOCTYPE rss>x", "x"),
        ('<!DOCTYPE rss [<!ENTITY x "y">]>&x;', "y"),
        ('<!DOCTYPE rss SYSTEM "a.dtd">&x;', "&x;"),
        ("<!DOCTYPE rss [<!ENTITY", ""),
        ("<a></end><b>", "<a></end>"),
        ("<a", "<a"),
        ("", ""),
    ],
)
def test_a_document_is_told_as_a_patient_reader_takes_it(document: str, told: str):
    assert heard(document) == told


def test_what_xml_forbids_is_noted():
    told = Told()

    Scan("a < b\0", told, told.references).run()

    assert told.references.faults == {"stray & or <", "forbidden characters"}


@pytest.mark.parametrize(
    ("tag", "attributes"),
    [
        ("<link>", {}),
        ("<link href='a'/>", {"href": "a"}),
        ("""<link href="?a=1&b=2&copy=3" title='a > "b"'/>""", {"href": "?a=1&b=2&copy=3", "title": 'a > "b"'}),
        ("<link HREF = http://e.test/a REL=self/>", {"href": "http://e.test/a", "rel": "self/"}),
        ("<link href='a' href='b'>", {"href": "a"}),
        ("<link disabled href='a'>", {"href": "a"}),
        ("<link href='&#x41;&amp;'>", {"href": "A&"}),
        ("<link xml:base='b' xmlns:x=\"y\">", {"xml:base": "b", "xmlns:x": "y"}),
    ],
)
def test_attributes_are_read_however_they_are_written(tag: str, attributes: dict[str, str]):
    assert attributes_of(tag, References()) == attributes


def test_a_tag_with_too_many_attributes_is_not_read_to_its_end():
    tag = "<link " + " ".join(f"a{n}='x'" for n in range(1_000)) + ">"

    assert len(attributes_of(tag, References())) == MAX_ATTRIBUTES


@pytest.mark.parametrize("unit", ["<a>", "<a/>", "</a>", "<", "<![CDATA[]]>", "<!---->", "<??>", "<!x>", "<a '>"])
def test_no_more_than_so_many_tags_are_read(unit: str):
    told = Told()
    scan = Scan(unit * (MAX_TAGS + 10), told, told.references)

    scan.run()

    assert scan.tags == MAX_TAGS + 1
    assert len(told.heard) <= MAX_TAGS + 1


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
    assert len(heard(unit * (200_000 // len(unit)))) <= 200_000


TREES = st.recursive(
    st.text(st.characters(exclude_categories=("Cs", "Cc")), max_size=10).map(lambda text: ("", text)),
    lambda inner: st.tuples(st.sampled_from(["a", "b", "c-d"]), st.lists(inner, max_size=4)),
    max_leaves=10,
)


def written(tree: tuple[str, object]) -> ET.Element:
    name, inner = tree
    element = ET.Element(name or "text")
    if isinstance(inner, str):
        element.text = inner.replace("\ufffe", "").replace("\uffff", "")
    else:
        element.extend(written(part) for part in inner)  # type: ignore[attr-defined]
    return element


@given(TREES)
def test_well_formed_xml_is_told_as_it_is(tree: tuple[str, object]):
    element = written(tree)
    document = ET.tostring(element, encoding="unicode", short_empty_elements=False)

    texts = "".join(piece.text or "" for piece in element.iter())
    told = heard(document)
    assert told.count("<") - texts.count("<") == 2 * len(list(element.iter()))
    assert all((piece.text or "") in told for piece in element.iter())


@given(st.text(alphabet=st.sampled_from("<>&;#\"'/ abr!-=[]?5x\0"), max_size=80))
def test_any_document_is_read_somehow(document: str):
    assert isinstance(heard(document), str)
