"""Which unknown items of a round are known ones that were edited, and when none of a round's keys can be believed.

    unknown --its link, of no other item-----------------------> the known one has a new key
       |
       |--nearly all are, and nearly all titles are known------> the brake: nothing is told
       |
       |--its title, on the same day, of no other item---------> the known one has a new key
       |
       `--> news

Only what the round does not list by its own key can be meant. An edit bears an earlier date: what was published since
the last round, and after the one that it looks like, is news. So is, under one link, what has an id and a title of its
own, unless its date is that of the known one or there is none and the title is a corrected one. In doubt it is news:
told twice is better than never.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from dataclasses import dataclass
from datetime import time, timedelta
from difflib import SequenceMatcher
from typing import TYPE_CHECKING

from app.domain import identity, links
from app.domain.folding import fold

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from datetime import datetime

    from app.domain.identity import Marked

FEW = 5
"""Items. Of fewer, that all of them are unknown says nothing about their keys."""

NEARLY_ALL_PERCENT = 80

DAY = timedelta(days=1)

SAME_TITLE_WITHIN = timedelta(days=2)
"""Dates of one item, where each round names another one; "Menu of Monday" is a new one each week."""

NUMBERS = re.compile(r"\d+")

CORRECTED = 0.85
"""How alike the last parts of two addresses are, of which one is the other without its mistake: `build-a-your-shop` and
`build-your-shop` are to 0.94, `python-dev-acme` and `python-dev-bolt` to 0.73."""

REWORDED = 0.6
"""How alike two titles are, and the words that they differ in, of which one is the other after an edit."""

WORDS = re.compile(r"\w+")

MOST_COMPARED = 60
"""Characters of what is compared: of twice as many it takes four times as long."""

MOST_COMPARISONS = 200
"""In a round, which blocks all others meanwhile: what is left after them is news."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Keyed:
    """An item of the round, under the key that it is to have."""

    key: str
    mark: Marked


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """An item that is known."""

    id: int
    key: str
    title: str
    link: str | None
    link_mark: int | None
    title_mark: int | None
    published_at: datetime | None
    first_seen_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Recognised:
    """What the unknown items of a round have turned out to be."""

    moves: dict[int, Keyed]
    """The new key of known items, by their ids."""

    held: frozenset[str]
    """Keys of what is neither kept nor told this time."""

    unstable: bool
    """Nearly all keys are new, and nearly all titles known: none of the keys is believed."""

    useless_ids: bool
    """Nearly all items had another id and the same link: the ids are none."""


def recognise(
    unknown: Sequence[Keyed],
    listed: Sequence[Keyed],
    known: Sequence[Known],
    *,
    last_round_at: datetime | None,
    now: datetime,
    ignored: frozenset[str] = frozenset(),
) -> Recognised:
    """What `unknown`, those of the `listed` without a row, are.

    `known` are the items that share a link or a title with one of them, whether they are listed or not; `ignored` are
    the parameters that their links are compared without.
    """
    compared = _Compared(listed, known, last_round_at, now, ignored)
    if any(keyed.mark.key for keyed in unknown):
        return _decided(unknown, compared)
    moves = compared.by_link(unknown)
    useless = compared.is_nearly_all(moves)
    if not useless and compared.is_nearly_all(again := compared.by_link_and_title(unknown)):
        moves, useless = again, True
    taken = {keyed.key for keyed in moves.values()}
    left = [keyed for keyed in unknown if keyed.key not in taken]
    if (braked := compared.brake(left, moves)) is not None:
        return Recognised(
            moves=moves | braked,
            held=frozenset(keyed.key for keyed in left) - {keyed.key for keyed in braked.values()},
            unstable=True,
            useless_ids=False,
        )
    moves |= compared.by_title(left, moves)
    return Recognised(moves=moves, held=frozenset(), unstable=False, useless_ids=useless)


def _decided(unknown: Sequence[Keyed], compared: _Compared) -> Recognised:
    """Keys that a person has chosen are believed, but for the brake."""
    braked = compared.brake(unknown, {})
    held = frozenset(keyed.key for keyed in unknown) - {keyed.key for keyed in (braked or {}).values()}
    return Recognised(
        moves=braked or {},
        held=held if braked is not None else frozenset(),
        unstable=braked is not None,
        useless_ids=False,
    )


class _Compared:
    """A round beside what is known."""

    def __init__(
        self,
        listed: Sequence[Keyed],
        known: Sequence[Known],
        last_round_at: datetime | None,
        now: datetime,
        ignored: frozenset[str],
    ) -> None:
        self._listed = len(listed)
        self._keys = {keyed.key for keyed in listed}
        self._last_round_at = last_round_at
        self._now = now
        self._ignored = ignored
        self._links = Counter(keyed.mark.link_mark for keyed in listed)
        self._titles = Counter(keyed.mark.title_mark for keyed in listed)
        self._pairs = Counter((keyed.mark.link_mark, keyed.mark.title_mark) for keyed in listed)
        self._by_link: dict[int | None, list[Known]] = defaultdict(list)
        self._by_title: dict[int | None, list[Known]] = defaultdict(list)
        self._by_both: dict[tuple[int | None, int | None], list[Known]] = defaultdict(list)
        self._comparisons = 0
        for item in known:
            self._by_link[item.link_mark].append(item)
            self._by_title[item.title_mark].append(item)
            self._by_both[item.link_mark, item.title_mark].append(item)

    def is_nearly_all(self, moves: dict[int, Keyed]) -> bool:
        return self._listed >= FEW and len(moves) * 100 >= NEARLY_ALL_PERCENT * self._listed

    def by_link(self, unknown: Iterable[Keyed]) -> dict[int, Keyed]:
        """Whose link no other item has, or whose link and title together."""
        moves: dict[int, Keyed] = {}
        for keyed in unknown:
            mark = keyed.mark
            if mark.link_mark is None:
                continue
            same = self._by_link[mark.link_mark]
            if self._links[mark.link_mark] > 1 or len(same) > 1 or identity.is_home(mark.link):
                same = self._both(keyed)
            if (item := self._one(same, moves)) is not None and self._is_edit(keyed, item):
                moves[item.id] = keyed
        return moves

    def by_link_and_title(self, unknown: Iterable[Keyed]) -> dict[int, Keyed]:
        """Whose link and title no other item has, within a day: where nearly all are so, each round dates them anew."""
        moves: dict[int, Keyed] = {}
        for keyed in unknown:
            item = self._one(self._both(keyed), moves) if keyed.mark.link_mark is not None else None
            if item is not None and not self._is_since(keyed, item, after=DAY):
                moves[item.id] = keyed
        return moves

    def by_title(self, unknown: Iterable[Keyed], taken: dict[int, Keyed]) -> dict[int, Keyed]:
        """Whose title no other item has, on the day of the known one, and whose address is the corrected one.

        Two openings under one title have two numbers, or names of their own.
        """
        moves: dict[int, Keyed] = {}
        for keyed in unknown:
            if self._titles[keyed.mark.title_mark] > 1:
                continue
            item = self._one(self._by_title[keyed.mark.title_mark], moves)
            if item is None or item.id in taken:
                continue
            if self._is_same_day(keyed, item) and self._is_corrected(keyed, item):
                moves[item.id] = keyed
        return moves

    def brake(self, unknown: Sequence[Keyed], taken: dict[int, Keyed]) -> dict[int, Keyed] | None:
        """The known items that the unknown ones are by their titles, when no key of this round can be believed."""
        if self._listed < FEW or len(unknown) * 100 < NEARLY_ALL_PERCENT * self._listed:
            return None
        moves: dict[int, Keyed] = {}
        titles: set[int] = set()
        for keyed in unknown:
            titled = (item for item in self._by_title[keyed.mark.title_mark] if item.key not in self._keys)
            same = [item for item in titled if item.id not in taken and _is_near(keyed, item)]
            if same:
                titles.add(keyed.mark.title_mark)
            if free := [item for item in same if item.id not in moves]:
                moves[free[0].id] = keyed
        of = len({keyed.mark.title_mark for keyed in unknown})
        return moves if len(titles) >= FEW and len(titles) * 100 >= NEARLY_ALL_PERCENT * of else None

    def _one(self, same: Sequence[Known], taken: dict[int, Keyed]) -> Known | None:
        """The only one, when the round does not list it and it is nobody else's."""
        if len(same) != 1 or same[0].key in self._keys or same[0].id in taken:
            return None
        return same[0]

    def _both(self, keyed: Keyed) -> list[Known]:
        both = keyed.mark.link_mark, keyed.mark.title_mark
        return self._by_both[both] if self._pairs[both] == 1 else []

    def _is_edit(self, keyed: Keyed, item: Known) -> bool:
        """Of two that share a link."""
        if self._is_since(keyed, item):
            return False
        if keyed.mark.title_mark == item.title_mark or not self._has_own_keys(keyed, item):
            return True
        new, old = keyed.mark.item.published_at, item.published_at
        if new != old:
            return False
        if new is not None and new.time() != time():
            return True
        return self._is_reworded(keyed.mark.item.title, item.title)  # the day alone is that of many

    def _has_own_keys(self, keyed: Keyed, item: Known) -> bool:
        """Whether the keys of both are more than the link that they share."""
        old = links.canonical(item.link, self._ignored) if item.link else ""
        return keyed.key != links.key(keyed.mark.link) and item.key != links.key(old)

    def _is_since(self, keyed: Keyed, item: Known, *, after: timedelta = timedelta()) -> bool:
        new, old = keyed.mark.item.published_at, item.published_at
        if new is None or old is None or self._last_round_at is None:
            return False
        return new > max(self._last_round_at, old + after)

    def _is_same_day(self, keyed: Keyed, item: Known) -> bool:
        new, old = keyed.mark.item.published_at, item.published_at
        if new is not None and old is not None:
            return new == old or (new.date() == old.date() and not (self._last_round_at and new > self._last_round_at))
        return new is old and self._now - item.first_seen_at < DAY

    def _is_corrected(self, keyed: Keyed, item: Known) -> bool:
        new = keyed.mark.link or keyed.key
        old = links.canonical(item.link, self._ignored) if item.link else item.key
        if NUMBERS.findall(new) != NUMBERS.findall(old):
            return False
        if keyed.mark.item.published_at is not None and keyed.mark.item.published_at == item.published_at:
            return True
        return self._is_alike(_last(new), _last(old), CORRECTED)

    def _is_reworded(self, new: str, old: str) -> bool:
        """Whether one title is the other with words added, or without its mistakes: "Python" is none for "Java"."""
        new, old = fold(new), fold(old)
        if NUMBERS.findall(new) != NUMBERS.findall(old):
            return False
        added, gone = _words_without(new, old), _words_without(old, new)
        return (not added or not gone or self._is_alike(added, gone, REWORDED)) and self._is_alike(new, old, REWORDED)

    def _is_alike(self, new: str, old: str, bound: float) -> bool:
        compared = SequenceMatcher(None, new[:MOST_COMPARED], old[:MOST_COMPARED])
        if compared.real_quick_ratio() < bound or compared.quick_ratio() < bound:
            return False
        self._comparisons += 1
        return self._comparisons <= MOST_COMPARISONS and compared.ratio() >= bound


def _is_near(keyed: Keyed, item: Known) -> bool:
    new, old = keyed.mark.item.published_at, item.published_at
    return new is None or old is None or abs(new - old) <= SAME_TITLE_WITHIN


def _last(address: str) -> str:
    return address.rstrip("/").rpartition("/")[2][-MOST_COMPARED:]


def _words_without(title: str, other: str) -> str:
    """The words of one title that the other does not have."""
    return " ".join((Counter(WORDS.findall(title)) - Counter(WORDS.findall(other))).elements())
