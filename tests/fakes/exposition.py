"""A strict reader of Prometheus's text format, line by line as the format is described."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

NAME = r"[a-zA-Z_:][a-zA-Z0-9_:]*"
HELP = re.compile(rf"# HELP ({NAME}) ((?:[^\\\n]|\\\\|\\n)*)")
TYPE = re.compile(rf"# TYPE ({NAME}) (counter|gauge|histogram|summary|untyped)")
SAMPLE = re.compile(rf"({NAME})(?:\{{(.*)\}})? (-?[0-9.e+-]+|NaN|\+Inf|-Inf)", re.DOTALL)
LABEL = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\\\|\\"|\\n)*)"(?:,|$)')
ESCAPE = re.compile(r"\\(.)")


@dataclass(slots=True)
class Read:
    """One family."""

    help: str
    type: str = ""
    samples: dict[tuple[tuple[str, str], ...], float] = field(default_factory=dict)


def parsed(text: str) -> dict[str, Read]:
    """The families by name. AssertionError where the text breaks a rule.

    Each line ends; a heading comes once and before its samples; samples of a family stand together; none comes twice.
    """
    assert text.endswith("\n")
    families: dict[str, Read] = {}
    current = ""
    for line in text[:-1].split("\n"):
        if line.startswith("# HELP "):
            found = HELP.fullmatch(line)
            assert found is not None, line
            assert found[1] not in families, f"{found[1]} twice"
            current = found[1]
            families[current] = Read(help=_unescaped(found[2]))
        elif line.startswith("# TYPE "):
            found = TYPE.fullmatch(line)
            assert found is not None, line
            assert found[1] == current, line
            assert not families[current].samples, line
            families[current].type = found[2]
        else:
            found = SAMPLE.fullmatch(line)
            assert found is not None, line
            assert found[1] == current, line
            labels = _labels(found[2] or "")
            assert labels not in families[current].samples, f"{line} twice"
            families[current].samples[labels] = float(found[3])
    assert all(family.type for family in families.values())
    return families


def _labels(text: str) -> tuple[tuple[str, str], ...]:
    labels: list[tuple[str, str]] = []
    place = 0
    while place < len(text):
        found = LABEL.match(text, place)
        assert found is not None, text
        labels.append((found[1], _unescaped(found[2])))
        place = found.end()
    assert len({name for name, _ in labels}) == len(labels), text
    return tuple(labels)


def _unescaped(text: str) -> str:
    return ESCAPE.sub(lambda found: "\n" if found[1] == "n" else found[1], text)
