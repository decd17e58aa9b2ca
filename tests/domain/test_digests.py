from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.domain import digests, textcut
from app.domain.messages import Digest, DigestItem

LINKS = st.one_of(st.none(), st.from_regex(r"https://[a-z]{1,8}\.test/[a-z0-9?&=%./-]{0,60}", fullmatch=True))
WORDS = st.one_of(st.sampled_from(["ที่", "👩‍👩‍👧", "မြန်မာ", "dev", "𝒳"]), st.text(min_size=1, max_size=8))

SOURCES = st.sampled_from(["board", "gigs"])


@st.composite
def many_items(draw):
    count = draw(st.integers(min_value=1, max_value=12))
    return tuple(
        item(f"{number}) " + " ".join(draw(st.lists(WORDS, max_size=6))), draw(LINKS), draw(SOURCES))
        for number in range(count)
    )


def item(title: str, link: str | None = None, source: str = "board", subscriptions: tuple[str, ...] = ("python",)):
    return DigestItem(title=title, link=link, source=source, subscriptions=subscriptions)


def digest(*items: DigestItem, language: str = "en") -> Digest:
    return Digest(items=items, to="me", language=language)


def test_one_item_alone_says_why_it_is_told():
    text = digests.as_text(digest(item("Dev", "https://e.test/1", subscriptions=("bots", "python"))))

    assert text == "Dev\nhttps://e.test/1\nboard · bots, python"


def test_an_item_of_nothing_but_a_title_is_its_title():
    assert digests.as_text(digest(item("All is well", source="", subscriptions=()))) == "All is well"


def test_several_items_stand_under_a_heading():
    text = digests.as_text(digest(item("Dev", "https://e.test/1"), item("Cook")))

    assert text == "2 new items\n\nDev\nhttps://e.test/1\n\nCook\n\nboard · python"


@pytest.mark.parametrize(
    ("source", "subscriptions", "reason"),
    [("gigs", ("python",), "gigs · python"), ("board", ("bots",), "board · bots"), ("", (), None)],
)
def test_items_that_are_told_for_different_reasons_say_so_each(
    source: str, subscriptions: tuple[str, ...], reason: str | None
):
    told = digest(item("Dev", "https://e.test/1"), item("Cook", source=source, subscriptions=subscriptions))

    last = "\n".join(filter(None, ["Cook", reason]))
    assert digests.as_text(told) == f"2 new items\n\nDev\nhttps://e.test/1\nboard · python\n\n{last}"


def test_several_items_of_nothing_but_titles_have_no_last_line():
    bare = [item(title, source="", subscriptions=()) for title in ("Dev", "Cook")]

    assert digests.as_text(digest(*bare)) == "2 new items\n\nDev\n\nCook"


def test_the_heading_is_in_the_language_of_the_recipient():
    text = digests.as_text(digest(item("Dev"), item("Cook"), language="th"))

    assert text.startswith("มีรายการใหม่ 2 รายการ\n\n")


def test_an_empty_digest_is_no_text():
    assert digests.as_text(digest()) == ""
    assert digests.lay_out(digest(), limit=100, length=len) == []


def test_a_long_digest_is_cut_between_items():
    told = digest(*(item(f"Item {number}", f"https://e.test/{number}") for number in range(9)))

    parts = digests.lay_out(told, limit=60, length=len)

    assert parts[0] == "9 new items\n\nItem 0\nhttps://e.test/0"
    assert parts[1] == "Item 1\nhttps://e.test/1\n\nItem 2\nhttps://e.test/2"
    assert "\n\n".join(parts) == digests.as_text(told)


@given(many_items(), st.integers(min_value=80, max_value=400))
def test_parts_keep_every_title_in_order_and_every_link_whole(items, limit):
    told = digest(*items)

    parts = digests.lay_out(told, limit=limit, length=textcut.utf16_units)

    assert all(textcut.utf16_units(part) <= limit for part in parts)
    together = "".join("".join(parts).split())
    position = 0
    for each in items:
        position = together.index("".join(digests.shown_title(each, "en").split()), position)
        assert each.link is None or any(each.link in part.split("\n") for part in parts)


@given(many_items(), st.integers(min_value=80, max_value=400))
def test_parts_together_are_the_whole(items, limit):
    told = digest(*items)

    parts = digests.lay_out(told, limit=limit, length=textcut.utf16_units)

    assert "".join("".join(parts).split()) == "".join(digests.as_text(told).split())


def test_a_link_that_no_part_could_hold_is_left_out_and_its_title_kept():
    parts = digests.lay_out(digest(item("Dev", "https://e.test/" + "x" * 100)), limit=50, length=len)

    assert parts == ["Dev\nboard · python"]


def test_a_link_longer_than_the_rest_of_a_part_stands_whole_in_the_next():
    link = "https://e.test/" + "x" * 30

    parts = digests.lay_out(digest(item("A long title of some words", link)), limit=50, length=len)

    assert parts == ["A long title of some words", link, "board · python"]


@pytest.mark.parametrize(
    ("title", "shown"),
    [
        ("  Dev \t\n at\u00a0Acme\u2028", "Dev at Acme"),
        ("bell\a and nul\0", "bell and nul"),
        ("\ufeffDev", "Dev"),
        ("50% <b>off</b> & more", "50% <b>off</b> & more"),
        ("", "(no title)"),
        (" \u202e ", "(no title)"),
        ("abc\u202edef", "\u2068abcdef\u2069"),
        ("مطور \u202eويب", "\u2068مطور ويب\u2069"),
        ("\u2067עברית\u2069", "\u2068עברית\u2069"),
        ("lone \ud800", "lone \ufffd"),
        ("นักพัฒนา", "นักพัฒนา"),
    ],
)
def test_a_title_is_one_line_that_turns_nothing_round(title, shown):
    assert digests.shown_title(item(title), "en") == shown


def test_a_title_is_shortened_at_300_clusters():
    assert digests.shown_title(item("ที่" * 301), "en") == "ที่" * 299 + "…"


def test_a_heap_of_marks_is_shortened_too():
    assert len(digests.shown_title(item("a" + "\u0301" * 100_000), "en")) <= digests.TITLE_CHARACTERS


@pytest.mark.parametrize(
    ("link", "shown"),
    [
        ("https://e.test/ก?a=1&b=%20", "https://e.test/ก?a=1&b=%20"),
        (" https://e.test/a b\n", "https://e.test/a%20b"),
        ("https://e.test/a\nhttps://evil.test", "https://e.test/a%0Ahttps://evil.test"),
        ("https://e.test/\u202egpj.exe", "https://e.test/%E2%80%AEgpj.exe"),
    ],
)
def test_a_link_is_as_published_but_for_what_cannot_be_seen(link, shown):
    assert digests.shown_link(link) == shown


def test_what_is_left_out_is_counted_at_the_end():
    told = Digest(items=(item("Dev"), item("Cook")), more=37, to="me")

    assert digests.as_text(told) == "39 new items\n\nDev\n\nCook\n\nboard · python\n\nand 37 more"


def test_one_item_and_others_that_are_left_out():
    told = Digest(items=(item("Dev"),), more=1, to="me", language="vi")

    assert digests.as_text(told) == "Có 2 mục mới\n\nDev\nboard · python\n\nvà 1 mục khác"


def test_where_no_item_is_shown_their_number_is():
    assert digests.as_text(Digest(more=1, to="me")) == "1 new item"
    assert digests.as_text(Digest(more=12, to="me", language="my")) == "အသစ် 12 ခု ရှိပါသည်"


def test_items_in_other_words_stand_among_the_others():
    other = replace(item("Cook", "https://e.test/2"), lines=("> COOK", "> now"))

    text = digests.as_text(digest(item("Dev", "https://e.test/1"), other))

    assert text == "2 new items\n\nDev\nhttps://e.test/1\nboard · python\n\n> COOK\n> now"


def test_items_that_are_all_in_other_words_give_no_reason():
    others = (replace(item(title), lines=(title.upper(),)) for title in ("Dev", "Cook"))

    assert digests.as_text(digest(*others)) == "2 new items\n\nDEV\n\nCOOK"


def test_a_link_in_other_words_that_no_part_could_hold_is_left_out():
    told = replace(item("Dev"), lines=("see https://e.test/" + "x" * 100 + " now",))
    alone = replace(item("Dev"), lines=("https://e.test/" + "x" * 100,))

    assert digests.lay_out(digest(told), limit=50, length=len) == ["see  now"]
    assert digests.lay_out(digest(alone), limit=50, length=len) == ["Dev"]


@given(many_items(), st.integers(min_value=80, max_value=400), st.integers(min_value=0, max_value=3))
def test_each_item_is_in_the_portion_in_which_it_begins(items, limit, more):
    told = Digest(items=items, more=more, to="me")

    portions = digests.portions(told, limit=limit, length=textcut.utf16_units)

    assert [place for portion in portions for place in portion.items] == list(range(len(items)))
    for portion in portions:
        for place in portion.items:
            assert f"{place})" in portion.text


def test_a_note_shows_no_items():
    portions = digests.portions(Digest(note="all\n\nis well", to="me"), limit=50, length=len)

    assert portions == [digests.Portion("all\n\nis well", ())]


@given(st.text(max_size=80), st.integers(min_value=1, max_value=60))
def test_lines_are_no_longer_than_they_may_be_but_for_the_marks_that_close_them(text, characters):
    lines = digests.shown_lines(text, characters=characters)

    assert sum(len(line.rstrip("\u2069")) for line in lines) <= characters
    assert all(line.strip() for line in lines)
