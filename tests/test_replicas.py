"""What one replica knows and another does not is of no account: nothing changes that lives as long as a process."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

APP = Path(__file__).parent.parent / "app"

MUTABLE = (ast.List, ast.Dict, ast.Set, ast.ListComp, ast.DictComp, ast.SetComp)
MAKERS = frozenset({"list", "dict", "set", "bytearray", "deque", "defaultdict", "Counter", "OrderedDict", "WeakSet"})

CHANGING = frozenset(
    {"append", "appendleft", "extend", "insert", "add", "update", "setdefault", "pop", "popitem", "popleft"}
    | {"remove", "discard", "clear", "sort", "reverse"}
)


MAY_BE_LOST = {
    "context.py": {"_TLS"},  # certificates of the machine, read once
    "config_watch.py": {"_BROKEN_AT"},  # whether this process may say so an hour sooner
    "testing/opened.py": {"_TEMPLATES"},  # for tests of handlers, in one process
}
"""Caches: whoever has none does the work once more."""


def mutables(tree: ast.Module) -> Iterator[str]:
    """The names at a module's level, or at a class's, that stand for something that can be changed.

    Those of a class that have an annotation are fields of pydantic, which gives each object its own.
    """
    classes = [node for node in tree.body if isinstance(node, ast.ClassDef)]
    inner = [node for one in classes for node in one.body if isinstance(node, ast.Assign)]
    for node in (*tree.body, *inner):
        match node:
            case ast.Assign(targets=targets, value=value):
                pass
            case ast.AnnAssign(target=target, value=ast.expr() as value):
                targets = [target]
            case _:
                continue
        if _is_mutable(value):
            yield from (one.id for one in targets if isinstance(one, ast.Name))


def changed(tree: ast.AST) -> Iterator[str]:
    """The names of which something is changed anywhere in it, and those that a function declares global."""
    for node in ast.walk(tree):
        match node:
            case ast.Global(names=names):
                yield from names
            case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr=attribute)) if attribute in CHANGING:
                yield name
            case ast.Subscript(value=ast.Name(id=name), ctx=ast.Store() | ast.Del()):
                yield name
            case ast.AugAssign(target=ast.Name(id=name)):
                yield name


def faults(text: str) -> list[str]:
    """The names that are not as they should be."""
    tree = ast.parse(text)
    found = set(mutables(tree))
    lower = {name for name in found if name.upper() != name and name != "__all__"}
    # What a module's own body does, once, while it is imported, changes nothing afterwards.
    functions = [
        node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
    ]
    touched = {name for node in functions for name in changed(node)}
    declared = {name for node in ast.walk(tree) if isinstance(node, ast.Global) for name in node.names}
    return sorted(lower | (found & touched) | declared)


def _is_mutable(value: ast.expr) -> bool:
    if isinstance(value, ast.Call):
        name = value.func.id if isinstance(value.func, ast.Name) else getattr(value.func, "attr", "")
        return name in MAKERS
    return isinstance(value, MUTABLE)


@pytest.mark.parametrize("path", sorted(APP.rglob("*.py")), ids=lambda path: str(path.relative_to(APP)))
def test_a_module_holds_nothing_that_changes(path: Path):
    allowed = MAY_BE_LOST.get(str(path.relative_to(APP)), set())

    assert set(faults(path.read_text("utf-8"))) == allowed


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("seen = set()", ["seen"]),
        ("SEEN = []\ndef note(x):\n    SEEN.append(x)", ["SEEN"]),
        ("SEEN = {}\nasync def note(x):\n    SEEN[x] = 1", ["SEEN"]),
        ("SEEN = {}\nasync def note(x):\n    del SEEN[x]", ["SEEN"]),
        ("class Door:\n    seen = {}", ["seen"]),
        ("COUNT = 0\ndef note():\n    global COUNT\n    COUNT += 1", ["COUNT"]),
        ("import collections\nLAST = collections.deque()\nnote = lambda x: LAST.append(x)", ["LAST"]),
        ("WORDS = {'a': 1}\ndef word(x):\n    return WORDS[x]", []),
        ("WORDS = {}\nWORDS['a'] = 1", []),
        ("__all__ = ['a']", []),
    ],
)
def test_what_changes_is_found(text: str, told: list[str]):
    assert faults(text) == told
