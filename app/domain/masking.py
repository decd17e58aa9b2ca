"""Takes secrets out of texts: the last line, behind errors that name hosts and no addresses in the first place."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING
from urllib.parse import quote, quote_plus

if TYPE_CHECKING:
    from collections.abc import Iterable

LEAST_LENGTH = 6
"""Characters. What is shorter stands in ordinary words."""

A_WORD = 12
"""Letters alone, and fewer than this: a password `postgres` is no part of `postgresql`."""

MASKED = "[secret]"


class Mask:
    """Replaces each of the secrets, also as an address spells it."""

    __slots__ = ("_pattern", "_wanted")

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        known = {secret.strip() for secret in secrets}
        spelt = {
            form for secret in known for form in (secret, quote(secret, safe=""), quote(secret), quote_plus(secret))
        }
        wanted = sorted((form for form in spelt if len(form) >= LEAST_LENGTH), key=lambda form: (-len(form), form))
        self._wanted = wanted
        self._pattern = re.compile("|".join(map(_expression, wanted)))

    def __call__(self, text: str) -> str:
        """The text without them."""
        for form in self._wanted:  # nearly always none is there, and this is ten times as fast as the pattern
            if form in text:
                return self._pattern.sub(MASKED, text)
        return text


def _expression(secret: str) -> str:
    escaped = re.escape(secret)
    return rf"\b{escaped}\b" if secret.isalpha() and len(secret) < A_WORD else escaped


NO_MASK = Mask()
