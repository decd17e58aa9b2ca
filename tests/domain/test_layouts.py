from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.domain import layouts, textcut
from app.domain.messages import Digest, DigestItem

MARKUP = layouts.Markup(escape=lambda text: text.replace("*", r"\*").replace(":", r"\:"), link=lambda link: f"<{link}>")
TEXTS = st.lists(st.sampled_from(["https://e.test/*", " ", "\n", "*", "x", "<", "😀", "https:", "ที่", "."])).map("".join)


def digest(*titles: str, link: str | None = None) -> Digest:
    items = tuple(DigestItem(title=title, link=link, source="board", subscriptions=("all",)) for title in titles)
    return Digest(items=items, to="me")


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("*a*", r"\*a\*"),
        ("https://e.test/*", "<https://e.test/*>"),
        ("see https://e.test/*. Really*", r"see <https://e.test/*>. Really\*"),
        ("งานhttps://e.test/1", "งาน<https://e.test/1>"),
        ("HTTP://E.test and http://", r"<HTTP://E.test> and http\://"),
        ("", ""),
    ],
)
def test_links_stay_links_and_marks_become_text(text: str, written: str):
    assert MARKUP.write(text) == written
    assert MARKUP.length(text) == len(written)


@given(st.lists(TEXTS, min_size=1, max_size=30), st.integers(40, 200))
def test_no_part_is_longer_than_it_may_be_and_all_that_is_ink_is_there(titles: list[str], limit: int):
    parts = layouts.lay_out(digest(*titles), MARKUP, limit=limit)

    assert all(part.length == textcut.utf16_units(part.marked) <= limit for part in parts)
    assert [place for part in parts for place in part.items] == list(range(len(titles)))


def test_a_title_is_shortened_before_it_fills_a_part():
    [first, *_] = layouts.lay_out(digest("*" * 90, link="https://e.test/1"), MARKUP, limit=100)

    assert first.text.startswith("*" * 24 + "…\nhttps://e.test/1")


def test_titles_that_fit_are_left_alone():
    [part] = layouts.portions(digest("x" * 50), limit=100, length=len)

    assert part.text.startswith("x" * 50 + "\n")
