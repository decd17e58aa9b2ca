"""Every recipe of docs/recipes/ reads an invented answer of the shape that it was written for."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from app import plugins, settings
from app.clients.download import Downloaded
from app.domain.items import Item
from app.domain.numbers import Span, span_of

ROOT = Path(__file__).parents[2]
RECIPES = {path.stem: path for path in (ROOT / "docs" / "recipes").glob("*.md") if path.stem != "README"}
ANSWERS = {path.stem: path for path in (Path(__file__).parent / "recipes").iterdir()}

NINE = datetime(2026, 11, 30, 9, tzinfo=UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class First:
    """The first item that a recipe finds, and how many there are."""

    key: str
    title: str
    link: str
    text: str
    fields: dict[str, Any] = field(default_factory=dict)
    published_at: datetime | None = NINE
    budget: tuple[float, float] | None = None
    count: int = 1


EXPECTED = {
    "remote-ok": First(
        key="900101",
        title="Python Developer at Larchmoor",
        link="https://remoteok.example/remote-jobs/remote-python-developer-larchmoor-900101",
        text="Build a chatbot.",
        fields={"budget": "60000-80000 USD", "location": "Worldwide", "tags": "python, dev"},
        budget=(60_000, 80_000),
        count=2,
    ),
    "remotive": First(
        key="800201",
        title="Backend Engineer at Copperfen",
        link="https://remotive.example/remote-jobs/software-dev/backend-engineer-800201",
        text="Queues & webhooks.",
        fields={"budget": "$31,2k- $52k", "location": "Worldwide", "type": "full_time", "tags": "python, fastapi"},
        budget=(31_200, 52_000),
    ),
    "arbeitnow": First(
        key="bot-developer-quillmarch-4410",
        title="Bot Developer (m/w/d) at Quillmarch GmbH",
        link="https://www.arbeitnow.example/jobs/companies/quillmarch/bot-developer-4410",
        text="Role Python.",
        fields={"location": "Berlin", "types": "full time", "tags": "IT"},
    ),
    "we-work-remotely": First(
        key="https://weworkremotely.example/remote-jobs/larchmoor-python-bots-engineer",
        title="Larchmoor: Python & Bots Engineer",
        link="https://weworkremotely.example/remote-jobs/larchmoor-python-bots-engineer",
        text="Build a bot.",
    ),
    "hacker-news-hiring": First(
        key="https://news.ycombinator.example/item?id=70000001",
        title='New comment by somebody in "Ask HN: Who is hiring? (November 2026)"',
        link="https://news.ycombinator.example/item?id=70000001",
        text="Tidewell | Backend Engineer | REMOTE | $120k - $150k We build bots.",
    ),
    "hacker-news-search": First(
        key="70000002",
        title="Ask HN: Who is hiring? (November 2026) - somebody",
        link="https://news.ycombinator.com/item?id=70000002",
        text="Copperfen | Python | REMOTE Apply / write.",
        fields={"author": "somebody", "thread": "Ask HN: Who is hiring? (November 2026)"},
    ),
    "jobicy": First(
        key="120301",
        title="Data Engineer \u2013 Pipelines at Stonewick",
        link="https://jobicy.example/jobs/120301-data-engineer",
        text="Pipelines in Python.",
        fields={"location": "Asia", "type": "full-time", "budget": "90000-120000 USD"},
        budget=(90_000, 120_000),
        count=2,
    ),
    "himalayas": First(
        key="https://himalayas.example/companies/tidewell/jobs/platform-engineer",
        title="Platform Engineer at Tidewell",
        link="https://himalayas.example/companies/tidewell/jobs/platform-engineer",
        text="Own the queue.",
        fields={"budget": "130000-160000 USD", "location": "Thailand, Vietnam", "seniority": "Senior"},
        budget=(130_000, 160_000),
    ),
    "greenhouse": First(
        key="5001001",
        title="Site Reliability Engineer",
        link="https://job-boards.greenhouse.example/larchmoor/jobs/5001001",
        text="Keep it running & quiet.",
        fields={"location": "Bangkok or remote", "departments": "Engineering"},
    ),
    "lever": First(
        key="5ac21346-0000-4000-8000-000000000001",
        title="Support Engineer, LINE bots",
        link="https://jobs.lever.example/copperfen/5ac21346-0000-4000-8000-000000000001",
        text="Answer people.",
        fields={"location": "Yangon", "team": "APAC", "workplace": "remote", "budget": "24000-36000 USD"},
        budget=(24_000, 36_000),
    ),
    "ashby": First(
        key="510ed476-0000-4000-8000-000000000001",
        title="Engineer, Feeds",
        link="https://jobs.ashbyhq.example/tidewell/510ed476-0000-4000-8000-000000000001",
        text="Feeds.",
        fields={
            "budget": "$180K \u2013 $240K \u2022 Offers Equity",
            "location": "Remote (world)",
            "team": "Watching",
            "type": "FullTime",
        },
        budget=(180_000, 240_000),
    ),
    "smartrecruiters": First(
        key="744000000000001",
        title="Product Manager",
        link="https://jobs.smartrecruiters.com/Quillmarch/744000000000001",
        text="",
        fields={"location": "Hanoi, vn", "department": "Product"},
    ),
    "adzuna": First(
        key="4900000001",
        title="Python Developer at Stonewick",
        link="https://www.adzuna.example/land/ad/4900000001?se=x&utm_medium=api&utm_source=y",
        text="Write Python \u2026",
        fields={"budget": "50000-55000.5", "location": "Leeds", "predicted": "0"},
        budget=(50_000, 55_000.5),
    ),
    "github-releases": First(
        key="tag:github.example,2008:Repository/700000001/v2.0.0",
        title="2.0.0: lanes",
        link="https://github.example/tidewell/queue/releases/tag/v2.0.0",
        text="New Lanes",
    ),
    "reddit": First(
        key="t3_1zz0001",
        title="[Hiring] A LINE bot",
        link="https://www.reddit.example/r/forhire/comments/1zz0001/hiring_a_line_bot/",
        text="A bot for $500.",
    ),
    "python-jobs": First(
        key="https://www.python.example/jobs/7001/",
        title="Django Developer, Copperfen",
        link="https://www.python.example/jobs/7001/",
        text="Chiang Mai, Thailand Forms & queues.",
        published_at=None,
    ),
    "any-page": First(
        key="501",
        title="รับเขียนบอท LINE",
        link="https://board.example/jobs/501?utm_source=list",
        text="บอทสำหรับร้าน ภาษา Python",
        fields={"budget": "฿5,000-8,000", "company": "Larchmoor"},
        budget=(5_000, 8_000),
        count=2,
    ),
}


def source_of(recipe: str, folder: Path) -> settings.SourceSettings:
    """The recipe's table as the settings read it."""
    [table] = re.findall(r"```toml\n(.*?)```", RECIPES[recipe].read_text("utf-8"), re.DOTALL)
    (folder / "wakebell.toml").write_text(table, "utf-8")
    environ = {
        "WAKEBELL_CONFIG": str(folder / "wakebell.toml"),
        "ADZUNA_URL": "https://api.adzuna.example/v1/api/jobs/gb/search/1?app_key=hush",
    }
    [source] = settings.load(environ).sources.values()
    return source


def read(source: settings.SourceSettings, answer: Path) -> tuple[tuple[Item, ...], tuple[str, ...]]:
    """The items of a first page, and what was odd about it."""
    module = plugins.load("app.sources", source.kind)
    got = Downloaded(body=answer.read_bytes(), content_type="", url=str(getattr(source.options, "url", "")))
    if source.kind == "feed":
        fetched = module.read(got)
        return fetched.items, fetched.warnings
    pages = module.Pages(source.options)
    pages.read(got, 1)
    items, warnings = pages.gathered.items()
    return items, (*pages.warnings, *warnings)


def test_each_recipe_has_an_answer_and_an_expectation():
    assert RECIPES.keys() == ANSWERS.keys() == EXPECTED.keys()


@pytest.mark.parametrize("recipe", RECIPES)
def test_it_finds_what_it_was_written_for(recipe: str, tmp_path: Path):
    expected = EXPECTED[recipe]

    items, warnings = read(source_of(recipe, tmp_path), ANSWERS[recipe])

    first = items[0]
    assert (len(items), warnings) == (expected.count, ())
    assert (first.key, first.title, first.link) == (expected.key, expected.title, expected.link)
    assert (first.text, first.published_at) == (expected.text, expected.published_at)
    assert expected.fields.items() <= dict(first.fields).items()
    assert span_of(first.fields.get("budget")) == (Span(*expected.budget) if expected.budget else None)


@pytest.mark.parametrize("recipe", RECIPES)
def test_it_says_what_nobody_has_looked_at(recipe: str):
    text = RECIPES[recipe].read_text("utf-8")

    assert "**Seen.**" in text
    assert "**Not verified.**" in text
    assert f"({recipe}.md)" in (ROOT / "docs" / "recipes" / "README.md").read_text("utf-8")
