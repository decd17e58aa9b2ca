"""Other words for an item: a template of the user's, in Jinja's language, that makes the lines of one item.

    {{ item.title }}
    {{ item.fields.company }}, {{ item.published }}
    {{ item.link }}

It runs while messages are composed, in a transaction that must not wait: what could take long is not in its language.
There are no calls, no assignments, no loops in loops, and a loop goes over `item.fields` alone; so a template is done
after so many steps as it is long, once for each field. What it makes is cut after so many characters.

A template is jinja2's from its parser to its code: a language of our own would have to be learned by everybody who knows
this one. It is imported only where somebody has written a template.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

from app.domain import digests, textcut, when
from app.domain.matching import plain

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from datetime import datetime, tzinfo

    from jinja2 import Template, nodes
    from jinja2.sandbox import SandboxedEnvironment

    from app.domain.messages import OwedItem

SOURCE_LIMIT = 4000
"""Characters of a template."""

OUTPUT_LIMIT = 4000
"""Characters of what it makes of one item."""

VALUE_LIMIT = 10_000
"""Characters of a text on its way through filters."""

MOST_DIGITS = 15

ITEM = ("title", "link", "source", "published", "text", "fields")
NAMES = ("item", "subscription", "language")
LOOP = ("index", "index0", "first", "last", "length")
TESTS = ("defined", "undefined", "none", "number", "string")

PLAIN_NODES = frozenset(
    "Template Output TemplateData Const Name Getattr Getitem Filter Test Keyword If CondExpr Compare Operand "
    "And Or Not Neg Pos Add Sub Mul Div FloorDiv Concat For Tuple List".split()
)
"""What a template is made of. Whatever else Jinja has is refused by name."""

NODE_NAMES = {
    "Call": "a call",
    "Assign": "{% set %}",
    "AssignBlock": "{% set %}",
    "Pow": "**",
    "Mod": "%",
    "Slice": "[a:b]",
    "Macro": "{% macro %}",
    "Include": "{% include %}",
    "Import": "{% import %}",
    "FromImport": "{% from %}",
    "Extends": "{% extends %}",
    "Block": "{% block %}",
    "FilterBlock": "{% filter %}",
    "With": "{% with %}",
    "CallBlock": "{% call %}",
}
REMEDIES = {"Slice": "write |truncate(80)"}


class WordingError(ValueError):
    """Why a template cannot be used, with its line."""

    def __init__(self, line: int, what: str) -> None:
        super().__init__(f"line {line}: {what}")


@dataclass(frozen=True, slots=True)
class Moment:
    """An instant as the recipient is told it."""

    at: datetime
    now: datetime
    zone: tzinfo
    language: str

    def told(self, style: when.Style = "time") -> str:
        """See `when.told`."""
        return when.told(self.at, now=self.now, zone=self.zone, language=self.language, style=style)

    def __str__(self) -> str:
        return self.told()


class Fields(dict[str, Any]):
    """The fields of one item. One that it does not have is empty, and no mistake: the next item may have it."""


class AnyFields(Fields):
    """In place of them before there are any: all have the same value."""

    def __missing__(self, name: str) -> Any:
        return self["any"]


class Wording:
    """A template that can be used."""

    def __init__(self, source: str) -> None:
        """Raises WordingError."""
        self.fields: dict[str, int] = {}
        """Those that it names, each with its line."""

        if len(source) > SOURCE_LIMIT:
            raise WordingError(1, f"is longer than {SOURCE_LIMIT:,} characters; write a shorter one")
        self._template = _compiled(source, self.fields)

    def try_out(self, item: OwedItem, *, now: datetime, zone: tzinfo) -> None:
        """Fill it in with that item, whatever its fields hold: numbers or texts. Raises WordingError."""
        try:
            self._filled(item, AnyFields(any=500), "sample", language="en", now=now, zone=zone)
        except Exception:  # noqa: BLE001 - whatever it is: some fields are texts
            try:
                self._filled(item, AnyFields(any="sample"), "sample", language="en", now=now, zone=zone)
            except Exception as error:  # noqa: BLE001
                raise WordingError(_line(error), _reason(error)) from error

    def lines(
        self, item: OwedItem, *, subscription: str, language: str, now: datetime, zone: tzinfo
    ) -> tuple[str, ...]:
        """The lines that it makes of an item, with something in them, safe beside other text; perhaps none.

        Raises:
            WordingError: it cannot be filled in with this item.
        """
        fields = Fields({name: _value(value) for name, value in item.fields.items()})
        try:
            made = self._filled(item, fields, subscription, language=language, now=now, zone=zone)
        except Exception as error:  # a template is the user's: it may fail in any way
            raise WordingError(_line(error), _reason(error)) from error
        return digests.shown_lines(made, characters=OUTPUT_LIMIT)

    def _filled(
        self, item: OwedItem, fields: Fields, subscription: str, *, language: str, now: datetime, zone: tzinfo
    ) -> str:
        at = item.published_at
        given = {
            "title": digests.shown_title(item, language),
            "link": digests.shown_link(item.link or ""),
            "source": item.source,
            "published": None if at is None else Moment(at, now, zone, language),
            "text": digests.shown_words(item.text[:VALUE_LIMIT]),
            "fields": fields,
        }
        made, room = [], OUTPUT_LIMIT * 2  # white space and isolates are counted here, and are not later
        for piece in self._template.generate(item=given, subscription=subscription, language=language):
            made.append(piece[:room])
            room -= len(piece)
            if room <= 0:
                break
        return "".join(made)


def _value(value: Any) -> Any:
    return digests.shown_words(value[:VALUE_LIMIT]) if isinstance(value, str) else value


# ------------------------------------------------------------------------------------------------------ the language


def _compiled(source: str, fields: dict[str, int]) -> Template:
    from jinja2 import TemplateError, TemplateSyntaxError  # noqa: PLC0415 - only where there is a template

    environment = _environment()
    try:
        tree = environment.parse(source)
        _check(tree, fields)
        return environment.from_string(tree)
    except TemplateSyntaxError as error:
        raise WordingError(error.lineno, error.message or "is no template") from error
    except (TemplateError, RecursionError, SyntaxError, ValueError, OverflowError) as error:
        if isinstance(error, WordingError):
            raise
        raise WordingError(1, "cannot be read; write a simpler one") from error


def _check(tree: nodes.Template, fields: dict[str, int]) -> None:
    """Refuses what is not in the language, and names that mean nothing."""
    from jinja2 import nodes  # noqa: PLC0415

    names = set(NAMES)
    for loop in tree.find_all(nodes.For):
        if next(loop.find_all(nodes.For), None) is not None:
            raise WordingError(loop.lineno, "has a loop in a loop, which could take long; remove one")
        if not _over_fields(loop.iter) or loop.recursive:
            raise WordingError(loop.lineno, "loops over something else than the fields; write item.fields|items")
        targets = [loop.target, *loop.target.find_all(nodes.Name)]
        names |= {"loop", *(target.name for target in targets if isinstance(target, nodes.Name))}
    for node in _all(tree):
        kind = type(node).__name__
        if kind not in PLAIN_NODES:
            remedy = REMEDIES.get(kind, "remove it")
            raise WordingError(node.lineno, f"{NODE_NAMES.get(kind, kind)} is not in the language; {remedy}")
        if isinstance(node, nodes.Name) and node.name not in names:
            raise WordingError(node.lineno, f'there is no "{node.name}"; there are {", ".join(NAMES)}')
        if isinstance(node, nodes.Getattr | nodes.Getitem):
            _check_part(node, fields)


def _check_part(node: nodes.Getattr | nodes.Getitem, fields: dict[str, int]) -> None:
    from jinja2 import nodes  # noqa: PLC0415

    part = _part(node)
    if isinstance(node.node, nodes.Name) and node.node.name == "item" and part not in ITEM:
        raise WordingError(node.lineno, f'an item has no "{part}"; it has {", ".join(ITEM)}')
    if isinstance(part, str) and _is_fields(node.node):
        fields.setdefault(part, node.lineno)


def _part(node: nodes.Getattr | nodes.Getitem) -> Any:
    """Of what is there by name; None where the name is worked out."""
    from jinja2 import nodes  # noqa: PLC0415

    return node.attr if isinstance(node, nodes.Getattr) else getattr(node.arg, "value", None)


def _is_fields(node: nodes.Node) -> bool:
    from jinja2 import nodes  # noqa: PLC0415

    return (
        isinstance(node, nodes.Getattr | nodes.Getitem)
        and isinstance(node.node, nodes.Name)
        and node.node.name == "item"
        and _part(node) == "fields"
    )


def _over_fields(node: nodes.Node) -> bool:
    from jinja2 import nodes  # noqa: PLC0415

    if isinstance(node, nodes.Filter) and node.name == "items" and node.node is not None:
        return _is_fields(node.node)
    return _is_fields(node)


def _all(node: nodes.Node) -> Iterator[nodes.Node]:
    yield node
    for child in node.iter_child_nodes():
        yield from _all(child)


@cache
def _environment() -> SandboxedEnvironment:
    from jinja2 import StrictUndefined, Undefined  # noqa: PLC0415
    from jinja2.runtime import LoopContext  # noqa: PLC0415
    from jinja2.sandbox import SandboxedEnvironment  # noqa: PLC0415

    class Environment(SandboxedEnvironment):
        """Gives parts of mappings, and nothing of any other thing: no template reaches into the program."""

        intercepted_binops = frozenset("*")

        def getattr(self, obj: Any, attribute: str) -> Any:
            if isinstance(obj, LoopContext) and attribute in LOOP:
                return getattr(obj, attribute)
            return self.getitem(obj, attribute)

        def getitem(self, obj: Any, argument: Any) -> Any:
            kind = Undefined if isinstance(obj, Fields) else StrictUndefined
            if isinstance(obj, Mapping) and isinstance(argument, str):
                try:
                    return obj[argument]
                except KeyError:
                    pass
            return kind(obj=obj, name=argument)

        def call_binop(self, context: Any, operator: str, left: Any, right: Any) -> Any:
            if not (isinstance(left, int | float) and isinstance(right, int | float)):
                raise TypeError("only numbers can be multiplied")
            return super().call_binop(context, operator, left, right)

    made = Environment(
        autoescape=False,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_shown,
        cache_size=0,
    )
    made.globals.clear()
    made.filters = _filters(made.filters)
    made.tests = {name: made.tests[name] for name in TESTS}
    return made


def _shown(value: Any) -> Any:
    """As it stands in a message."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    return plain(value) if isinstance(value, float) else value


def _filters(theirs: Mapping[str, Callable[..., Any]]) -> dict[str, Callable[..., Any]]:
    """Those of Jinja's that take no longer than their text is long, and ours."""
    return {
        "capitalize": lambda value: str(value).capitalize(),
        "d": theirs["default"],
        "default": theirs["default"],
        "float": lambda value, default=0.0: theirs["float"](value, default),
        "int": lambda value, default=0: theirs["int"](value, default),
        "items": _items,
        "join": _join,
        "length": len,
        "lower": lambda value: str(value).lower(),
        "replace": _replace,
        "round": _round,
        "time": _time,
        "title": lambda value: theirs["title"](str(value)),
        "trim": lambda value: str(value).strip(),
        "truncate": lambda value, length=80: textcut.shorten(str(value), limit=int(length), characters=VALUE_LIMIT),
        "upper": lambda value: str(value).upper(),
    }


def _items(value: Any) -> list[tuple[Any, Any]]:
    return list(value.items()) if isinstance(value, Mapping) else []


def _join(value: Any, between: str = "") -> str:
    """A text is one thing, not its letters."""
    return str(between)[:100].join(map(str, value)) if isinstance(value, list | tuple) else str(value)


def _replace(value: Any, old: str, new: str) -> str:
    text = str(value)
    if not old or len(text) + text.count(old) * len(new) > VALUE_LIMIT * 2:
        raise ValueError("replace would make the text too long")
    return text.replace(old, new)


def _round(value: Any, digits: int = 0) -> float:
    return round(float(value), max(-MOST_DIGITS, min(int(digits), MOST_DIGITS)))


def _time(value: Any, style: str = "time") -> str:
    if style not in when.STYLES:
        raise ValueError(f'time has no "{style}"; it has {", ".join(when.STYLES)}')
    return value.told(style) if isinstance(value, Moment) else ""


def _line(error: BaseException) -> int:
    """Of the template, where it failed."""
    line, at = 1, error.__traceback__
    while at is not None:
        if at.tb_frame.f_code.co_filename == "<template>":
            line = at.tb_lineno
        at = at.tb_next
    return line


def _reason(error: Exception) -> str:
    """One short line."""
    return " ".join(str(error).split())[:200] or type(error).__name__
