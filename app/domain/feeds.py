"""What a feed's entries mean as items, whatever format they came in."""

from __future__ import annotations

import json
from collections import defaultdict
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from app.domain import identity, links, text
from app.domain.constructs import Texts
from app.domain.dates import moment
from app.domain.errors import TemporaryFailure
from app.domain.items import Item

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from datetime import datetime

JSON_FEED = ("https://jsonfeed.org/version/1", "http://jsonfeed.org/version/1")

MAX_ENTRIES = 10_000
"""So many make items of themselves in about a second, and a thread cannot be stopped."""

MAX_VALUES = 200_000
"""Objects and lists of one JSON document; each takes up to 200 bytes of memory, and may be two of the document."""

FIELDS = frozenset({"categories", "author"})
"""What an item of a feed may have beside its parts."""

MAX_TAGS = 100
"""Of one JSON item."""

CHALLENGES = (
    "just a moment",
    "attention required",
    "checking your browser",
    "verify you are human",
    "verifying you are human",
    "are you a robot",
    "security check",
    "ddos-guard",
    "/cdn-cgi/challenge-platform/",
    "_incapsula_resource",
    "enable javascript and cookies to continue",
)
"""What pages say that want to see a person; matched in lower case."""

PAGE_HEAD = 50_000
"""Characters of a page in which it says what it is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One entry as its feed has it, each text plain already."""

    id: str = ""
    title: str = ""

    link: str | None = None
    """Absolute."""

    published_at: datetime | None = None
    text: str = ""
    fields: Mapping[str, str] = field(default_factory=dict)


def items_of(entries: Iterable[Entry]) -> tuple[tuple[Item, ...], tuple[str, ...]]:
    """Items in the entries' order, each with a key of its own, and warnings for people.

    The key is the entry's id, else its link without tracking, else its title: never a date or a description, which
    change. Entries that share a key are told apart by their links, then (where the key is no id) by their titles;
    what still is the same is one item.
    """
    named = [_named(entry) for entry in entries]
    usable = [entry for entry in named if entry.title]
    sharing: dict[str, _Sharing] = defaultdict(_Sharing)
    for entry in usable:
        sharing[_key(entry)].titles_by_link[_canonical(entry)].add(entry.title)
    item_by_key: dict[str, Item] = {}
    useless = (len(usable) - len(sharing)) * 100 > identity.USELESS_PERCENT * len(usable)
    for entry in usable:
        item = _item(entry, sharing[_key(entry)], useless=useless)
        item_by_key.setdefault(item.key, item)
    warnings = []
    if len(usable) < len(named):
        warnings.append(f"entries without title, text and link, left out: {len(named) - len(usable)}")
    if repeated := len(usable) - len(sharing):
        warnings.append(f"entries that repeat the id or link of another: {repeated} of {len(usable)}")
    return tuple(item_by_key.values()), tuple(warnings)


@dataclass(frozen=True, slots=True)
class _Sharing:
    """What the entries differ in that share a first choice of key."""

    titles_by_link: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))


def _named(entry: Entry) -> Entry:
    if entry.title:
        return entry
    return replace(entry, title=text.title(text.first_words(entry.text) or entry.link or entry.id))


def _canonical(entry: Entry) -> str:
    return links.canonical(entry.link) if entry.link else ""


def _key(entry: Entry) -> str:
    return links.key(entry.id) or links.key(_canonical(entry)) or links.key(entry.title)


def _item(entry: Entry, shared: _Sharing, *, useless: bool) -> Item:
    """The item, its key widened by what tells it from the entries that share the first choice.

    `useless`: so many do that ids are none, and entries of one id and one link are told apart all the same.
    """
    parts = [_key(entry)]
    if len(shared.titles_by_link) > 1:
        parts.append(_canonical(entry))
    if (useless or not links.key(entry.id)) and len(shared.titles_by_link[_canonical(entry)]) > 1:
        parts.append(entry.title)
    return Item(
        key=links.key(" ".join(parts)),
        title=entry.title,
        id=entry.id,
        link=entry.link,
        published_at=entry.published_at,
        text=entry.text,
        fields=entry.fields,
    )


def web_page(document: str, host: str) -> str:
    """The reason to tell when a page came in place of what was asked for: an ordinary one, or a challenge."""
    head = document[:PAGE_HEAD].lower()
    if any(said in head for said in CHALLENGES):
        return f"{host} answered with a challenge page that wants to see a person, not a feed"
    return f"{host} answered with a web page, not a feed"


def json_feed(document: str, *, host: str, base: str) -> list[Entry]:
    """The entries of a JSON Feed, 1.0 or 1.1 (jsonfeed.org/version/1.1).

    Raises:
        TemporaryFailure: it is not whole, not JSON or not a JSON Feed.
    """
    if document.count("{") + document.count("[") > MAX_VALUES:
        raise TemporaryFailure(f"the answer of {host} has more than {MAX_VALUES:,} objects and lists")
    try:
        feed = json.loads(document)
    except json.JSONDecodeError as error:
        cut = error.pos >= len(document.rstrip()) or error.msg.startswith("Unterminated string")
        told = "ends in the middle" if cut else "is not valid JSON"
        raise TemporaryFailure(f"the answer of {host} {told}") from error
    except (ValueError, RecursionError) as error:
        raise TemporaryFailure(f"the answer of {host} is JSON that cannot be read") from error
    if not isinstance(feed, dict) or not str(feed.get("version")).startswith(JSON_FEED):
        raise TemporaryFailure(f'{host} answered with JSON that is no JSON Feed: such a source has kind = "json"')
    listed = feed.get("items")
    if not isinstance(listed, list):
        raise TemporaryFailure(f"the JSON Feed of {host} has no list of items")
    if len(listed) > MAX_ENTRIES:
        raise TemporaryFailure(f"the feed of {host} has more than {MAX_ENTRIES:,} entries, the limit for one source")
    texts = Texts()
    return [_json_entry(item, base, texts) for item in listed if isinstance(item, dict)]


def _json_entry(item: Mapping[str, Any], base: str, texts: Texts) -> Entry:
    plain = [text.text(_string(item, "content_text")), text.text(_string(item, "summary"))]
    plain.append(texts.of_html(_string(item, "content_html")))
    tags = item.get("tags")
    return Entry(
        id=text.clean(_string(item, "id")),
        title=text.title(_string(item, "title")),
        link=links.absolute(_string(item, "url"), base) or links.absolute(_string(item, "external_url"), base),
        published_at=moment(_string(item, "date_published")) or moment(_string(item, "date_modified")),
        text=max(plain, key=len),
        fields=named_fields(categories=tags[:MAX_TAGS] if isinstance(tags, list) else ()),
    )


def named_fields(*, categories: Iterable[Any] = (), author: Any = None) -> dict[str, str]:
    """The fields a feed's item has, where it has them: `categories`, by commas, and `author`."""
    fields = {
        "categories": text.title(", ".join(dict.fromkeys(word for word in categories if isinstance(word, str)))),
        "author": text.title(author) if isinstance(author, str) else "",
    }
    return {name: value for name, value in fields.items() if value}


def _string(item: Mapping[str, Any], name: str) -> str:
    value = item.get(name)
    if isinstance(value, str):
        return value
    # Ids are often numbers, against the standard's wish.
    return str(value) if isinstance(value, int | float) and not isinstance(value, bool) else ""
