"""Values that are found, or texts around what is found: `url`, and `https://x.example/jobs/{id}`.

Without braces the whole value is one expression. With braces it is a text: each `{…}` is an expression of its own,
`{{` and `}}` are braces.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import quote

if TYPE_CHECKING:
    from collections.abc import Sequence

MARK = re.compile(r"\{\{|\}\}|\{([^{}]*)\}|[{}]")

JOINTS = " \t-\u2010\u2011\u2012\u2013\u2014|,;:/·•"
"""What stands between two values, and is left over at an end where one of them is missing."""

IN_PATH = "/:@!$&'()*+,;=~%"
"""Left as they are in the path of an address (RFC 3986, section 3.3), and what is encoded already."""


@dataclass(frozen=True, slots=True)
class Template:
    """A parsed value."""

    literals: tuple[str, ...]
    """One more than there are expressions; empty where the whole value is one expression."""

    expressions: tuple[str, ...]


def parse(written: str) -> Template:
    """The value's parts. Raises ValueError, in words for the one who wrote it."""
    if not written.strip():
        raise ValueError("is empty; write an expression, or remove the line")
    if "{" not in written and "}" not in written:
        return Template((), (written.strip(),))
    literals, expressions = [""], []
    at = 0
    for mark in MARK.finditer(written):
        literals[-1] += written[at : mark.start()]
        at = mark.end()
        if mark[0] in {"{{", "}}"}:
            literals[-1] += mark[0][0]
        elif mark[1] is None:
            raise ValueError("has a brace without its partner; write {{ or }} for one that is meant as it stands")
        elif not mark[1].strip():
            raise ValueError("has nothing between { and }; write an expression there")
        else:
            expressions.append(mark[1].strip())
            literals.append("")
    literals[-1] += written[at:]
    return Template(tuple(literals), tuple(expressions))


def filled(literals: Sequence[str], values: Sequence[str]) -> str:
    """The text with the values in it; what only joined a missing one is dropped at the ends. Empty without any."""
    if not any(values):
        return "" if values else "".join(literals)
    text = "".join(part for pair in zip(literals, [*values, ""], strict=True) for part in pair)
    return text if all(values) else text.strip(JOINTS)


def filled_address(literals: Sequence[str], values: Sequence[str]) -> str:
    """The address with the values in it, each encoded for its place; empty where one is missing.

    A value at the beginning, or one that is a path itself (`/jobs/7?x=1`), is taken as it is.
    """
    if not all(values):
        return ""
    text = literals[0]
    for value, literal in zip(values, literals[1:], strict=True):
        if not text or (value.startswith("/") and "?" not in text):
            text += value
        else:
            text += quote(value, safe="" if "?" in text else IN_PATH)
        text += literal
    return text
