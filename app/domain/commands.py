"""Commands in a chat: how they are written, in the chat's language or in English.

    watch python, ไลน์บอท     /watch@gigs_bot python     ติดตาม ไพธอน     theo dõi python     mute 2h     latest 3

Case, width and white space do not matter. What stands behind a command that takes nothing makes it an ordinary text:
"help" is one, "help me, please" is none.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Literal

from app.domain import digests
from app.domain.commandwords import aliases_of, durations_of, off_of
from app.domain.folding import fold, spelt
from app.domain.textcut import well_formed

if TYPE_CHECKING:
    from app.domain.commandwords import Name

MOST_PHRASES = 10
"""Of one watch."""

PHRASE_LENGTH = 100
"""Characters of a phrase."""

MOST_WATCHES = 20
"""Of one person."""

MOST_LATEST = 5

LONGEST_MUTE = timedelta(days=30)

TEXT_LENGTH = 2000
"""Characters. No command is longer: ten phrases of a hundred characters."""

ALONE = frozenset({"help", "list", "status"})
"""Commands that take nothing."""

WORD = re.compile(r"\S+")
AT_NAME = re.compile(r"@[A-Za-z0-9_]+$")
INVISIBLE = re.compile("[\u00ad\u2060\ufeff\ufe0f]")
NARROW_SPACE = "\u200b"
"""Between words of scripts without spaces."""

END = ".!?。！？။၊…"  # noqa: RUF001 - as they are typed
COMMA = re.compile("[,、،၊;\n]")
QUOTES = "\"'“”„«»「」‘’"  # noqa: RUF001 - as they are typed
COUNT_AND_UNIT = re.compile(r"(\d{1,6})\s*(\D*)")


@dataclass(frozen=True, slots=True)
class Command:
    """What somebody asks for."""

    name: Name

    rest: str = ""
    """What stands behind the command's word, as it was written."""


class TooMuch(Exception):
    """A watch that is beyond a limit."""

    def __init__(self, what: Literal["many", "long"], most: int) -> None:
        super().__init__(what)
        self.what = what
        self.most = most


def parse(text: str, language: str) -> Command | None:
    """The command that a text is; None: it is an ordinary one. Whether it can be followed is said by its reply."""
    if len(text) > TEXT_LENGTH:
        return None
    plain = INVISIBLE.sub("", unicodedata.normalize("NFKC", well_formed(text))).replace(NARROW_SPACE, " ").strip()
    plain = plain.rstrip(END) if "\n" not in plain else plain
    slashed = plain.startswith("/")
    words = list(WORD.finditer(plain.removeprefix("/")))
    written = [fold(_bare(found[0], slashed=slashed and place == 0)) for place, found in enumerate(words)]
    for name, alias in aliases_of(language):
        length = len(alias)
        if tuple(written[:length]) == alias:
            rest = plain.removeprefix("/")[words[length - 1].end() :].strip() if words else ""
            return Command(name, spelt(rest)) if _takes(name, rest) else None
    return None


def phrases_of(rest: str) -> tuple[str, ...]:
    """The phrases of a watch, each once, in one line and without what cannot be seen; none: nothing was written.

    Raises:
        TooMuch: there are too many of them, or one is too long.
    """
    phrases: dict[str, str] = {}
    for written in COMMA.split(rest):
        phrase = " ".join(written.split()).strip(QUOTES).strip()
        if len(phrase) > PHRASE_LENGTH:
            raise TooMuch("long", PHRASE_LENGTH)
        shown = digests.plain_title(phrase)
        if fold(shown):
            phrases.setdefault(fold(shown), shown)
    if len(phrases) > MOST_PHRASES:
        raise TooMuch("many", MOST_PHRASES)
    return tuple(phrases.values())


def number_of(rest: str) -> int | None:
    """The number that this is; None: it is none."""
    written = rest.strip().removeprefix("#").rstrip(".)").strip()
    return int(written) if written.isdecimal() and len(written) <= len("999999") else None


def latest_of(rest: str) -> int:
    """How many items are asked for."""
    asked = number_of(rest)
    return MOST_LATEST if asked is None else min(max(asked, 1), MOST_LATEST)


def mute_of(rest: str, language: str) -> timedelta | None:
    """For how long; nothing: not any more. None: it does not say.

    At most a month: whoever wants more watches nothing.
    """
    asked = fold(rest)
    if asked in off_of(language):
        return timedelta(0)
    found = COUNT_AND_UNIT.fullmatch(asked)
    if found is None:
        return None
    unit = durations_of(language).get(found[2].strip())
    if unit is None or not int(found[1]):
        return None
    return min(int(found[1]) * unit, LONGEST_MUTE)


def _bare(word: str, *, slashed: bool) -> str:
    """Without the bot's name, by which commands in groups are told apart, and without a colon."""
    return (AT_NAME.sub("", word) if slashed else word).rstrip(":")


def _takes(name: Name, rest: str) -> bool:
    if name in ALONE:
        return not rest
    return name != "latest" or not rest or number_of(rest) is not None
