from __future__ import annotations

import json
import os
import sys
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
from app.domain.errors import Failure, PermanentFailure, TemporaryFailure
from app.domain.items import Fetched, Item, Unchanged
from app.sources import Reading
from app.sources.json import Options, Pages, fetch

URL = "https://e.test/api/jobs"
ROOT = Path(__file__).parents[2]


def options(**more: Any) -> Options:
    return Options.model_validate({"url": URL, "title": "name", "items": "jobs", **more})


def read(answer: Any, **more: Any) -> tuple[Item, ...]:
    return gathered(answer, **more).gathered.items()[0]


def gathered(answer: Any, **more: Any) -> Pages:
    pages = Pages(options(**more))
    body = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
    pages.read(Downloaded(body=body, content_type="application/json", url=URL), 1)
    return pages


def warnings(answer: Any, **more: Any) -> tuple[str, ...]:
    return gathered(answer, **more).gathered.items()[1]


async def round_of(*, etag: str | None = None, **more: Any) -> Fetched | Unchanged:
    async with httpx.AsyncClient() as http:
        reading = Reading(source="jobs", http=http, user_agent="Wakebell", etag=etag)
        return await fetch(options(**more), reading)


def test_each_part_of_an_item_is_found():
    answer = {
        "data": {
            "jobs": [
                {
                    "id": 7,
                    "name": "Bot &amp; C",
                    "url": "/jobs/7",
                    "created_at": 1796029200,
                    "body": "<p>A <b>chat</b>bot</p><p>now</p>",
                    "open": True,
                    "price": {"max": 900.5},
                    "client": {"name": "Acme"},
                    "tags": ["python", "bots"],
                },
                {"id": 8, "name": "Closed", "open": False},
            ]
        }
    }

    [item] = read(
        answer,
        items="data.jobs[?open]",
        key="id",
        link="url",
        published="created_at",
        text="body",
        fields={"budget": "price.max", "company": "client.name", "tags": "tags", "nothing": "price.min"},
    )

    assert item == Item(
        key="7",
        id="7",
        title="Bot & C",
        link="https://e.test/jobs/7",
        published_at=datetime(2026, 11, 30, 9, tzinfo=UTC),
        text="A chatbot now",
        fields={"budget": 900.5, "company": "Acme", "tags": "python, bots"},
    )


def test_a_text_is_built_around_what_is_found():
    [item] = read(
        {"jobs": [{"id": 7, "name": "Bot", "client": {"name": "Acme"}, "min": 5, "max": 8}]},
        title="{name} at {client.name}",
        key="job-{id}",
        link="https://e.test/jobs/{id}",
        fields={"pay": "{min}-{max} USD"},
    )

    assert (item.title, item.key, item.link) == ("Bot at Acme", "job-7", "https://e.test/jobs/7")
    assert item.fields == {"pay": "5-8 USD"}


def test_a_link_without_its_id_is_none():
    [item] = read({"jobs": [{"name": "Bot", "k": 1}]}, key="k", link="https://e.test/jobs/{id}")

    assert item.link is None


@pytest.mark.parametrize(
    ("written", "text"),
    [
        ("<ul><li>One</li><li>Two</li></ul>", "One Two"),
        ("&lt;p&gt;One &amp;amp; two&lt;/p&gt;", "One & two"),
        ("A List<String> of 3 < 4", "A List<String> of 3 < 4"),
        ("Q&amp;A\n\nnow", "Q&A now"),
        ("\ud83d\ude00\u0000", "😀"),
    ],
)
def test_a_text_becomes_plain(written: str, text: str):
    assert read({"jobs": [{"name": "T", "body": written}]}, text="body")[0].text == text


def test_items_without_a_key_are_told_apart_by_link_then_title():
    items = read({"jobs": [{"name": "A", "url": "/1?utm_source=x"}, {"name": "B"}]}, link="url")

    assert [item.key for item in items] == ["https://e.test/1", "B"]


def test_a_key_that_was_asked_for_is_all_that_tells_items_apart():
    answer = {"jobs": [{"id": 1, "name": "A", "url": "/1?v=123"}, {"id": 1, "name": "B", "url": "/1?v=456"}]}

    assert [item.title for item in read(answer, key="id", link="url")] == ["A"]
    assert warnings(answer, key="id", link="url") == ("items that repeat the key of another: 1 of 2",)


def test_an_item_without_the_key_falls_to_its_link():
    answer = {"jobs": [{"id": 1, "name": "A"}, {"name": "B", "url": "/2"}]}

    assert [item.key for item in read(answer, key="id", link="url")] == ["1", "https://e.test/2"]
    assert warnings(answer, key="id", link="url") == (
        "key finds nothing in 1 of 2 items: their link or title is taken",
    )


def test_what_is_found_nowhere_is_a_warning():
    answer = {"jobs": [{"id": 1, "name": "A", "when": "soon"}]}

    assert warnings(answer, key="id", published="when", fields={"pay": "salary"}) == (
        "published finds nothing in any of the 1 items",
        "fields.pay finds nothing in any of the 1 items",
    )


@pytest.mark.parametrize("written", ["key", "title", "link"])
def test_what_items_are_known_by_must_be_somewhere(written: str):
    with pytest.raises(TemporaryFailure, match=f"{written} finds nothing in any of the 1 items; correct it"):
        read({"jobs": [{"name": "A"}]}, **{written: "nowhere"})


@pytest.mark.parametrize("answer", [{"jobs": []}, {"jobs": [None]}])
def test_an_empty_list_is_a_good_round(answer: Any):
    assert read(answer, key="id") == ()


def test_the_answer_itself_may_be_the_list():
    pages = Pages(Options.model_validate({"url": URL, "title": "@"}))
    pages.read(Downloaded(body=b'["A", "B"]', content_type="", url=URL), 1)

    assert [item.title for item in pages.gathered.items()[0]] == ["A", "B"]


@pytest.mark.parametrize(
    ("body", "told"),
    [
        (b"", "e.test answered with nothing at all, not with JSON"),
        (b"<!doctype html><title>Home</title>", "e.test answered with a web page, not JSON"),
        (b"<html><title>Just a moment...</title>", "e.test answered with a challenge page that wants to see a person"),
        (b"rate limited", "the answer of e.test is not JSON"),
        (b'{"jobs": [', "the answer of e.test ends in the middle"),
        (b'{"jobs": ["x', "the answer of e.test ends in the middle"),
        (b"[" * 100_000, "the answer of e.test is JSON that cannot be read"),
        (b'{"jobs": ' + b"9" * 5000 + b"}", "the answer of e.test is JSON that cannot be read"),
        (b'{"error": "no"}', "items finds no list in the answer of e.test; it has none"),
        (b'{"jobs": {"list": [], "more": {"x": []}}}', "it has lists at jobs.list, jobs.more.x"),
        (b"[]", "items finds no list in the answer of e.test; it has lists at @"),
        (b"[{}" + b",[]" * 200_001 + b"]", "the answer of e.test has more than 200,000 objects and lists"),
        (json.dumps({"jobs": [1] * 10_001}).encode(), "items finds more than 10,000 items; narrow it"),
    ],
)
def test_what_is_no_list_is_told(body: bytes, told: str):
    with pytest.raises(TemporaryFailure) as caught:
        gathered(body)

    assert told in str(caught.value)


def test_a_function_that_gets_what_it_cannot_take_finds_nothing():
    [item] = read({"jobs": [{"name": "A", "n": 1}]}, fields={"size": "length(n)", "n": "n"})

    assert item.fields == {"n": 1}


def test_texts_of_too_much_markup_are_left_out():
    answer = {"jobs": [{"name": f"T{number}", "body": "<p>x</p>" * 100_000} for number in range(3)]}

    assert [len(item.text) > 0 for item in read(answer, text="body")] == [True, False, False]
    assert warnings(answer, text="body") == ("texts left out, as there is too much markup in all of them: 2",)


def test_values_that_no_database_takes_are_left_out():
    [item] = read(
        b'{"jobs": [{"name": "A", "x": NaN, "y": Infinity, "z": 123456789012345678901}]}',
        fields={"x": "x", "y": "y", "z": "z"},
    )

    assert item.fields == {"z": "123456789012345678901"}


@pytest.mark.parametrize(
    ("written", "place", "told"),
    [
        ({"items": "data.jobs["}, "items", "is no JMESPath expression: it ends too early"),
        ({"items": "data..jobs"}, "items", "is no JMESPath expression: '.' was not expected as its character 6"),
        ({"key": "job-id"}, "key", "names with other characters than letters, digits and _ stand in quotes"),
        ({"link": "https://e.test/{id"}, "link", "has a brace without its partner"),
        ({"link": "https://e.test/{}"}, "link", "has nothing between"),
        ({"link": "https://e.test/jobs"}, "link", "is no JMESPath expression"),
        ({"title": ""}, "title", "is empty"),
        ({"fields": {"pay": "max_of(a)"}}, "fields.pay", "calls a function that JMESPath does not have; there are abs"),
        ({"fields": {"pay": "join(a)"}}, "fields.pay", "calls join() with 1 values, and it takes 2"),
        ({"next": "?page={#*}"}, "next", "is no JMESPath expression"),
        ({"max_pages": 0}, "max_pages", "greater than or equal to 1"),
        ({"max_pages": 51}, "max_pages", "less than or equal to 50"),
        ({"method": "PUT"}, "method", "Input should be 'GET' or 'POST'"),
        ({"method": "GET", "body": {}}, "", "a body is sent with POST only"),
        ({"url": "e.test/hush"}, "url", "must be a whole http:// or https:// address"),
        ({"headers": {"X Key": "hush"}}, "headers", "names of headers are letters, digits and hyphens"),
        ({"page": 1}, "page", "Extra inputs are not permitted"),
    ],
)
def test_options_that_cannot_work_are_told(written: dict[str, Any], place: str, told: str):
    with pytest.raises(ValidationError) as caught:
        options(**written)

    [error] = caught.value.errors()
    assert ".".join(map(str, error["loc"])) == place
    assert told in error["msg"]
    assert "hush" not in str(caught.value)


@respx.mock
async def test_a_round_is_asked_for_with_headers_and_validators():
    route = respx.get(URL).respond(json={"jobs": [{"name": "A"}]}, headers={"ETag": '"2"'})

    fetched = await round_of(etag='"1"', headers={"Authorization": "Bearer hush"})

    assert isinstance(fetched, Fetched)
    assert (fetched.etag, len(fetched.items)) == ('"2"', 1)
    sent = route.calls[0].request.headers
    assert (sent["authorization"], sent["if-none-match"], sent["user-agent"]) == ("Bearer hush", '"1"', "Wakebell")


@respx.mock
async def test_304_is_unchanged():
    respx.get(URL).respond(304)

    assert await round_of(etag='"1"') == Unchanged()


@respx.mock
@pytest.mark.parametrize(
    ("body", "sent", "kind"),
    [
        ({"q": "บอท", "n": 5}, '{"q": "บอท", "n": 5}', "application/json"),
        ('{"q": 1}', '{"q": 1}', "application/json"),
        ("q=bot&n=5", "q=bot&n=5", "application/x-www-form-urlencoded"),
    ],
)
async def test_a_body_is_posted(body: Any, sent: str, kind: str):
    route = respx.post(URL).respond(json={"jobs": [{"name": "A"}]}, headers={"ETag": '"2"'})

    fetched = await round_of(etag='"1"', body=body)

    request = route.calls[0].request
    assert (request.content.decode(), request.headers["content-type"]) == (sent, kind)
    assert "if-none-match" not in request.headers
    assert isinstance(fetched, Fetched)
    assert fetched.etag is None


@respx.mock
async def test_a_post_may_be_empty():
    route = respx.post(URL).respond(json={"jobs": []})

    await round_of(method="POST")

    assert route.calls[0].request.content == b""


@respx.mock
async def test_pages_are_followed_as_far_as_was_asked():
    page = {"jobs": [{"name": "A"}], "next": f"{URL}?page=2"}
    first = respx.get(URL, params__eq={}).respond(json=page, headers={"ETag": '"1"'})
    second = respx.get(f"{URL}?page=2").respond(json={"jobs": [{"name": "B"}], "next": "?page=3"})

    fetched = await round_of(next="next", max_pages=2, headers={"X-Key": "hush"})

    assert isinstance(fetched, Fetched)
    assert [item.title for item in fetched.items] == ["A", "B"]
    assert fetched.etag is None
    assert (first.call_count, second.call_count) == (1, 1)
    assert second.calls[0].request.headers["x-key"] == "hush"


@respx.mock
@pytest.mark.parametrize(
    ("more", "second"),
    [
        ({"next": "cursor", "next_param": "after"}, f"{URL}?key=hush&after=a%2Fb"),
        ({"next": "?page={#}"}, f"{URL}?page=2"),
        ({"next": "{#}", "next_param": "page"}, f"{URL}?key=hush&page=2"),
        ({"next": "{#*20}", "next_param": "offset"}, f"{URL}?key=hush&offset=20"),
        ({"next": "https://e.test/more/{cursor}"}, "https://e.test/more/a/b"),
    ],
)
async def test_a_page_is_asked_for_by_cursor_or_number(more: dict[str, Any], second: str):
    respx.get(f"{URL}?key=hush").respond(json={"jobs": [{"name": "A"}], "cursor": "a/b"})
    route = respx.get(second).respond(json={"jobs": [], "cursor": "never"})

    fetched = await round_of(url=f"{URL}?key=hush", max_pages=3, **more)

    assert isinstance(fetched, Fetched)
    assert route.call_count == 1


@respx.mock
async def test_a_cursor_may_stand_in_the_body():
    route = respx.post(URL)
    route.side_effect = [
        httpx.Response(200, json={"jobs": [{"name": "A"}], "end": 40}),
        httpx.Response(200, json={"jobs": [{"name": "B"}], "end": None}),
    ]

    await round_of(body={"query": "q", "variables": {"n": 20}}, next="end", next_param="variables.after", max_pages=5)

    assert json.loads(route.calls[1].request.content) == {"query": "q", "variables": {"n": 20, "after": 40}}


@respx.mock
async def test_a_failure_on_a_later_page_fails_the_round():
    respx.get(URL, params__eq={}).respond(json={"jobs": [{"name": "A"}], "next": "?page=2"})
    respx.get(f"{URL}?page=2").respond(429, headers={"Retry-After": "30"})

    with pytest.raises(TemporaryFailure, match=r"page 2: e\.test answered 429") as caught:
        await round_of(next="next", max_pages=2)

    assert caught.value.retry_after is not None


@respx.mock
async def test_pages_in_a_circle_are_refused():
    respx.get(URL, params__eq={}).respond(json={"jobs": [{"name": "A"}], "next": "?page=2"})
    respx.get(f"{URL}?page=2").respond(json={"jobs": [{"name": "B"}], "next": "/api/jobs"})

    with pytest.raises(TemporaryFailure, match="next leads from page 2 back to a page that was read already"):
        await round_of(next="next", max_pages=9)


@respx.mock
@pytest.mark.parametrize("next_page", ["?page=2", None, False, ""])
async def test_a_page_that_leads_nowhere_is_the_last(next_page: Any):
    respx.get(URL, params__eq={}).respond(json={"jobs": [{"name": "A"}], "next": "?page=2"})
    respx.get(f"{URL}?page=2").respond(json={"jobs": [{"name": "B"}], "next": next_page})

    fetched = await round_of(next="next", max_pages=9)

    assert isinstance(fetched, Fetched)
    assert len(fetched.items) == 2


@respx.mock
async def test_another_host_is_not_told_of_what_may_be_secret():
    respx.get(URL, params__eq={}).respond(json={"jobs": [{"name": "A"}], "next": "https://other.test/2"})
    route = respx.get("https://other.test/2").respond(json={"jobs": [{"name": "B"}]})

    await round_of(next="next", max_pages=2, headers={"Authorization": "hush", "X-Key": "hush"})

    assert "hush" not in str(route.calls[0].request.headers.multi_items())


@respx.mock
async def test_another_host_is_not_told_of_the_body():
    respx.post(URL).respond(json={"jobs": [{"name": "A"}], "next": "https://other.test/2"})

    with pytest.raises(PermanentFailure, match="next leads to another host, which is not told of the body"):
        await round_of(next="next", max_pages=2, body={"q": "hush"})


@respx.mock
async def test_a_login_in_the_address_is_used_on_every_page():
    respx.get(URL, params__eq={}).respond(json={"jobs": [{"name": "A"}], "next": "http://e.test/api/jobs?page=2"})
    route = respx.get(f"{URL}?page=2").respond(json={"jobs": [{"name": "B"}]})

    await round_of(url="https://me:hush@e.test/api/jobs", next="next", max_pages=2)

    assert route.calls[0].request.headers["authorization"].startswith("Basic ")


@respx.mock
async def test_a_cursor_without_its_parameter_is_told():
    respx.get(URL, params__eq={}).respond(json={"jobs": [{"name": "A"}], "next": "abc"})

    with pytest.raises(PermanentFailure, match="next finds no address; say in next_param"):
        await round_of(next="next", max_pages=2)


def test_a_changed_key_is_another_identity():
    assert options(key="id").identity == options(key="id", link="url", title="x").identity
    assert options(key="id").identity != options(key="uuid").identity
    assert options().identity != options(link="url").identity
    assert options(body={"a": 1}).identity != options(body={"a": 2}).identity


def test_secrets_are_not_shown():
    shown = repr(options(headers={"X-Key": "hush"}, body={"key": "hush"}, url=f"{URL}?key=hush"))

    assert "hush" not in shown


def test_jmespath_is_not_imported_before_it_is_needed():
    code = "import sys, app.sources.json; sys.exit('jmespath' in sys.modules)"

    assert run([sys.executable, "-c", code], cwd=ROOT, env=dict(os.environ), check=False).returncode == 0


VALUES = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(["name", "id", "url", "jobs"]), inner),
    max_leaves=15,
)


@settings(max_examples=200, deadline=None)
@given(st.dictionaries(st.just("jobs"), st.lists(VALUES, max_size=5)) | VALUES)
def test_any_answer_is_a_round_or_a_failure(answer: Any):
    try:
        items = read(answer, key="id", link="url", published="id", text="name", fields={"a": "id", "b": "jobs"})
    except Failure:
        return
    assert all(item.key and item.title for item in items)
    json.dumps([dict(item.fields) for item in items], allow_nan=False)
