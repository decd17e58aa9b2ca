"""What is right: what a file says should come out of it, else what two readers of three agree on."""

from __future__ import annotations

import ast
import html
import re
from itertools import zip_longest
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

EXPECTED = re.compile(rb"Expect:\s*(.*)")
CHECK = re.compile(r"""entries\[(\d+)\]\[u?['"](title|link|id)['"]\] == u?('(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")""")
MARKUP = re.compile(r"</?[a-zA-Z][^<>]*>")
PLACES = {"title": 0, "link": 1, "id": 2}

Read = list[Any] | str


def checks(body: bytes) -> Iterator[tuple[int, int, str]]:
    """What feedparser's own tests expect of titles, links and ids: which entry, which of the three, which text."""
    said = EXPECTED.search(body)
    for entry, name, value in CHECK.findall(said[1].decode("utf-8", "replace") if said else ""):
        try:
            yield int(entry), PLACES[name], str(ast.literal_eval(value))
        except (SyntaxError, ValueError):
            continue


def kept(read: Read, expected: list[tuple[int, int, str]]) -> int:
    """How many of the checks are met."""
    if isinstance(read, str):
        return 0
    return sum(len(read) > entry and plain(read[entry][place]) == plain(value) for entry, place, value in expected)


def agreed(ours: Read, theirs: Read) -> bool:
    """Whether both have the same entries: as many, with the same titles, and the same links where both have one."""
    if isinstance(ours, str) or isinstance(theirs, str):
        return isinstance(ours, str) and isinstance(theirs, str)
    pairs = list(zip_longest(_named(ours), _named(theirs)))
    return all(a and b and a[0] == b[0] and (not a[1] or not b[1] or a[1] == b[1]) for a, b in pairs)


def _named(read: list[Any]) -> list[tuple[str, str]]:
    """Titles and links of what has both or one; an entry without a title is named in other ways by other readers."""
    return [(plain(title), (link or "").strip()) for title, link, _ in read if title and (title or link)]


def plain(written: str | None) -> str:
    """A title as text, since readers differ in whether they answer with text or with markup."""
    text = html.unescape(MARKUP.sub("", html.unescape(written or "")))
    return " ".join(MARKUP.sub("", text).split())
