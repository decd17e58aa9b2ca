"""Bytes of a document to text, whatever its declaration says.

    byte order mark -> UTF-8 if it is valid UTF-8 and not just ASCII -> what HTTP says -> what the document says
        -> UTF-8 with a few broken places -> the most likely one

A declaration is asked late: more of them lie than valid UTF-8 happens by chance.
"""

from __future__ import annotations

import codecs
import re
from dataclasses import dataclass

BYTE_ORDER_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),  # before UTF-16, whose mark begins the same
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
UNMARKED_WIDE = ((b"<\x00?\x00", "utf-16-le"), (b"\x00<\x00?", "utf-16-be"), (b"<\x00\x00\x00", "utf-32-le"))
"""A document that begins so needs no mark (XML 1.0, appendix F)."""

DECLARED = re.compile(rb"""^\s{0,100}<\?xml[^>]{0,200}?encoding\s{0,9}=\s{0,9}["']([\w.:-]{1,40})["']""")
CHARSET = re.compile(r"""charset\s{0,9}=\s{0,9}["']?([\w.:-]{1,40})""", re.IGNORECASE)

WIDER = {"gbk": "gb18030", "shift_jis": "cp932", "euc-kr": "cp949", "big5": "big5hkscs"}
"""Python's codecs by these names know fewer characters than the encodings that browsers read under them."""

GUESS_BYTES = 65_536
FEW = 0.1
"""Broken places by non-ASCII characters. Above, it is not UTF-8: legacy Thai or Cyrillic gives more than half."""


@dataclass(frozen=True, slots=True)
class Decoded:
    """The text, and what was odd about its encoding, if anything."""

    text: str
    warning: str | None = None


def decode(body: bytes, content_type: str = "") -> Decoded:
    """The text of a document that came with this Content-Type. Never fails: what cannot be read is U+FFFD."""
    for mark, encoding in BYTE_ORDER_MARKS:
        if body.startswith(mark):
            return Decoded(body[len(mark) :].decode(encoding, "replace"))
    for beginning, encoding in UNMARKED_WIDE:
        if body.startswith(beginning):
            return Decoded(body.decode(encoding, "replace"))
    said = [label[1] for label in [CHARSET.search(content_type)] if label]
    said += [label[1].decode("ascii") for label in [DECLARED.match(body)] if label]
    if (text := _strictly(body, "utf-8")) is not None and not (_shifted(said) and body.isascii()):
        return Decoded(text, None if body.isascii() else _lie(said))
    for label in said:
        encoding = codec_of(label)
        text = _strictly(body, encoding) if encoding not in {"", "utf-8"} else None
        if text is not None:
            return Decoded(text)
    return _guessed(body)


def codec_of(label: str) -> str:
    """Python's codec for an encoding's label as browsers know it; empty when they do not.

    Their table (encoding.spec.whatwg.org) knows `windows-874`, `tis-620` and `iso-8859-11` as one, Python does not.
    """
    import webencodings  # noqa: PLC0415 - a cold start without such a document does without

    found = webencodings.lookup(label)
    if found is None or found.name in {"x-user-defined", "replacement"}:
        return ""
    name: str = found.name
    return WIDER.get(name, str(found.codec_info.name))


def _strictly(body: bytes, encoding: str) -> str | None:
    try:
        return body.decode(encoding)
    except (UnicodeError, LookupError):
        return None


def _shifted(labels: list[str]) -> bool:
    """Whether ASCII bytes may mean other characters: iso-2022-jp shifts with escapes."""
    return any(codec_of(label).startswith("iso2022") for label in labels)


def _lie(labels: list[str]) -> str | None:
    other = next((label for label in labels if codec_of(label) not in {"", "utf-8"}), None)
    return f"the document is UTF-8, though it says {other}" if other else None


def _guessed(body: bytes) -> Decoded:
    """UTF-8 with a few bad bytes, else what chardet takes for the most likely."""
    lenient = body.decode("utf-8", "replace")
    wide = len(lenient) - len(lenient.encode("ascii", "ignore"))
    broken = lenient.count("\N{REPLACEMENT CHARACTER}")
    if broken <= max(wide * FEW, 1) and broken < wide:
        return Decoded(lenient, "some bytes were not valid UTF-8 and were replaced")
    import chardet  # noqa: PLC0415 - the last resort

    found = chardet.detect(body[:GUESS_BYTES])["encoding"] or ""
    encoding = codec_of(found) or found.lower()
    for likely in (encoding, "cp1252", "latin-1"):
        if (text := _strictly(body, likely)) is not None:
            return Decoded(text, f"the encoding was guessed to be {likely}")
    raise AssertionError("Latin-1 reads any byte")
