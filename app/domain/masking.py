"""Takes secrets out of texts: the last line, behind errors that name hosts and no addresses in the first place."""

from __future__ import annotations

import base64
import re
from typing import TYPE_CHECKING
from urllib.parse import quote, quote_plus

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

LEAST_LENGTH = 6
"""Characters. What is shorter stands in ordinary words."""

A_WORD = 12
"""Letters alone, and fewer than this: a password `postgres` is no part of `postgresql`."""

MASKED = "[secret]"


class Mask:
    """Replaces each of the secrets, also as an address or JSON spells it."""

    __slots__ = ("_escaped", "_pattern", "_wanted")

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        known = {secret.strip() for secret in secrets}
        spelt = {
            form for secret in known for form in (secret, quote(secret, safe=""), quote(secret), quote_plus(secret))
        }
        wanted = sorted((form for form in spelt if len(form) >= LEAST_LENGTH), key=lambda form: (-len(form), form))
        self._wanted = wanted
        self._pattern = re.compile("|".join(map(_expression, wanted)))
        longest = sorted((one for one in known if len(one) >= LEAST_LENGTH), key=lambda one: (-len(one), one))
        self._escaped = re.compile("|".join(map(_spelt, longest))) if longest else None

    def __call__(self, text: str) -> str:
        """The text without them."""
        if self._escaped is not None and "\\" in text:  # as JSON spells it, which most texts do not
            text = self._escaped.sub(MASKED, text)
        for form in self._wanted:  # nearly always none is there, and this is ten times as fast as the pattern
            if form in text:
                return self._pattern.sub(MASKED, text)
        return text

    def struck(self, text: str, *, known: Iterable[str]) -> str:
        """The same of a text for somebody who has said `known`: but for what they have said themselves.

        So an answer that repeats a guess looks alike whether that was right or wrong.
        """
        told = "\n".join(known)
        for pattern in filter(None, (self._escaped, self._pattern if self._wanted else None)):
            text = pattern.sub(lambda found: found[0] if found[0] in told else MASKED, text)
        return text


def spelling(secret: str) -> str:
    """A pattern of a secret as it stands, and however JSON or an address escapes its characters."""
    return "".join(map(_character, secret))


def _character(letter: str) -> str:
    units = letter.encode("utf-16-be", "surrogatepass").hex()
    escaped = "".join(rf"\\{{1,4}}u(?i:{units[at : at + 4]})" for at in range(0, len(units), 4))
    percent = "".join(f"%(?i:{byte:02x})" for byte in letter.encode("utf-8", "surrogatepass"))
    plain = re.escape(letter)
    before = "" if letter.isalnum() else r"\\{0,4}"
    return f"(?:{before}{plain}|{escaped}|{percent})"


def credentials(value: str) -> Iterator[str]:
    """What must not be seen of a header's value: it, the word behind its scheme, and what `Basic` hides in that."""
    yield value
    scheme, blank, word = value.rpartition(" ")
    if not blank:
        return
    yield word
    if scheme.strip().lower() != "basic":
        return
    try:
        pair = base64.b64decode(word + "=" * (-len(word) % 4), validate=True).decode()
    except ValueError:  # no base64, or no text in it
        return
    user, _, password = pair.partition(":")
    yield from (pair, user, password)


def _spelt(secret: str) -> str:
    return rf"\b{spelling(secret)}\b" if secret.isalpha() and len(secret) < A_WORD else spelling(secret)


def _expression(secret: str) -> str:
    escaped = re.escape(secret)
    return rf"\b{escaped}\b" if secret.isalpha() and len(secret) < A_WORD else escaped


NO_MASK = Mask()
