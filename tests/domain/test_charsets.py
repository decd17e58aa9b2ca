from __future__ import annotations

import codecs

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.domain.charsets import codec_of, decode

THAI = "รับเขียนบอทไลน์ ราคา 500 €"
RUSSIAN = "Нужен разработчик на Python"


def declared(label: str, text: str) -> str:
    return f'<?xml version="1.0" encoding="{label}"?>\n<t>{text}</t>'


@pytest.mark.parametrize("label", ["windows-874", "TIS-620", "iso-8859-11", "Windows-874"])
def test_thai_is_read_under_each_of_its_labels(label: str):
    assert THAI in decode(declared(label, THAI).encode("cp874")).text


@pytest.mark.parametrize(
    ("body", "content_type", "shown"),
    [
        (declared("windows-1251", RUSSIAN).encode("cp1251"), "", RUSSIAN),
        (b"\n " + declared("windows-1251", RUSSIAN).encode("cp1251"), "", RUSSIAN),
        (declared("windows-1251", THAI).encode(), "", THAI),
        (declared("utf-8", RUSSIAN).encode("cp1251"), "text/xml; charset=windows-1251", RUSSIAN),
        (f"<t>{RUSSIAN}</t>".encode("cp1251"), 'text/xml; charset="Windows-1251"', RUSSIAN),
        (declared("utf-8", "“quoted”").encode(), "application/xml", "“quoted”"),
        (declared("utf-8", "café").encode(), "text/xml", "café"),
        (declared("iso-8859-1", "“café”").encode("cp1252"), "", "“café”"),
        (codecs.BOM_UTF8 + declared("windows-1251", THAI).encode(), "", THAI),
        (declared("utf-16", THAI).encode("utf-16"), "", THAI),
        (codecs.BOM_UTF16_BE + declared("utf-16", THAI).encode("utf-16-be"), "", THAI),
        (declared("utf-16", THAI).encode("utf-16-le"), "", THAI),
        (declared("utf-32", THAI).encode("utf-32"), "", THAI),
        (declared("gb2312", "不归移民漫画系列镕").encode("gb18030"), "", "不归移民漫画系列镕"),
        (declared("shift_jis", "①急募").encode("cp932"), "", "①急募"),
        (declared("iso-2022-jp", "急募").encode("iso2022_jp"), "", "急募"),
        (declared("big5", "台北").encode("big5"), "", "台北"),
        (declared("no-such", "plain").encode(), "", "plain"),
        (declared("no-such", RUSSIAN * 5).encode("cp1251"), "", RUSSIAN),
        (f"<t>{THAI * 5}</t>".encode("cp874"), "", THAI),
    ],
)
def test_the_text_is_read_whatever_is_declared(body: bytes, content_type: str, shown: str):
    assert shown in decode(body, content_type).text


def test_a_lie_is_told():
    assert (
        decode(declared("windows-1251", THAI).encode()).warning == "the document is UTF-8, though it says windows-1251"
    )


def test_one_bad_byte_does_not_spoil_the_rest():
    decoded = decode(THAI.encode() + b"\xff")

    assert decoded.text == THAI + "\ufffd"
    assert decoded.warning == "some bytes were not valid UTF-8 and were replaced"


@pytest.mark.parametrize("label", ["", "utf-9", "x-user-defined", "replacement"])
def test_an_unknown_label_has_no_codec(label: str):
    assert codec_of(label) == ""


@given(st.binary(max_size=200), st.sampled_from(["", "text/xml; charset=big5", "a; charset=utf-16", "charset="]))
def test_any_bytes_are_some_text(body: bytes, content_type: str):
    assert isinstance(decode(body, content_type).text, str)
