from __future__ import annotations

from datetime import timedelta
from typing import get_args

import pytest

from app.domain import commands, commandwords
from app.domain.commands import Command, TooMuch
from app.domain.commandwords import NAMES, Name
from app.settings.model import Language

LANGUAGES = get_args(Language)


@pytest.mark.parametrize(
    ("language", "text", "name", "rest"),
    [
        ("en", "help", "help", ""),
        ("en", "HELP!", "help", ""),
        ("en", "/start", "help", ""),
        ("en", " \u200b Watch\u00a0 python,  line   bot ", "watch", "python,  line   bot"),
        ("en", "ｗａｔｃｈ\u3000ｐｙｔｈｏｎ", "watch", "python"),
        ("en", "/watch@gigs_bot python", "watch", "python"),
        ("en", "watch: c#, .net", "watch", "c#, .net"),
        ("en", "watch", "watch", ""),
        ("en", "stop watching 2", "unwatch", "2"),
        ("en", "latest", "latest", ""),
        ("en", "latest 3", "latest", "3"),
        ("en", "mute 2h", "mute", "2h"),
        ("th", "ติดตาม ไลน์บอท, ทํางาน", "watch", "ไลน์บอท, ทำงาน"),
        ("th", "เลิกติดตาม 1", "unwatch", "1"),
        ("th", "ล่าสุด ๓", "latest", "๓"),
        ("th", "List", "list", ""),
        ("vi", "Theo dõi python", "watch", "python"),
        ("vi", "BO THEO DOI python", "unwatch", "python"),
        ("vi", "bo\u0309 theo do\u0303i 1", "unwatch", "1"),
        ("vi", "trạng thái", "status", ""),
        ("my", "စောင့်ကြည့် python", "watch", "python"),
        ("my", "မစောင့်ကြည့်တော့ ၁", "unwatch", "၁"),
        ("my", "စာရင်း။", "list", ""),
        ("my", "status", "status", ""),
    ],
)
def test_a_command_is_read_in_the_language_and_in_english(language: str, text: str, name: str, rest: str):
    found = commands.parse(text, language)

    assert found is not None
    assert (found.name, found.rest) == (name, rest)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "/",
        "?",
        "hello",
        "help me, please",
        "the list",
        "list of doctors",
        "latest news?",
        "status of my order",
        "watching tv",
        "helpful",
        "รายการ",
        "watch " + "x" * 2000,
    ],
)
def test_what_only_looks_like_one_is_an_ordinary_text(text: str):
    assert commands.parse(text, "en") is None


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("name", NAMES)
def test_every_command_has_words_in_every_language(language: str, name: Name):
    assert commands.parse(name, language) == Command(name)
    for alias in commandwords.words_of(language).aliases[name].split(","):
        assert commands.parse(alias, language) == Command(name)


def test_phrases_are_parted_by_commas_of_any_script_and_kept_once():
    assert commands.phrases_of('python,  "ไลน์  บอท"、PYTHON၊ c++,, \u202ebot') == ("python", "ไลน์ บอท", "c++", "bot")


def test_a_phrase_is_no_pattern():
    assert commands.phrases_of("/py.*/, a|b") == ("/py.*/", "a|b")


@pytest.mark.parametrize("rest", ["", " , ,", '""', "\u202e"])
def test_no_phrases_are_none(rest: str):
    assert commands.phrases_of(rest) == ()


@pytest.mark.parametrize(
    ("rest", "what", "most"), [(",".join(map(str, range(11))), "many", 10), ("x" * 101, "long", 100)]
)
def test_what_is_too_much_is_told_with_its_limit(rest: str, what: str, most: int):
    with pytest.raises(TooMuch) as caught:
        commands.phrases_of(rest)

    assert (caught.value.what, caught.value.most) == (what, most)


@pytest.mark.parametrize(
    ("language", "rest", "length"),
    [
        ("en", "2h", timedelta(hours=2)),
        ("en", "30 MIN", timedelta(minutes=30)),
        ("en", "1d", timedelta(days=1)),
        ("en", "off", timedelta(0)),
        ("en", "900d", timedelta(days=30)),
        ("th", "2 ชม.", timedelta(hours=2)),
        ("th", "๓๐ นาที", timedelta(minutes=30)),
        ("th", "ยกเลิก", timedelta(0)),
        ("vi", "1 ngày", timedelta(days=1)),
        ("vi", "hủy", timedelta(0)),
        ("my", "၂ နာရီ", timedelta(hours=2)),
        ("my", "1 ရက်", timedelta(days=1)),
        ("my", "2h", timedelta(hours=2)),
    ],
)
def test_a_length_is_read_in_the_language_and_in_english(language: str, rest: str, length: timedelta):
    assert commands.mute_of(rest, language) == length


@pytest.mark.parametrize("rest", ["", "soon", "2", "0h", "-2h", "1.5h", "2 fortnights", "9999999h"])
def test_what_is_no_length_is_none(rest: str):
    assert commands.mute_of(rest, "en") is None


@pytest.mark.parametrize(("rest", "count"), [("", 5), ("3", 3), ("0", 1), ("99", 5)])
def test_at_most_five_are_asked_for(rest: str, count: int):
    assert commands.latest_of(rest) == count


@pytest.mark.parametrize(("rest", "number"), [("2", 2), ("#2", 2), ("2.", 2), ("two", None), ("12345678", None)])
def test_a_number_is_one_of_the_list(rest: str, number: int | None):
    assert commands.number_of(rest) == number
