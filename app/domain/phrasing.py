"""The language of templates: Jinja's, without what could take long or reach out of a template.

No calls, no assignments, no loops in loops, and a loop goes over `item.fields` alone; so a template is done after so
many steps as it is long, once for each field. Filters are a listed few, and parts are those of mappings.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any, cast

from app.domain import digests, textcut, when
from app.domain.matching import plain

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator
    from datetime import datetime, tzinfo

    from jinja2 import Template, nodes
    from jinja2.sandbox import SandboxedEnvironment

VALUE_LIMIT = 10_000
"""Characters of a text on its way through filters."""

MOST_DIGITS = 15

ITEM = ("title", "link", "source", "published", "text", "fields")
NAMES = ("item", "subscription", "language")
LOOP = ("index", "index0", "first", "last", "length")
TESTS = ("defined", "undefined", "none", "number", "string")

PLAIN_NODES = frozenset(
    {
        *("Template", "Output", "TemplateData", "Const", "Name", "Getattr", "Getitem", "Filter", "Keyword", "Test"),
        *("If", "CondExpr", "For", "Tuple", "List", "Compare", "Operand", "And", "Or", "Not", "Concat"),
        *("Neg", "Pos", "Add", "Sub", "Mul", "Div", "FloorDiv"),
    }
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
    """The fields of one item. One that it does not have is empty, and no mistake: the next item may have it.

    A text is made safe beside other text when it is asked for: that takes time, and most are not.
    """

    def __getitem__(self, name: str) -> Any:
        value = super().__getitem__(name)
        return digests.shown_words(value[:VALUE_LIMIT]) if isinstance(value, str) else value


class AnyFields(Fields):
    """In place of them before there are any: all have the same value."""

    def __missing__(self, name: str) -> Any:
        return self["any"]


@dataclass(frozen=True, slots=True)
class Named:
    """What a template names."""

    parts: set[str] = field(default_factory=set)
    """Of an item."""

    fields: dict[str, int] = field(default_factory=dict)
    """Each with the first line that names it."""


def compiled(source: str, names: Collection[str] = NAMES) -> tuple[Template, Named]:
    """The template, and what it names. `names` are those that it is given. Raises WordingError."""
    from jinja2 import TemplateError, TemplateSyntaxError  # noqa: PLC0415 - only where there is a template

    environment = _environment()
    named = Named()
    try:
        tree = environment.parse(source)
        _check(tree, named, known=names)
        return environment.from_string(tree), named
    except TemplateSyntaxError as error:
        raise WordingError(error.lineno, error.message or "is no template") from error
    except (TemplateError, RecursionError, SyntaxError, ValueError, OverflowError) as error:
        if isinstance(error, WordingError):
            raise
        raise WordingError(1, "cannot be read; write a simpler one") from error


def _check(tree: nodes.Template, named: Named, known: Collection[str]) -> None:
    """Refuses what is not in the language, and names that mean nothing."""
    from jinja2 import nodes  # noqa: PLC0415

    names = set(known)
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
            raise WordingError(node.lineno, f'there is no "{node.name}"; there are {", ".join(known)}')
        if isinstance(node, nodes.Getattr | nodes.Getitem):
            _check_part(node, named)


def _check_part(node: nodes.Getattr | nodes.Getitem, named: Named) -> None:
    from jinja2 import nodes  # noqa: PLC0415

    part = _part(node)
    if isinstance(node.node, nodes.Name) and node.node.name == "item":
        if part not in ITEM:
            raise WordingError(node.lineno, f'an item has no "{part}"; it has {", ".join(ITEM)}')
        named.parts.add(part)
    if isinstance(part, str) and _is_fields(node.node):
        named.fields.setdefault(part, node.lineno)


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
    return [(name, value[name]) for name in value] if isinstance(value, Mapping) else []


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
    return value.told(cast("when.Style", style)) if isinstance(value, Moment) else ""


def line_of(error: BaseException) -> int:
    """Of the template, where it failed."""
    line, at = 1, error.__traceback__
    while at is not None:
        if at.tb_frame.f_code.co_filename == "<template>":
            line = at.tb_lineno
        at = at.tb_next
    return line


def reason_of(error: Exception) -> str:
    """One short line."""
    return " ".join(str(error).split())[:200] or type(error).__name__
