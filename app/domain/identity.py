"""What tells a source's items apart.

    id, else link, else title  --too many share one-->  link, else title  --too many share one-->  link and title

A rule that has proved useless is left by itself, for good: the keys of what is known are changed with it, so that
nothing becomes new. Where the configuration says what the key is, or the kind knows it, there is no such choice.
"""

from __future__ import annotations

import unicodedata
from collections import defaultdict
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from typing import TYPE_CHECKING, Literal, get_args
from urllib.parse import urlsplit

from app.domain import links
from app.domain.errors import TemporaryFailure
from app.domain.folding import fold

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from datetime import datetime, timedelta

    from app.domain.items import Item

Rule = Literal["id", "link", "link_title"]

RULES: tuple[Rule, ...] = get_args(Rule)
"""Each is for when the one before it has proved useless."""

Part = Literal["id", "link", "title", "date"]

PARTS: tuple[Part, ...] = get_args(Part)
"""What `key = "title+date"` may name."""

USELESS_PERCENT = 5
"""More items than this that share another's key: it is no key. FreshRSS has the same bound."""

REGEX_SECONDS = 0.5
"""Of one search in one link, which takes a microsecond; no round goes on after one that took so long."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """What the configuration says about a source's keys."""

    parts: tuple[Part, ...] = ()
    """The key is made of these, for a kind without keys of its own."""

    id_regex: str | None = None
    """What it finds in an item's link is its id: its first group that has something, or all of it."""

    ignored: frozenset[str] = frozenset()
    """Names of parameters, in lower case, that tell nothing of what a link shows; tracking is never looked at."""

    decided: bool = False
    """The kind's own options say what the key is."""

    @property
    def chooses(self) -> bool:
        """Whether items may have other keys than their kind gives them."""
        return bool(self.parts or self.id_regex or self.ignored)


UNSAID = Identity()
"""As where the configuration says nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Marked:
    """An item, and what it is told apart and recognised by."""

    item: Item

    key: str = ""
    """Where the configuration or the kind has decided it."""

    id: str = ""
    link: str = ""
    """As `links.canonical` has it."""

    link_mark: int | None = None
    """Equal for equal links; of 64 bits, for an index."""

    title_mark: int
    """Equal for titles that differ only in signs and capitals, of one company where that is known."""


def marked(items: Iterable[Item], identity: Identity) -> tuple[Marked, ...]:
    """In the items' order; takes about a second for ten thousand of them."""
    return tuple(_marked(item, identity) for item in items)


def rekeyed(items: Iterable[Item], identity: Identity) -> tuple[Item, ...]:
    """The items under the keys that the configuration chooses, each key once.

    Raises:
        TemporaryFailure: `id_regex` takes too long. Without its ids everything would be new.
    """
    found = marked(_chosen(items, identity), identity)
    item_by_key: dict[str, Item] = {}
    for mark, key in zip(found, keys(found, deserved(found)), strict=True):
        item_by_key.setdefault(key, replace(mark.item, key=key))
    return tuple(item_by_key.values())


def deserved(found: Sequence[Marked]) -> Rule:
    """The first rule by which few enough items share a key; else the one by which the fewest do."""
    if any(mark.key for mark in found):
        return "id"
    apart = {(mark.id, mark.link, mark.item.title): mark for mark in found}.values()
    shared = {rule: len(apart) - len({_first(mark, rule) for mark in apart}) for rule in RULES}
    good = (rule for rule in RULES if shared[rule] * 100 <= USELESS_PERCENT * len(apart))
    return next(good, min(RULES, key=shared.__getitem__))


def degraded(rule: Rule, other: Rule) -> Rule:
    """The one of the two that comes later."""
    return max(rule, other, key=RULES.index)


def keys(found: Sequence[Marked], rule: Rule) -> list[str]:
    """Each item's key, at most 1,000 characters; of two items with one key, the first is meant.

    Where a few share one nevertheless, theirs are widened by their links, or by their titles.
    """
    sharing: dict[str, _Sharing] = defaultdict(_Sharing)
    for mark in found:
        sharing[_first(mark, rule)].titles_by_link[mark.link].add(mark.item.title)
    useless = (len(found) - len(sharing)) * 100 > USELESS_PERCENT * len(found)
    return [_widened(mark, rule, sharing[_first(mark, rule)], useless=useless) for mark in found]


def is_old(item: Item, *, now: datetime, oldest_at: datetime | None, max_age: timedelta | None) -> bool:
    """Whether it has come to light and is no news: older than all that the first round listed, or than `max_age`.

    By days: dates without a time are those of midnight. What has no date is news.
    """
    published_at = item.published_at
    if published_at is None:
        return False
    if oldest_at is not None and published_at.date() < oldest_at.date():
        return True
    return max_age is not None and published_at < now - max_age


def is_home(link: str) -> bool:
    """Whether a link leads to a site's front page, which tells nothing of an item."""
    parts = urlsplit(link)
    return parts.path in {"", "/"} and not parts.query and not parts.fragment


@dataclass(frozen=True, slots=True)
class _Sharing:
    """What the items differ in that share a key."""

    titles_by_link: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))


def _chosen(items: Iterable[Item], identity: Identity) -> Iterator[Item]:
    """The items, those with a key that is chosen as ones whose key is known to be their id."""
    find = _finder(identity.id_regex) if identity.id_regex else None
    for item in items:
        link = links.canonical(item.link, identity.ignored) if item.link else ""
        chosen = (find(link) if find and link else "") or _joined(item, link, identity.parts)
        yield replace(item, key=links.key(chosen), id=None) if links.key(chosen) else item


def _finder(pattern: str) -> Callable[[str], str]:
    import regex  # noqa: PLC0415 - a start without such a source does without

    compiled = regex.compile(pattern)

    def find(link: str) -> str:
        try:
            found = compiled.search(link, timeout=REGEX_SECONDS)
        except (TimeoutError, MemoryError, RecursionError) as error:
            raise TemporaryFailure("id_regex takes too long on its links; write a simpler one") from error
        return next((group for group in found.groups() if group), found[0]) if found else ""

    return find


def _marked(item: Item, identity: Identity) -> Marked:
    link = links.canonical(item.link, identity.ignored) if item.link else ""
    return Marked(
        item=item,
        key=links.key(item.key) if identity.decided or item.id is None else "",
        id=item.id or "",
        link=link,
        link_mark=_mark(link) if link else None,
        title_mark=_mark(_plain(item)),
    )


def _joined(item: Item, link: str, parts: Iterable[Part]) -> str:
    day = item.published_at.date().isoformat() if item.published_at else ""
    value_by_part = {"id": item.id or "", "link": link, "title": item.title, "date": day}
    return " ".join(value for part in parts if (value := value_by_part[part]))


def _first(mark: Marked, rule: Rule) -> str:
    match rule:
        case _ if mark.key:
            return mark.key
        case "id":
            return links.key(mark.id) or links.key(mark.link) or links.key(mark.item.title)
        case "link":
            return links.key(mark.link) or links.key(mark.item.title)
        case "link_title":
            return links.key(f"{mark.link} {mark.item.title}")


def _widened(mark: Marked, rule: Rule, shared: _Sharing, *, useless: bool) -> str:
    """`useless`: many share one, and no rule is better. Else what shares an id and a link is one item."""
    first = _first(mark, rule)
    if mark.key or rule == "link_title":
        return first
    parts = [first]
    if rule == "id" and len(shared.titles_by_link) > 1:
        parts.append(mark.link)
    if (useless or rule != "id" or not links.key(mark.id)) and len(shared.titles_by_link[mark.link]) > 1:
        parts.append(mark.item.title)
    return links.key(" ".join(parts))


def _plain(item: Item) -> str:
    """The title's words, with the company's unless they are among them."""
    title = _words(item.title)
    company = item.fields.get("company")
    named = _words(company) if isinstance(company, str) else ""
    return title if f" {named} " in f" {title} " else f"{title} {named}".strip()


def _words(text: str) -> str:
    folded = fold(text)
    words = "".join(c if c.isalnum() or c in "+#" or unicodedata.category(c)[0] == "M" else " " for c in folded)
    return " ".join(words.split()) or folded


def _mark(text: str) -> int:
    digest = blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "big", signed=True)
