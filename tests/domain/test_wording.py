from __future__ import annotations

import subprocess
import sys
from datetime import UTC, datetime
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.domain import wording
from app.domain.messages import OwedItem
from app.domain.phrasing import WordingError
from app.domain.wording import Wording

NOW = datetime(2026, 11, 30, 3, tzinfo=UTC)
BANGKOK = ZoneInfo("Asia/Bangkok")


def item(**given: Any) -> OwedItem:
    told: dict[str, Any] = {
        "title": "Bot for a shop",
        "link": "https://e.test/1",
        "source": "gigs",
        "subscriptions": ("bots",),
        "published_at": NOW,
        "text": "A shop needs a bot.",
        "fields": {"company": "Acme", "budget": 1500.0},
    }
    return OwedItem(**told | given)


def lines(template: str, language: str = "en", **given: Any) -> tuple[str, ...]:
    return Wording(template).lines(item(**given), subscription="bots", language=language, now=NOW, zone=BANGKOK)


def fault(template: str) -> str:
    with pytest.raises(WordingError) as caught:
        Wording(template).try_out(item(), now=NOW, zone=BANGKOK)
    return str(caught.value)


def test_an_item_is_told_in_the_words_of_the_template():
    template = """
    {{ item.title|upper }} ({{ item.source }}, {{ subscription }}, {{ language }})
    {% if item.fields.budget >= 1000 %}
    {{ item.fields.company }} pays {{ item.fields.budget }}
    {% endif %}

    {{ item.link }}
    """

    assert lines(template) == (
        "    BOT FOR A SHOP (gigs, bots, en)",
        "    Acme pays 1500",
        "    https://e.test/1",
    )


@pytest.mark.parametrize(
    ("template", "told"),
    [
        ("{{ item.published }}", "วันนี้ 10:00"),
        ("{{ item.published|time }}", "วันนี้ 10:00"),
        ("{{ item.published|time('date') }}", "จ. 30 พ.ย."),
        ("{{ item.published|time('clock') }}", "10:00"),
    ],
)
def test_times_are_those_of_the_recipient(template: str, told: str):
    assert lines(template, language="th") == (told,)


def test_what_an_item_does_not_have_is_empty():
    template = "{{ item.published }}|{{ item.published|time }}|{{ item.link }}|{{ item.fields.rate }}|{{ item.text }}|"

    assert lines(template, published_at=None, link=None, text="") == ("|||||",)
    assert lines("{{ item.fields.rate|default('?') }}") == ("?",)
    assert lines("{% if item.fields.rate is defined %}x{% else %}y{% endif %}") == ("y",)


def test_fields_are_looped_over():
    template = "{% for name, value in item.fields|items %}{{ loop.index }} {{ name }}: {{ value }}\n{% endfor %}"

    assert lines(template) == ("1 company: Acme", "2 budget: 1500")


def test_a_field_may_have_the_name_of_anything():
    assert lines("{{ item.fields.items }} {{ item.fields['day rate'] }}", fields={"items": 3, "day rate": 7}) == (
        "3 7",
    )


@pytest.mark.parametrize(
    ("template", "told"),
    [
        ("{{ 'ที่ที่ที่ที่'|truncate(3) }}", "ที่ที่…"),
        ("{{ item.text|replace('shop', 'hotel') }}", "A hotel needs a bot."),
        ("{{ (item.fields.budget * 1.07)|round(2) }}", "1605"),
        ("{{ item.fields.budget // 7 }} {{ item.title|length }}", "214 14"),
        ("{{ ['a', 'b']|join(', ') }} {{ item.title|join('-') }}", "a, b Bot for a shop"),
        ("{{ '7.5 '|trim|float + 1 }} {{ 'x'|int(3) }}", "8.5 3"),
        ("{{ true }} {{ 1 == 1.0 }} {{ none }}", "true true "),
        ("{{ 'a' ~ 1 if 'bot' in item.text else 'b' }}", "a1"),
        ("{{ 'ab cd'|title }} {{ 'ab'|capitalize }} {{ 'AB'|lower }}", "Ab Cd Ab ab"),
    ],
)
def test_filters_do_what_their_names_say(template: str, told: str):
    assert lines(template) == (told.rstrip(),)


def test_a_template_escapes_nothing_as_that_is_the_channels():
    assert lines("{{ item.title }} & <b>", title="a < b & c") == ("a < b & c & <b>",)


def test_titles_and_other_values_turn_nothing_round():
    [line] = lines("- {{ item.title }} - {{ item.text }} -", title="مطور \u202eويب", text="עברית")

    assert line == "- \u2068مطور ويب\u2069 - \u2068עברית\u2069 -"


def test_an_isolate_that_a_filter_has_cut_is_closed_in_its_line():
    made = lines("{{ item.title|truncate(4) }}\nnext \u2069\u202e", title="مطور ويب كبير")

    assert made == ("\u2068مط…\u2069", "next")


@pytest.mark.parametrize(
    ("template", "told"),
    [
        ("a\n{{ item.titel }}", 'line 2: an item has no "titel"; it has title'),
        ("{{ itme.title }}", 'line 1: there is no "itme"; there are item, subscription, language'),
        ("\n\n{{ item.title", "line 3: "),
        ("{% if item %}", "line 1: "),
        ("{{ item.title|shout }}", "line 1: No filter named 'shout'"),
        ("{{ item.title is weird }}", "line 1: No test named 'weird'"),
        ("{{ item.title.upper() }}", "line 1: a call is not in the language; remove it"),
        ("{{ item.title.upper }}", "line 1: "),
        ("{{ item.__class__ }}", 'line 1: an item has no "__class__"'),
        ("{{ item.title.__class__.__mro__ }}", "line 1: "),
        ("{{ item['__class__'] }}", "line 1: "),
        ("{{ item.title[0:3] }}", "line 1: [a:b] is not in the language; write |truncate(80)"),
        ("{% set a = 1 %}", "line 1: {% set %} is not in the language"),
        ("{{ 2 ** 99999999 }}", "line 1: ** is not in the language"),
        ("{{ '%999999999d' % 1 }}", "line 1: % is not in the language"),
        ("{{ 'x' * 999999999 }}", "line 1: only numbers can be multiplied"),
        ("{{ range(9) }}", "line 1: "),
        ("{% for c in item.text %}{% endfor %}", "line 1: loops over something else than the fields"),
        (
            "{% for a in item.fields %}{% for b in item.fields %}{% endfor %}{% endfor %}",
            "line 1: has a loop in a loop",
        ),
        ("{% for a in item.fields recursive %}{% endfor %}", "line 1: loops over"),
        ("{% include 'x' %}", "line 1: {% include %} is not"),
        ("{% macro a() %}{% endmacro %}", "line 1: {% macro %} is not"),
        ("{% extends 'x' %}", "line 1: {% extends %} is not"),
        ("{{ item.title|replace('', item.text) }}", "line 1: replace would make the text too long"),
        ("{{ item.published|time('sometime') }}", 'line 1: time has no "sometime"; it has time, date, clock'),
        ("\n{{ item.fields.a + [] }}", "line 2: "),
        ("x" * 4001, "line 1: is longer than 4,000 characters"),
        ("{{ " + "(" * 1500 + "1" + ")" * 1500 + " }}", "line 1: "),
    ],
)
def test_what_is_wrong_is_told_with_its_line(template: str, told: str):
    assert fault(template).startswith(told)


def test_fields_may_be_numbers_or_texts_when_a_template_is_tried_out():
    for template in ("{{ item.fields.a > 500 }}", "{{ item.fields.a + ' baht' }}", "{{ item.fields.a|round }}"):
        Wording(template).try_out(item(), now=NOW, zone=BANGKOK)


def test_the_fields_that_are_named_are_known_with_their_lines():
    assert Wording("{{ item.fields.a }}\n{{ item['fields']['b c'] }}{{ item.fields.a }}").fields == {"a": 1, "b c": 2}


def test_a_template_that_fails_with_one_item_says_so():
    with pytest.raises(WordingError, match="line 2"):
        lines("x\n{{ item.fields.budget + 1 }}", fields={"budget": "much"})


def test_what_it_makes_is_cut_but_not_in_a_link():
    link = "https://e.test/" + "x" * 300
    made = lines(
        "{% for name in item.fields %}{{ item.link }} {% endfor %}", link=link, fields=dict.fromkeys("abcdefghijklmno")
    )

    [line] = made
    assert len(line) <= wording.OUTPUT_LIMIT
    assert set(line.rstrip("…").split()) == {link}


def test_very_long_values_make_no_very_long_message():
    made = lines("{{ item.text }}{{ item.text }}{{ item.fields.a }}", text="word " * 5000, fields={"a": "b" * 90_000})

    assert sum(map(len, made)) <= wording.OUTPUT_LIMIT


@given(st.text(max_size=60), st.text(max_size=200))
def test_whatever_a_template_makes_is_safe_beside_other_text(template: str, title: str):
    source = template.replace("{", "") + "{{ item.title }}\n{{ item.text }}"

    for line in lines(source, title=title, text=title):
        assert line.strip()
        assert len(line.splitlines()) == 1
        depth = 0
        for character in line:
            assert character not in "\u202a\u202b\u202c\u202d\u202e\u2066\u2067"
            depth += {"\u2068": 1, "\u2069": -1}.get(character, 0)
            assert depth >= 0
        assert depth == 0


def test_jinja_is_imported_only_where_there_is_a_template():
    told = subprocess.run(
        [sys.executable, "-c", "import sys, app.domain.wording; print('jinja2' in sys.modules)"],
        capture_output=True,
        text=True,
        check=True,
    )

    assert told.stdout.strip() == "False"
