from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import pytest
import respx
from pydantic import ValidationError

from app.clients.download import Downloaded
from app.domain.errors import PermanentFailure, TemporaryFailure
from app.domain.feeds import MAX_ENTRIES
from app.domain.items import Fetched, Item, Unchanged
from app.domain.markup import MAX_TAGS
from app.sources import Reading
from app.sources.feed import Options, fetch, read

URL = "https://e.test/blog/feed.xml"


def document(body: bytes | str, content_type: str = "") -> Downloaded:
    return Downloaded(body=body.encode() if isinstance(body, str) else body, content_type=content_type, url=URL)


def items(body: bytes | str) -> tuple[Item, ...]:
    return read(document(body)).items


def rss(*entries: str) -> str:
    listed = "".join(f"<item>{entry}</item>" for entry in entries)
    return f'<?xml version="1.0"?><rss version="2.0"><channel><title>Jobs</title>{listed}</channel></rss>'


def atom(*entries: str) -> str:
    listed = "".join(f"<entry>{entry}</entry>" for entry in entries)
    return f'<feed xmlns="http://www.w3.org/2005/Atom"><title>Jobs</title><id>urn:x</id>{listed}</feed>'


def reading(http: httpx.AsyncClient, **more: Any) -> Reading:
    return Reading(source="jobs", http=http, user_agent="Wakebell (+https://w.test)", **more)


def test_rss_is_read():
    [item] = items(
        rss(
            "<title>Bot &amp;amp; C</title><link>/jobs/1?a=1&b=2</link><guid isPermaLink='false'>g1</guid>"
            "<pubDate>Mon, 30 Nov 2026 16:00:00 +0700</pubDate><category>Python</category><category>Bots</category>"
            "<description><![CDATA[<p>A <b>chat</b>bot</p>]]></description>"
        )
    )

    assert item == Item(
        key="g1",
        id="g1",
        title="Bot & C",
        link="https://e.test/jobs/1?a=1&b=2",
        published_at=datetime(2026, 11, 30, 9, tzinfo=UTC),
        text="A chatbot",
        fields={"categories": "Python, Bots"},
    )


def test_atom_is_read():
    [item] = items(
        atom(
            "<id>tag:e.test,2026:1</id><title type='html'>&lt;b&gt;Bot&lt;/b&gt;</title><link href='1'/>"
            "<updated>2026-11-30T09:00:00Z</updated><author><name>Ann</name></author>"
            "<content type='xhtml'><div xmlns='http://www.w3.org/1999/xhtml'><p>A &lt; B</p></div></content>"
        )
    )

    assert item == Item(
        key="tag:e.test,2026:1",
        id="tag:e.test,2026:1",
        title="Bot",
        link="https://e.test/blog/1",
        published_at=datetime(2026, 11, 30, 9, tzinfo=UTC),
        text="A < B",
        fields={"author": "Ann"},
    )


def test_rdf_is_read():
    [item] = items(
        '<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns="http://purl.org/rss/1.0/"'
        ' xmlns:dc="http://purl.org/dc/elements/1.1/"><channel rdf:about="https://e.test/"><title>J</title></channel>'
        '<item rdf:about="https://e.test/1"><title>Bot</title><link>https://e.test/1</link>'
        "<dc:date>2026-11-30</dc:date></item></rdf:RDF>"
    )

    assert (item.key, item.title) == ("https://e.test/1", "Bot")
    assert item.published_at == datetime(2026, 11, 30, tzinfo=UTC)


def test_json_feed_is_read():
    [item] = items('\ufeff {"version": "https://jsonfeed.org/version/1.1", "items": [{"id": "1", "title": "Bot"}]}')

    assert (item.key, item.title) == ("1", "Bot")


@pytest.mark.parametrize(
    "body", [rss(), atom(), '{"version": "https://jsonfeed.org/version/1", "items": []}', "<rss version='2.0'/>"]
)
def test_a_feed_without_entries_is_a_success(body: str):
    assert read(document(body)).items == ()


@pytest.mark.parametrize(
    ("body", "told"),
    [
        ("", "e.test answered with nothing at all, not with a feed"),
        (" \n\0", "e.test answered with nothing at all, not with a feed"),
        ("<!doctype html><title>Home</title>", "e.test answered with a web page, not a feed"),
        ("<!-- x --><HTML><body></body></HTML>", "e.test answered with a web page, not a feed"),
        ('<?xml version="1.0"?><!DOCTYPE html><html/>', "e.test answered with a web page, not a feed"),
        ("<!doctype html><title>Just a moment...</title>", "e.test answered with a challenge page"),
        ("not found", "e.test answered with plain text, not with a feed"),
        ("null", "e.test answered with plain text, not with a feed"),
        ("<note><to>you</to></note>", "e.test answered with XML that is no RSS, Atom or RDF feed"),
        (rss("<title>1</title>")[:-6], "the feed of e.test ends in the middle"),
        (rss("<title>1</title>", "<title>2</title><link>https://e")[:-35], "the feed of e.test ends in the middle"),
        (rss("<description><![CDATA[ cut")[:-20] + "</rss>", "the feed of e.test ends in the middle"),
        (rss("<description><![CDATA[ cut </rss>")[:-35], "the feed of e.test ends in the middle"),
        (rss("<a/>" * MAX_TAGS), "the feed of e.test has more than 150,000 tags"),
        (rss(*["<a/>"] * (MAX_ENTRIES + 1)), "the feed of e.test has more than 10,000 entries"),
        ('{"items": [', "the answer of e.test ends in the middle"),
        ('{"jobs": []}', "e.test answered with JSON that is no JSON Feed"),
    ],
)
def test_what_is_no_whole_feed_is_told(body: str, told: str):
    with pytest.raises(TemporaryFailure) as caught:
        read(document(body))

    assert str(caught.value).startswith(told)


@pytest.mark.parametrize(
    ("title", "shown"),
    [
        ("<![CDATA[Intent: <a> as <area> & more]]>", "Intent: <a> as <area> & more"),
        ("&lt;test&gt;", "<test>"),
        ("C# &amp; C++ &lt; 5", "C# & C++ < 5"),
        ("AT&T", "AT&T"),
        ("&#1114112;", "\ufffd"),
        ("&#55357;&#56832;", "😀"),
        ("<![CDATA[&#55357;&#56832;]]>", "😀"),
        ("&ldquo;Bot&rdquo;", "“Bot”"),
        ("<![CDATA[It&#8217;s <em>new</em>]]>", "It\u2019s new"),
        ("two\n   lines\u202e", "two lines"),
        ("รับเขียนบอท", "รับเขียนบอท"),
    ],
)
def test_a_title_is_plain_text(title: str, shown: str):
    assert items(rss(f"<guid>1</guid><title>{title}</title>"))[0].title == shown


@pytest.mark.parametrize("label", ["windows-874", "tis-620"])
def test_thai_in_its_own_encoding_is_read(label: str):
    body = rss("<title>งาน €</title>").replace('"1.0"', f'"1.0" encoding="{label}"', 1)

    assert items(body.encode("cp874"))[0].title == "งาน €"


@pytest.mark.parametrize(
    ("entry", "link"),
    [
        ("<link>https://e.test/a</link>", "https://e.test/a"),
        ("<link>../a</link>", "https://e.test/a"),
        ("<guid>https://e.test/a</guid>", "https://e.test/a"),
        ("<guid>12345</guid>", None),
        ("<link>javascript:alert(1)</link>", None),
        ("<enclosure url='https://e.test/a.mp3'/>", "https://e.test/a.mp3"),
        ("", None),
    ],
)
def test_a_link_is_absolute_or_none(entry: str, link: str | None):
    assert items(rss(f"<title>T</title>{entry}"))[0].link == link


def test_a_declared_base_counts():
    body = atom("<id>1</id><title>T</title><link href='a'/>").replace("<feed", "<feed xml:base='https://b.test/x/'", 1)

    assert items(body)[0].link == "https://b.test/x/a"


def test_the_key_does_not_depend_on_where_the_feed_has_moved():
    body = rss("<title>T</title><guid>12345</guid>")

    assert items(body)[0].key == "12345"


@pytest.mark.parametrize(
    ("written", "published"),
    [
        ("Sat, 31 Oct 2099 00:00:00 GMT", datetime(2099, 10, 31, tzinfo=UTC)),
        ("Mon, 30 Nov 2026 00:00:00 EST", datetime(2026, 11, 30, 5, tzinfo=UTC)),
        ("2569-01-05", datetime(2569, 1, 5, tzinfo=UTC)),
        ("Mon, 01 Jan 0001 00:00:00 GMT", None),
        ("soon", None),
        ("", None),
    ],
)
def test_a_date_is_utc_or_none(written: str, published: datetime | None):
    assert items(rss(f"<title>T</title><pubDate>{written}</pubDate>"))[0].published_at == published


def test_what_is_odd_but_readable_is_a_warning():
    read_anyway = read(document(rss("<title>T</title><b>", "<title>U</title>")))

    assert [item.title for item in read_anyway.items] == ["T", "U"]
    assert read_anyway.warnings == ("the feed is not well-formed (tags that do not match), but could be read",)


def test_a_servers_warnings_before_the_feed_do_no_harm():
    body = "<br />\n<b>Deprecated</b>: old code on line <b>5</b><br />\n" + rss("<title>T</title>")

    assert items(body)[0].title == "T"


def test_entities_that_nothing_declares_are_a_warning_and_no_error():
    fetched = read(document(atom("<id>1</id><title>&ldquo;Bot&rdquo;</title>")))

    assert [item.title for item in fetched.items] == ["“Bot”"]
    assert fetched.warnings == ("the feed is not well-formed (entities that are not declared), but could be read",)


def test_a_date_in_an_unknown_zone_is_taken_for_utc_with_a_warning():
    fetched = read(document(rss("<title>T</title><pubDate>Mon, 30 Nov 2026 09:00:00 XYZT</pubDate>")))

    assert fetched.items[0].published_at == datetime(2026, 11, 30, 9, tzinfo=UTC)
    assert fetched.warnings == ("dates in time zones of unknown names, taken for UTC: 1",)


def test_what_is_whole_of_a_cut_document_is_read_without_validators_where_that_is_asked_for():
    whole = rss("<title>1</title><link>https://e.test/1</link>", "<title>2</title><link>https://e.test/2</link>")
    cut = Downloaded(
        body=whole[: whole.index("test/2")].encode(), content_type="", url=URL, etag='"1"', last_modified="now"
    )

    fetched = read(cut, partly=True)

    assert [item.title for item in fetched.items] == ["1"]
    assert (fetched.etag, fetched.last_modified) == (None, None)
    assert "the feed ends in the middle: what is whole of it was read" in fetched.warnings


def test_a_cut_document_with_no_whole_entry_is_refused_all_the_same():
    with pytest.raises(TemporaryFailure, match="ends in the middle"):
        read(document(rss("<title>1</title>")[:-30]), partly=True)


@respx.mock
async def test_a_cut_document_is_no_first_round():
    respx.get(URL).respond(content=rss("<title>T</title>")[:-6].encode())

    async with httpx.AsyncClient() as http:
        with pytest.raises(TemporaryFailure, match="ends in the middle"):
            await fetch(Options(url=URL), reading(http))
        fetched = await fetch(Options(url=URL), reading(http, primed=True))

    assert isinstance(fetched, Fetched)
    assert [item.title for item in fetched.items] == ["T"]


def test_too_much_markup_is_left_out_with_a_warning():
    heavy = "<title>T</title><description><![CDATA[" + "<b>" * 50_000 + "]]></description>"

    fetched = read(document(rss(*[f"<guid>{n}</guid>{heavy}" for n in range(8)])))

    assert len(fetched.items) == 8
    assert fetched.warnings == ("descriptions left out, for there is too much markup in them: 2",)


@respx.mock
async def test_a_round_is_fetched_with_its_validators():
    headers = {"ETag": 'W/"2"', "Last-Modified": "Mon, 02 Nov 2026 10:00:00 GMT"}
    route = respx.get(URL).respond(content=rss("<title>T</title>").encode(), headers=headers)
    options = Options.model_validate({"url": URL, "headers": {"Authorization": "Bearer hush"}})

    async with httpx.AsyncClient() as http:
        fetched = await fetch(options, reading(http))

    assert isinstance(fetched, Fetched)
    assert (fetched.etag, fetched.last_modified, len(fetched.items)) == ('W/"2"', headers["Last-Modified"], 1)
    sent = route.calls[0].request.headers
    assert (sent["authorization"], sent["user-agent"]) == ("Bearer hush", "Wakebell (+https://w.test)")
    assert "if-none-match" not in sent


@respx.mock
async def test_304_is_unchanged():
    since = "Mon, 02 Nov 2026 10:00:00 GMT"
    route = respx.get(URL).respond(304)

    async with httpx.AsyncClient() as http:
        fetched = await fetch(Options(url=URL), reading(http, etag='W/"1"', last_modified=since))

    assert fetched == Unchanged()
    assert route.calls[0].request.headers["if-none-match"] == 'W/"1"'
    assert route.calls[0].request.headers["if-modified-since"] == since


@respx.mock
async def test_a_missing_feed_is_a_failure():
    respx.get(URL).respond(404)

    async with httpx.AsyncClient() as http:
        with pytest.raises(PermanentFailure, match=r"e\.test answered 404: Not Found"):
            await fetch(Options(url=URL), reading(http))


@respx.mock
async def test_what_a_feed_asks_for_itself_is_passed_on():
    respx.get(URL).respond(
        200, text="<rss version='2.0'><channel><ttl>90</ttl><item><title>a</title></item></channel></rss>"
    )

    async with httpx.AsyncClient() as http:
        got = await fetch(Options(url=URL), reading(http))

    assert isinstance(got, Fetched)
    assert got.ttl == timedelta(minutes=90)


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"url": "jobs.example/feed"}, "must be a whole http:// or https:// address, as a browser shows it"),
        ({"url": "ftp://e.test/hush"}, "must be a whole http:// or https:// address, as a browser shows it"),
        ({"url": "http://[hush"}, "must be a whole http:// or https:// address, as a browser shows it"),
        ({"url": URL, "headers": {"X Key": "hush"}}, "names of headers are letters, digits and hyphens"),
        (
            {"url": URL, "headers": {"X-Key": "hush\n"}},
            "the value of X-Key holds characters that a header cannot carry",
        ),
        ({"url": URL, "page": 1}, "Extra inputs are not permitted"),
    ],
)
def test_options_that_cannot_work_are_told_without_their_values(options: dict[str, object], told: str):
    with pytest.raises(ValidationError, match=told) as caught:
        Options.model_validate(options)

    assert "hush" not in str(caught.value)


def test_configured_headers_are_not_shown():
    assert "hush" not in repr(Options.model_validate({"url": URL, "headers": {"X-Key": "hush"}}))
