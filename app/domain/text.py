"""Plain text out of what sources publish: titles, descriptions, character references.

Everything here reads its input once from front to back: a source decides what comes, and may mean harm.
"""

from __future__ import annotations

import re
from html.entities import html5
from typing import TYPE_CHECKING

from app.domain.textcut import shorten

if TYPE_CHECKING:
    from collections.abc import Iterator

TITLE_LIMIT = 1_000
TEXT_LIMIT = 10_000
TITLE_WORDS = 12
"""How many words of its text name an item that has no title."""

MARKUP_LIMIT = 500_000
"""Characters of one description that are looked at: the rest cannot reach the first 10,000 of its text."""

REPLACEMENT = "\N{REPLACEMENT CHARACTER}"
LAST_CODE_POINT = 0x10FFFF
C1_CONTROLS = range(0x80, 0xA0)
"""Referred to, they mean windows-1252, as browsers read them (HTML standard, "numeric character reference end")."""

SURROGATE_PAIR = re.compile("[\ud800-\udbff][\udc00-\udfff]")
UNWANTED = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x84\x86-\x9f"  # control characters
    "\ud800-\udfff\ufdd0-\ufdef\ufffe\uffff"  # lone surrogates and what is no character
    "\ufeff\u202a-\u202e\u2066-\u2069]"  # byte order marks; overrides that turn what follows around
)
REFERENCE = re.compile(
    r"(?P<numeric>(?:&\#(?:[0-9]{1,20}|[xX][0-9A-Fa-f]{1,16});)++)|&(?P<name>[A-Za-z][A-Za-z0-9]{0,31});"
)
NUMBER = re.compile(r"&#(?:([0-9]{1,20})|[xX]([0-9A-Fa-f]{1,16}));")

TAG_NAME = re.compile(r"</?([A-Za-z][^ \t\r\n/>]{0,63})")
TAG_MARK = re.compile("[>\"']")

# ruff: noqa: SIM905 - lists of words read better as words
INLINE = frozenset(
    "a abbr acronym b bdi bdo big br cite code del dfn em font i img ins kbd mark nobr q s samp small span strike"
    " strong sub sup tt u var wbr".split()
)
BLOCK = frozenset(
    "address article aside blockquote body br center dd div dl dt fieldset figcaption figure footer form h1 h2 h3 h4"
    " h5 h6 head header hr html iframe img li main nav ol option p pre section select table tbody td tfoot th thead"
    " title tr ul video".split()
)
"""Between these two words part; an inline tag in the middle of a word leaves it whole."""

PICTURES = 5
ALTERNATIVE = re.compile(r"""\balt\s{0,9}=\s{0,9}(?:"([^"]*)"|'([^']*)')""", re.IGNORECASE)

UNSEEN = frozenset({"script", "style", "template", "noscript"})


def clean(text: str) -> str:
    """The text on one line, without characters that are no text: it can be stored, sent and shown."""
    if not text.isascii():
        text = SURROGATE_PAIR.sub(lambda pair: pair[0].encode("utf-16-le", "surrogatepass").decode("utf-16-le"), text)
    return " ".join(UNWANTED.sub("", text).split())


def title(text: str) -> str:
    """A title out of plain text, at most 1,000 characters."""
    return _limited(clean(text[: TITLE_LIMIT * 20]), TITLE_LIMIT)


def title_of_html(markup: str) -> str:
    """A title out of HTML: inline tags go, references become characters, and what only looks like a tag stays.

    `<b>Bot</b> &amp; C` is "Bot & C"; `from <a> to <area>` stays, as nothing closes that `<a>`.
    """
    markup = markup[: TITLE_LIMIT * 20]
    closed = {name for name, tag in _tags(markup) if tag.startswith("</")}
    kept: list[str] = []
    hidden = ""
    for name, piece in _pieces(markup):
        if hidden:
            hidden = "" if name == hidden and piece.startswith("</") else hidden
        elif name in UNSEEN & closed and not piece.startswith("</"):
            hidden = name
        elif name in INLINE and (name in closed or name in {"br", "img", "wbr"} or len(piece) > len(name) + 2):
            kept.append(" " if name in BLOCK else "")
        elif name in BLOCK and name in closed | {"hr", "p"}:
            kept.append(" ")
        else:
            kept.append(unescape(piece))
    return _limited(clean("".join(kept)), TITLE_LIMIT)


def text(plain: str) -> str:
    """A description out of plain text, on one line, at most 10,000 characters."""
    return _limited(clean(plain[:MARKUP_LIMIT]), TEXT_LIMIT)


def text_of_html(markup: str) -> str:
    """What a reader of this HTML sees, on one line, at most 10,000 characters.

    Where it is nothing but pictures, what they say instead of themselves.
    """
    kept: list[str] = []
    pictures: list[str] = []
    hidden = ""
    for name, piece in _pieces(markup[:MARKUP_LIMIT]):
        closing = piece.startswith("</")
        if hidden:
            hidden = "" if closing and name == hidden else hidden
        elif not name:
            kept.append(unescape(piece))
        elif name in UNSEEN and not closing and not piece.endswith("/>"):
            hidden = name
        elif name in BLOCK:
            kept.append(" ")
            if name == "img" and len(pictures) < PICTURES:
                pictures.append(piece[:TITLE_LIMIT])
    return _limited(clean("".join(kept)) or clean(" ".join(map(_alternative, pictures))), TEXT_LIMIT)


def first_words(plain: str) -> str:
    """The beginning of a text, for an item without a title; empty when there is no text."""
    words = plain[:TITLE_LIMIT].split()
    more = " …" if len(words) > TITLE_WORDS else ""
    return shorten(" ".join(words[:TITLE_WORDS]) + more, limit=120, characters=240)


def unescape(markup: str) -> str:
    """HTML's references become characters; what is none, like `AT&T` or `&nosuch;`, stays as it is."""
    if "&" not in markup:
        return markup
    return REFERENCE.sub(_character, markup)


def code_points(run: str) -> Iterator[int]:
    """The characters that a run of numeric references means.

    Two that are the halves of a pair are one character; what XML cannot hold is U+FFFD.
    """
    high = 0
    for found in NUMBER.finditer(run):  # not findall: a million of them would be held at once
        point = int(found[1]) if found[1] else int(found[2], 16)
        if high and 0xDC00 <= point <= 0xDFFF:  # noqa: PLR2004 - the second half of a pair
            yield 0x10000 + ((high - 0xD800) << 10) + (point - 0xDC00)
            high = 0
            continue
        if high:
            yield ord(REPLACEMENT)
        high = point if 0xD800 <= point <= 0xDBFF else 0  # noqa: PLR2004 - the first half of one
        if not high:
            yield _valid(point)
    if high:
        yield ord(REPLACEMENT)


def tag_name(tag: str) -> str:
    """The name of the tag that begins here, in lower case; empty when it is none.

    A comment, a declaration and a processing instruction have the name "!".
    """
    if tag[1:2] in {"!", "?"}:
        return "!"
    found = TAG_NAME.match(tag)
    return found[1].lower() if found else ""


def tag_end(markup: str, start: int, stop: int) -> int:
    """Where the tag at `start` ends: past its `>`, before `stop`; -1 when it does not. A quoted `>` is no end."""
    at = start + 1
    while found := TAG_MARK.search(markup, at, stop):
        if found[0] == ">":
            return found.end()
        partner = markup.find(found[0], found.end(), stop)
        at = partner + 1 if partner >= 0 else found.end()  # a quote that nothing closes is just a character
    return markup.find(">", start, stop) + 1 or -1


def _pieces(markup: str) -> Iterator[tuple[str, str]]:
    """Tags with their names, and between them texts, with an empty name."""
    at = 0
    while at < len(markup):
        start = markup.find("<", at)
        if start < 0:
            start = len(markup)
        if start > at:
            yield "", markup[at:start]
        if start == len(markup):
            return
        if markup.startswith("<!--", start):
            end = markup.find("-->", start)
            end = len(markup) if end < 0 else end + 3
            at = end
            continue
        stop = markup.find("<", start + 1)
        stop = len(markup) if stop < 0 else stop
        name = tag_name(markup[start : start + 66])
        end = tag_end(markup, start, stop) if name else -1
        if end < 0:
            yield "", markup[start:stop]
            at = stop
            continue
        yield name, markup[start:end]
        at = end


def _alternative(picture: str) -> str:
    found = ALTERNATIVE.search(picture)
    return unescape(found[1] or found[2] or "") if found else ""


def _tags(markup: str) -> Iterator[tuple[str, str]]:
    return ((name, piece) for name, piece in _pieces(markup) if name)


def _character(found: re.Match[str]) -> str:
    if found["numeric"]:
        return "".join(map(chr, code_points(found["numeric"])))
    return html5.get(found["name"] + ";", found[0])


def _valid(point: int) -> int:
    if point in C1_CONTROLS:
        character = bytes([point]).decode("windows-1252", "replace")
        return ord(character)
    control = point < ord(" ") and chr(point) not in "\t\n\r"
    forbidden = control or point > LAST_CODE_POINT or 0xD800 <= point <= 0xDFFF or point in {0xFFFE, 0xFFFF}  # noqa: PLR2004
    return ord(REPLACEMENT) if forbidden else point


def _limited(plain: str, limit: int) -> str:
    # Cut first: finding the clusters of a whole book takes long, and only those near the limit matter.
    return shorten(plain[: limit + 100], limit=limit, characters=limit)
