"""Words and texts in the form in which they are compared, and whether one is in the other.

Words are compared without regard to case, width and the ways of writing one character. A hyphen between letters is a
space: `full-stack` and `full stack` are the same words.

A word is looked for whole: `go` is in "Go, Rust" and "golang/go", not in "Django". What counts is the character at
each end of it:

    letter or digit      its neighbour in the text is none, nor `++` or `#` behind it: `c` is not in "C++" or "C#"
    a symbol             its neighbour is anything but the same symbol: `c++` is in "C++20", `.net` in "ASP.NET"
    of a script without  its neighbour is anything: `บอท` is in "เขียนบอทไลน์", and `python` in "เขียนpython"
    spaces
"""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

SPACELESS = re.compile(
    "[\u0e00-\u0eff\u0f00-\u0fff\u1000-\u109f\ua9e0-\ua9ff\uaa60-\uaa7f\u1780-\u17ff\u19e0-\u19ff"  # Thai to Khmer
    "\u1950-\u19df\u1a20-\u1aaf\u3005-\u3007\u3040-\u30ff\u3100-\u312f\u31a0-\u31ff"  # Tai scripts, kana, bopomofo
    "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U0001aff0-\U0001b16f\U00020000-\U0003ffff]"  # Chinese characters
)

INVISIBLE = re.compile("[\u00ad\u034f\u061c\u180e\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufe00-\ufe0f\ufeff]")
SPACE_OF_NO_WIDTH = re.compile("(?<=[^\\W\u0e00-\u17ff])\u200b(?=[^\\W\u0e00-\u17ff])")
"""Between words of scripts without spaces it only tells where a line may end; elsewhere it parts words."""

MARK_BEFORE_TONE = re.compile("\u0e4d([\u0e48-\u0e4b]+)|\u0ecd([\u0ec8-\u0ecb]+)")
"""Thai and Lao "am" taken apart: its ring belongs after a tone mark, and is often typed before."""

HYPHEN = re.compile(r"(?<=[^\W_])[-\u2010-\u2015](?=[^\W_])")

ALIKE = str.maketrans(
    {
        "\u0131": "i",  # the Turkish i without a dot: its capital is the I of everybody else
        "♯": "#",
        "\u2019": "'",
        "\u2212": "-",
    }
)


def contains(folded: str, word: str) -> bool:
    """Whether a word or phrase is in a text that `fold` has made ready. A blank word is in none."""
    needle = fold(word)
    if not needle:
        return False
    at = folded.find(needle)
    while at >= 0:
        end = at + len(needle)
        if _begins_word(folded, at) and _ends_word(folded, end):
            return True
        at = folded.find(needle, at + 1)
    return False


def written(text: str) -> tuple[str, ...]:
    """The text as patterns look at it: as it is written, and where that differs, with one form for each character.

    Upper case and hyphens stay: a pattern says itself what it makes of them. `spelt` does the same to the pattern.
    """
    seen = INVISIBLE.sub("", SPACE_OF_NO_WIDTH.sub(" ", text))
    return tuple(dict.fromkeys((spelt(seen), spelt(unicodedata.normalize("NFKC", seen)))))


def spelt(text: str) -> str:
    """Each letter in one piece with its marks, the Thai and Lao "am" too. No sign becomes another one by it."""
    text = MARK_BEFORE_TONE.sub(_mark_behind, unicodedata.normalize("NFC", text))
    return text.replace("\u0e4d\u0e32", "\u0e33").replace("\u0ecd\u0eb2", "\u0eb3")


@lru_cache(maxsize=4096)
def _fold_word(word: str) -> str:
    return _folded(word)


def fold(text: str) -> str:
    """The text as it is compared: one form for each character, small letters, single spaces."""
    return _fold_word(text) if len(text) <= 100 else _folded(text)  # noqa: PLR2004 - words are short, and come again


def _folded(text: str) -> str:
    text = INVISIBLE.sub("", SPACE_OF_NO_WIDTH.sub(" ", text))
    text = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())
    text = MARK_BEFORE_TONE.sub(_mark_behind, text)
    text = text.translate(ALIKE).replace("i\u0307", "i")
    return " ".join(HYPHEN.sub(" ", text).split())


def _mark_behind(found: re.Match[str]) -> str:
    return f"{found[1]}\u0e4d" if found[1] else f"{found[2]}\u0ecd"


def _begins_word(text: str, at: int) -> bool:
    first, before = text[at], text[at - 1 : at]
    if not before or SPACELESS.match(first):
        return True
    if not _is_letter(first):
        return before != first
    return not _is_letter(before) or bool(SPACELESS.match(before))


def _ends_word(text: str, end: int) -> bool:
    last, after = text[end - 1], text[end : end + 1]
    if not after or SPACELESS.match(last):
        return True
    if not _is_letter(last):
        return after != last
    if after == "#" or text.startswith("++", end):
        return False
    return not _is_letter(after) or bool(SPACELESS.match(after))


def _is_letter(character: str) -> bool:
    """A letter, a digit, or a mark upon one. The underscore parts words, as in #python_dev."""
    return character.isalnum() or unicodedata.category(character).startswith("M")
