from __future__ import annotations

import os
import sys
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from subprocess import run
from typing import Any

import httpx
import pytest
import respx
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from app.clients.download import Downloaded
from app.domain.errors import Failure, TemporaryFailure
from app.domain.items import Fetched, Item, Unchanged
from app.sources import Reading
from app.sources.html import Options, Pages, fetch

URL = "https://e.test/board/latest?hush=1"
ROOT = Path(__file__).parents[2]


def options(**more: Any) -> Options:
    return Options.model_validate({"url": URL, "items": "li.job", "title": "h3", **more})


def page(*items: str, head: str = "", after: str = "") -> str:
    listed = "".join(f'<li class="job">{item}</li>' for item in items)
    return f"<!doctype html><html><head><title>Jobs</title>{head}</head><body><ul>{listed}</ul>{after}</body></html>"


def read(body: bytes | str, content_type: str = "text/html", **more: Any) -> tuple[Item, ...]:
    pages = Pages(options(**more))
    encoded = body.encode() if isinstance(body, str) else body
    pages.read(Downloaded(body=encoded, content_type=content_type, url=URL), 1)
    return pages.gathered.items()[0]


async def round_of(**more: Any) -> Fetched | Unchanged:
    async with httpx.AsyncClient() as http:
        return await fetch(options(**more), Reading(source="jobs", http=http, user_agent="Wakebell"))


def test_each_part_of_an_item_is_found():
    [item] = read(
        page(
            '<h3> Bot\n &amp; C</h3><a class=go data-id=7 HREF="../jobs/7">more</a>'
            '<time datetime="2026-11-30">new</time><span class=price>฿5,000</span>'
            "<div class=text><p>A <b>chat</b>bot</p><p>now<script>hush()</script></p></div>"
        ),
        key="a@data-id",
        link="a.go@href",
        published="time@datetime",
        text=".text",
        fields={"budget": ".price", "nothing": ".company"},
    )

    assert item == Item(
        key="7",
        id="7",
        title="Bot & C",
        link="https://e.test/jobs/7",
        published_at=datetime(2026, 11, 30, tzinfo=UTC),
        text="A chatbot now",
        fields={"budget": "฿5,000"},
    )


@pytest.mark.parametrize(
    ("expression", "title"),
    [
        ("@", "One Two 3"),
        ("@data-id", "7"),
        ("@DATA-ID", "7"),
        ("h3 > b", "Two"),
        ("h3, p", "One Two"),
        ('a[href*="@"]', "3"),
        ('a[href*="@"]@href', "mailto:me@e.test"),
        ("{h3} ({@data-id})", "One Two (7)"),
        ("{h3} - {.company}", "One Two"),
    ],
)
def test_an_expression_finds_text_or_an_attribute(expression: str, title: str):
    body = page("").replace(
        'class="job">', 'class="job" data-id="7"><h3>One <b>Two</b></h3><a href="mailto:me@e.test">3</a>'
    )

    assert read(body, title=expression)[0].title == title


@pytest.mark.parametrize("expression", ["a", "a@href", "https://e.test/jobs/{a@data-id}"])
def test_a_link_is_the_address_that_an_element_leads_to(expression: str):
    [item] = read(page('<h3>T</h3><a href="/jobs/7" data-id=7>more</a>'), link=expression)

    assert item.link == "https://e.test/jobs/7"


def test_the_item_may_be_the_link_itself():
    [item] = read('<a class=x href="/7">Bot</a>', items="a.x", title="@", link="@href")

    assert (item.title, item.link) == ("Bot", "https://e.test/7")


@pytest.mark.parametrize(
    ("head", "link"),
    [
        ("", "https://e.test/board/7"),
        ('<base href="/other/">', "https://e.test/other/7"),
        ('<base href="https://b.test/x/">', "https://b.test/x/7"),
        ("<base target=_blank>", "https://e.test/board/7"),
        ('<base href="http://[">', "https://e.test/board/7"),
    ],
)
def test_a_declared_base_counts(head: str, link: str):
    assert read(page('<h3>T</h3><a href="7">x</a>', head=head), link="a")[0].link == link


@pytest.mark.parametrize(
    ("markup", "text"),
    [
        ("a<p>b</p>c", "a b c"),
        ("a<b>b</b>c", "abc"),
        ("<ul><li>a<li>b</ul>c", "a b c"),
        ("a<br>b&nbsp;c", "a b c"),
        ("a<script>x</script><style>y</style><template>z</template><noscript>w</noscript>b", "ab"),
        ("a<!-- x -->b", "ab"),
        ("&lt;b&gt; &amp;amp;", "<b> &amp;"),
        ('<i title="<b>x</b>">a</i>', "a"),
        ("<table><tr><td>a<td>b<tr><td>c</table>", "a b c"),
        ("<div><div><div>a</div></div></div><span>b</span>", "a b"),
    ],
)
def test_a_text_is_what_a_reader_sees(markup: str, text: str):
    assert read(page(f"<h3>T</h3><div class=text>{markup}</div>"), text=".text")[0].text == text


@pytest.mark.parametrize("label", ["windows-874", "TIS-620", "iso-8859-11"])
@pytest.mark.parametrize(
    "form", ['<meta charset="{}">', '<meta http-equiv=content-type content="text/html; charset={}">']
)
def test_thai_in_its_own_encoding_is_read(label: str, form: str):
    body = page("<h3>งานเขียนบอท</h3>", head=form.format(label)).encode("cp874")

    assert read(body)[0].title == "งานเขียนบอท"


def test_what_http_says_of_the_encoding_comes_before_what_the_page_says():
    body = page("<h3>งาน</h3>", head='<meta charset="utf-8">').encode("cp874")

    assert read(body, "text/html; charset=windows-874")[0].title == "งาน"


def test_an_element_that_a_selector_finds_twice_is_one_item():
    assert [item.title for item in read(page("<h3>A</h3>", "<h3>B</h3>"), items="li, .job")] == ["A", "B"]


@pytest.mark.parametrize(
    ("body", "told"),
    [
        (b"", "e.test answered with nothing at all, not with a page"),
        (b"<title>Jobs</title>", "items finds nothing on the page of e.test; correct it, or say in empty"),
        (b"<title>Just a moment...</title><li class=job><h3>x</h3>", "e.test answered with a challenge page"),
        (b"<p>Checking your browser before accessing", "e.test answered with a challenge page"),
        (page("<p>No title</p>").encode(), "title finds nothing in any of the 1 items; correct it"),
        (page("<h3>T</h3>" + "<div>" * 30_000).encode(), "has too many elements within each other"),
        (b"<li class=job " + b"x " * 12_000 + b"><h3>T</h3>", "has a tag with more than 1,000 attributes"),
        (page(*["<h3>T</h3>"] * 10_001).encode(), "items finds more than 10,000 items; narrow it"),
    ],
)
def test_what_is_no_list_is_told(body: bytes, told: str):
    with pytest.raises(TemporaryFailure) as caught:
        read(body)

    assert told in str(caught.value)


@respx.mock
async def test_a_page_may_say_that_there_is_nothing():
    respx.get(URL).respond(html="<p class=none>No jobs today</p>")

    fetched = await round_of(empty=".none")

    assert fetched == Fetched(items=(), empty_is_meant=True)


def test_words_of_a_challenge_in_a_job_do_no_harm():
    assert (
        len(read(page("<h3>Security check engineer</h3>", after="<script src=/cdn-cgi/challenge-platform/x></script>")))
        == 1
    )


def test_a_script_full_of_signs_is_no_nesting():
    script = "<script>" + "for(i=0;i<n;i++)a='<div>';" * 30_000 + "</script><!-- " + "<div>" * 30_000 + "-->"

    assert [item.title for item in read(page("<h3>T</h3>", head=script))] == ["T"]


@pytest.mark.parametrize(
    ("written", "place", "told"),
    [
        ({"items": "li["}, "items", "is no CSS selector that can be read; try it in a browser's console"),
        ({"title": "h3::text"}, "title", "remove ::text, as the text is what is taken"),
        ({"link": "a::attr(href)"}, "link", "write the attribute behind an @, as in a@href"),
        ({"title": "p:contains(x)"}, "title", "write :lexbor-contains"),
        ({"items": "//li[1]"}, "items", "it looks like XPath, and CSS is read here"),
        ({"key": ""}, "key", "is empty"),
        ({"fields": {"pay": "{.a} {..b}"}}, "fields.pay", "is no CSS selector"),
        ({"next": "a["}, "next", "is no CSS selector"),
        ({"next": "?page={#"}, "next", "has a brace without its partner"),
        ({"empty": "p["}, "empty", "is no CSS selector"),
        ({"max_pages": 99}, "max_pages", "less than or equal to 50"),
        ({"body": "x"}, "body", "Extra inputs are not permitted"),
    ],
)
def test_options_that_cannot_work_are_told(written: dict[str, Any], place: str, told: str):
    with pytest.raises(ValidationError) as caught:
        options(**written)

    [error] = caught.value.errors()
    assert ".".join(map(str, error["loc"])) == place
    assert told in error["msg"]


@respx.mock
@pytest.mark.parametrize("written", ["a.next", "a.next@href", "link[rel=next]@href", "?p={#}"])
async def test_pages_are_followed_as_far_as_was_asked(written: str):
    more = '<a class="next" href="?p=2">Next</a>'
    respx.get(URL, params__eq={"hush": "1"}).respond(
        html=page("<h3>A</h3>", head="<link rel=next href='?p=2'>", after=more)
    )
    second = respx.get("https://e.test/board/latest?p=2").respond(html=page("<h3>B</h3>", after=more))

    fetched = await round_of(next=written, max_pages=2)

    assert isinstance(fetched, Fetched)
    assert ([item.title for item in fetched.items], second.call_count) == (["A", "B"], 1)


@respx.mock
async def test_a_later_page_without_items_is_the_end():
    respx.get(URL, params__eq={"hush": "1"}).respond(html=page("<h3>A</h3>"))
    respx.get("https://e.test/board/latest", params__eq={"hush": "1", "p": "2"}).respond(html=page())

    fetched = await round_of(next="{#}", next_param="p", max_pages=5)

    assert isinstance(fetched, Fetched)
    assert len(fetched.items) == 1


@respx.mock
async def test_the_last_pages_own_link_is_an_end():
    respx.get(URL).respond(html=page("<h3>A</h3>", after='<a class=next href="#">Next</a>'))

    assert isinstance(await round_of(next="a.next", max_pages=5), Fetched)


@respx.mock
async def test_a_page_in_the_way_of_a_later_one_fails_the_round():
    respx.get(URL, params__eq={"hush": "1"}).respond(html=page("<h3>A</h3>"))
    respx.get("https://e.test/board/latest?p=2").respond(html="<title>Just a moment...</title>")

    with pytest.raises(TemporaryFailure, match=r"page 2: e\.test answered with a challenge page"):
        await round_of(next="?p={#}", max_pages=5)


def test_a_changed_key_is_another_identity():
    assert options(key="@id").identity == options(key="@id", title="p").identity
    assert options(key="@id").identity != options(key="a@id").identity


def test_selectolax_is_not_imported_before_it_is_needed():
    code = "import sys, app.sources.html; sys.exit('selectolax' in sys.modules)"

    assert run([sys.executable, "-c", code], cwd=ROOT, env=dict(os.environ), check=False).returncode == 0


FRAGMENTS = st.lists(
    st.sampled_from(
        [
            *(
                "<li class=job>",
                "</li>",
                "<h3>",
                "</h3>",
                "<a href='",
                "'>",
                "<base href='x",
                "&",
                "&#0;",
                "<!--",
                "-->",
            ),
            *(
                "\0",
                "<svg>",
                "<template>",
                "<table>",
                "ไทย",
                "<script>",
                "</script>",
                "<plaintext>",
                "<li class=job><h3>x",
            ),
        ]
    ),
    max_size=25,
)


@settings(max_examples=200, deadline=None)
@given(FRAGMENTS.map(lambda parts: "".join(parts).encode()) | st.binary(max_size=100))
def test_any_bytes_are_a_round_or_a_failure(body: bytes):
    with suppress(Failure):
        assert all(item.key and item.title for item in read(body, link="a", text="@"))
