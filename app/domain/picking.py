"""Items whose parts are found by expressions, whatever language those are written in.

options --Part--> one node of a list --Entry--> many of them, page by page --Gathered--> items and warnings
"""

from __future__ import annotations

import math
import re
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from app.domain import feeds, links, templates, text
from app.domain.constructs import Texts
from app.domain.errors import TemporaryFailure
from app.domain.moments import moment_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from app.domain.items import Item

MAX_ITEMS = 10_000
"""Of one round: boards list some hundreds, and each item is a row and a comparison with every subscription."""

LISTED = 100
"""Elements of a list that are joined to one text."""

WHOLE = 2**53
"""From here on a whole number is kept as a text: JSON readers elsewhere would round it."""

TAG = re.compile(
    r"</[a-z][a-z0-9]*\s*>|<(?:br|p|hr|img|li|div|ul|ol|h[1-6]|span|a|b|i|strong|em)\b[^<>]*>", re.IGNORECASE
)
ESCAPED_TAG = re.compile(r"&lt;/?[a-z][a-z0-9]*(?:\s|/?&gt;)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Part:
    """How one part of an item is found."""

    option: str
    """As a person has written it: `title`, `fields.budget`."""

    template: templates.Template
    finds: tuple[Callable[[Any], Any], ...]
    """One for each expression of the template: from a node to whatever stands there, None for nothing."""

    def value(self, node: Any) -> Any:
        """What the expression finds, or the text with all that is found in it."""
        if not self.template.literals:
            return self.finds[0](node) if self.finds else None
        return templates.filled(self.template.literals, [shown(find(node)) for find in self.finds])

    def address(self, node: Any) -> str:
        """The same as a link or the part of one."""
        if not self.template.literals:
            return shown(self.finds[0](node))
        return templates.filled_address(self.template.literals, [shown(find(node)) for find in self.finds])


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """How the parts of an item are found."""

    title: Part
    key: Part | None = None
    link: Part | None = None
    published: Part | None = None
    text: Part | None = None
    fields: Mapping[str, Part] = field(default_factory=dict)

    marked_up: bool = False
    """Texts may be HTML, which is made plain; else they are plain already."""


class Gathered:
    """What the pages read so far list."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._entries: list[feeds.Entry] = []
        self._found: Counter[str] = Counter()
        self._texts = Texts()

    def __len__(self) -> int:
        return len(self._entries)

    def add(self, node: Any, base: str) -> None:
        """One more element of the list; links in it are relative to `base`.

        Raises:
            TemporaryFailure: they are too many.
        """
        if len(self._entries) == MAX_ITEMS:
            raise TemporaryFailure(f"items finds more than {MAX_ITEMS:,} items; narrow it")
        parts = self._parts
        link = links.absolute(parts.link.address(node), base) if parts.link else None
        entry = feeds.Entry(
            id=text.clean(shown(parts.key.value(node))) if parts.key else "",
            title=self._title(parts.title, node),
            link=link,
            published_at=moment_of(parts.published.value(node)) if parts.published else None,
            text=self._text(parts.text.value(node)) if parts.text else "",
            fields={name: value for name, part in parts.fields.items() if (value := self._field(part, node)) != ""},
        )
        self._entries.append(entry)
        told = {
            "key": entry.id,
            "title": entry.title,
            "link": link,
            "published": entry.published_at,
            "text": entry.text,
        }
        self._found.update(name for name, value in told.items() if value)
        self._found.update(parts.fields[name].option for name in entry.fields)

    def items(self) -> tuple[tuple[Item, ...], tuple[str, ...]]:
        """All of them, each key once, and warnings for people.

        Raises:
            TemporaryFailure: what items are told apart or known by is found in none of them.
        """
        if not self._entries:
            return (), ()
        missing = [option for option in self._options() if not self._found[option]]
        for option in missing:
            if option in {"key", "title"} or (option == "link" and self._parts.key is None):
                raise TemporaryFailure(f"{option} finds nothing in any of the {len(self)} items; correct it")
        warnings = [f"{option} finds nothing in any of the {len(self)} items" for option in missing]
        if self._texts.left_out:
            warnings.append(f"texts left out, as there is too much markup in all of them: {self._texts.left_out}")
        if self._parts.key is None:
            items, told = feeds.items_of(self._entries)
        else:
            items, told = self._by_key()
        return items, (*warnings, *told)

    def _by_key(self) -> tuple[tuple[Item, ...], tuple[str, ...]]:
        """Each key that was asked for is an item's, whatever else its repetitions differ in."""
        item_by_key: dict[str, Item] = {}
        for entry in self._entries:
            for item in feeds.items_of([entry])[0]:
                item_by_key.setdefault(item.key, item)
        warnings = []
        if without := len(self) - self._found["key"]:
            warnings.append(f"key finds nothing in {without} of {len(self)} items: their link or title is taken")
        if repeated := len(self) - len(item_by_key):
            warnings.append(f"items that repeat the key of another: {repeated} of {len(self)}")
        return tuple(item_by_key.values()), tuple(warnings)

    def _options(self) -> list[str]:
        named = [self._parts.key, self._parts.title, self._parts.link, self._parts.published, self._parts.text]
        return [part.option for part in [*named, *self._parts.fields.values()] if part]

    def _title(self, part: Part, node: Any) -> str:
        written = shown(part.value(node))
        return text.title_of_html(written) if self._parts.marked_up else text.title(written)

    def _text(self, value: Any) -> str:
        written = shown(value)
        return text_of(written, self._texts) if self._parts.marked_up else text.text(written)

    def _field(self, part: Part, node: Any) -> Any:
        value = part.value(node)
        if isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < WHOLE:
            return value
        return text.title(self._text(value))


class Described(Protocol):
    """Options that say how the parts of an item are found."""

    title: str
    key: str | None
    link: str | None
    published: str | None
    text: str | None
    fields: dict[str, str]


def parts_of(
    described: Described,
    find: Callable[[str], Callable[[Any], Any]],
    *,
    find_address: Callable[[str], Callable[[Any], Any]] | None = None,
    marked_up: bool = False,
) -> Parts:
    """The options' parts. `find` makes of an expression what finds its value, `find_address` of a link's."""

    def part(option: str, written: str, find: Callable[[str], Callable[[Any], Any]] = find) -> Part:
        template = templates.parse(written)
        return Part(option, template, tuple(map(find, template.expressions)))

    return Parts(
        key=part("key", described.key) if described.key else None,
        title=part("title", described.title),
        link=part("link", described.link, find_address or find) if described.link else None,
        published=part("published", described.published) if described.published else None,
        text=part("text", described.text) if described.text else None,
        fields={name: part(f"fields.{name}", written) for name, written in described.fields.items()},
        marked_up=marked_up,
    )


def next_of(written: str, find: Callable[[str], Callable[[Any], Any]]) -> Part:
    """What leads to the next page, to be looked for on a `Page`."""
    template = templates.parse(written)
    return Part("next", template, tuple(_on_page(expression, find) for expression in template.expressions))


@dataclass(frozen=True, slots=True)
class Page:
    """Where `next` is looked for."""

    root: Any
    number: int
    """Of this page, from 1."""


PLACE = re.compile(r"#(?:\s*\*\s*(\d{1,6}))?")


def is_place(expression: str) -> bool:
    """Whether it stands for a number: `#` for that of the page to come, `#*20` for as many items as it begins after."""
    return PLACE.fullmatch(expression) is not None


def _on_page(expression: str, compiled: Callable[[str], Callable[[Any], Any]]) -> Callable[[Page], Any]:
    """How an expression of `next` finds its value."""
    if place := PLACE.fullmatch(expression):
        step = int(place[1]) if place[1] else None
        return lambda page: page.number + 1 if step is None else page.number * step
    find = compiled(expression)
    return lambda page: find(page.root)


def shown(value: Any) -> str:
    """A value as a text; empty for nothing, for a table, and for what is no number."""
    match value:
        case str():
            return value
        case bool():
            return "true" if value else "false"
        case int():
            return str(value)
        case float():
            whole = math.isfinite(value) and value == int(value) and abs(value) < WHOLE
            return str(int(value)) if whole else str(value) if math.isfinite(value) else ""
        case list():
            return ", ".join(part for part in map(_element, value[:LISTED]) if part)
    return ""


def _element(value: Any) -> str:
    return "" if isinstance(value, list) else shown(value)


def text_of(written: str, texts: Texts) -> str:
    """Plain text out of what may be HTML, HTML that is escaped once more, or plain already."""
    if not TAG.search(written) and ESCAPED_TAG.search(written):
        written = text.unescape(written)
    return texts.of_html(written) if TAG.search(written) else text.text(text.unescape(written))
