"""What the configuration file says of each kind, and what is told when it cannot be meant."""

from __future__ import annotations

from pathlib import Path

import pytest

from app import settings
from app.domain.errors import ConfigError

JSON = """
[sources.gigs]
kind = "json"
url = "https://gigs.example/api"
items = "data.jobs[?open]"
key = "id"
title = "name"
"""

HTML = """
[sources.board]
kind = "html"
url = "https://board.example/latest"
items = "li.job"
title = "h3"
link = "a@href"
fields = { budget = ".price" }
"""


def load(text: str, folder: Path) -> settings.Settings:
    (folder / "wakebell.toml").write_text(text, "utf-8")
    return settings.load({"WAKEBELL_CONFIG": str(folder / "wakebell.toml"), "TOKEN": "Bearer hush-hush"})


def problems(text: str, folder: Path) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        load(text, folder)
    return caught.value.problems


def test_both_kinds_are_taken(tmp_path: Path):
    headers = 'headers = { Authorization = "env:TOKEN" }\nbody = { q = "bot", page = { size = 5 } }\n'

    sources = load(JSON + headers + HTML, tmp_path).sources

    assert [(source.name, source.kind) for source in sources.values()] == [("gigs", "json"), ("board", "html")]
    assert "hush-hush" not in repr(sources)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (
            JSON.replace("[?open]", "[?open"),
            "sources.gigs.items: is no JMESPath expression: it ends too early; complete it",
        ),
        (JSON + 'fields = { pay = "max(" }\n', "sources.gigs.fields.pay: is no JMESPath expression: it ends too early"),
        (JSON + 'itmes = "x"\n', 'sources.gigs.itmes: there is no such key; did you mean "items"?'),
        (JSON.replace('title = "name"\n', ""), "sources.gigs.title: is missing; write it"),
        (JSON + "max_pages = 0\n", "sources.gigs.max_pages: must be greater than or equal to 1; change it"),
        (JSON + 'method = "GET"\nbody = "x"\n', "sources.gigs: a body is sent with POST only; write method"),
        (JSON + "body = 5\n", "sources.gigs.body: must be a "),
        (HTML.replace("li.job", "li["), "sources.board.items: is no CSS selector that can be read; try it"),
        (HTML.replace("a@href", "a::attr(href)"), "sources.board.link: is no CSS selector that can be read; write the"),
        (HTML.replace(".price", "{.price"), "sources.board.fields.budget: has a brace without its partner; write {{"),
        (HTML + "body = {}\n", "sources.board.body: there is no such key"),
    ],
)
def test_what_cannot_be_meant_is_told_by_the_name_of_its_option(text: str, told: str, tmp_path: Path):
    found = problems(text, tmp_path)

    assert [problem for problem in found if f"wakebell.toml: {told}" in problem], found


def test_a_changed_key_makes_another_source_of_it_and_a_changed_list_does_not(tmp_path: Path):
    first = load(JSON, tmp_path).sources["gigs"].fingerprint
    narrowed = load(JSON.replace("[?open]", "[?open && remote]"), tmp_path).sources["gigs"].fingerprint
    other = load(JSON.replace('"id"', '"uuid"'), tmp_path).sources["gigs"].fingerprint

    assert first == narrowed != other
