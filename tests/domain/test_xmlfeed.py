from __future__ import annotations

import pytest

from app.domain.constructs import Texts
from app.domain.feeds import MAX_ENTRIES, Entry
from app.domain.markup import Scan
from app.domain.references import References
from app.domain.xmlfeed import MAX_DECLARING, XmlFeed

ATOM = "http://www.w3.org/2005/Atom"
DC = "http://purl.org/dc/elements/1.1/"
RDF = 'xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#"'


def scanned(document: str) -> XmlFeed:
    references = References()
    feed = XmlFeed("https://e.test/blog/feed.xml?token=hush", Texts(), references)
    Scan(document, feed, references).run()
    return feed


def entries(document: str) -> list[Entry]:
    return [draft.entry() for draft in scanned(document).drafts]


def entry(inner: str) -> Entry:
    [found] = entries(f"<rss><channel><item>{inner}</item></channel></rss>")
    return found


def titles(document: str) -> list[str]:
    return [found.title for found in entries(document)]


@pytest.mark.parametrize(
    "document",
    [
        f'<feed xmlns="{ATOM}"><entry><title>T</title></entry></feed>',
        f'<a:feed xmlns:a="{ATOM}"><a:entry><a:title>T</a:title></a:entry></a:feed>',
        "<atom:feed><atom:entry><atom:title>T</atom:title></atom:entry></atom:feed>",
        '<feed xmlns="http://purl.org/atom/ns#" version="0.3"><entry><title>T</title></entry></feed>',
        "<rss><channel><item><title>T</title></item></channel></rss>",
        "<RSS><CHANNEL><ITEM><TITLE>T</title></Item></channel></rss>",
        '<rss xmlns="http://backend.userland.com/rss2"><channel><item><title>T</title></item></channel></rss>',
        f'<rdf:RDF {RDF} xmlns="http://purl.org/rss/1.0/"><channel/><item><title>T</title></item></rdf:RDF>',
        f'<rdf:RDF {RDF} xmlns:r="http://purl.org/rss/1.0/"><r:item><r:title>T</r:title></r:item></rdf:RDF>',
        f'<rss xmlns:x="{DC}"><channel><item><x:title>T</x:title></item></channel></rss>',
        "<rss><channel><item><dc:title>T</dc:title></item></channel></rss>",
        '<rss xmlns:dc="http://nowhere.test/"><channel><item><dc:title>T</dc:title></item></channel></rss>',
        '<Channel HREF="https://e.test/"><Item HREF="https://e.test/1"><Title>T</Title></Item></Channel>',
    ],
)
def test_each_format_is_read_under_whatever_prefix(document: str):
    feed = scanned(document)

    assert feed.is_feed
    assert feed.whole
    assert [draft.entry().title for draft in feed.drafts] == ["T"]


@pytest.mark.parametrize(
    ("inner", "title"),
    [
        ("<title>T</title><title>U</title>", "T"),
        ("<title/><title>U</title>", "U"),
        ("<media:title>M</media:title><title>T</title>", "T"),
        ("<title>T</title><media:title>M</media:title>", "T"),
        ("<media:group><media:title>M</media:title></media:group>", "M"),
        ("<box><title>U</title></box><title>T</title>", "T"),
        ("<source><title>S</title></source><title>T</title>", "T"),
        ("<source><title>S</title></source>", ""),
        ("<image><title>S</title></image>", ""),
        ("<title>A <b>B</b> C</title>", "A B C"),
        ("<title>List<String> & more</title>", "List<String> & more"),
        ("<title>never closed", "never closed"),
        ("<title>A<br>B</title>", "A B"),
    ],
)
def test_the_title_is_the_entrys_own(inner: str, title: str):
    assert entry(inner).title == title


@pytest.mark.parametrize(
    ("inner", "text"),
    [
        ("<description>&lt;p&gt;A&lt;/p&gt;</description>", "A"),
        ("<description><p>A</p> &amp; <br>B</description>", "A & B"),
        ("<description><![CDATA[<p>A &amp; B</p>]]></description>", "A & B"),
        (
            "<description>short</description><content:encoded><![CDATA[much <b>longer</b>]]></content:encoded>",
            "much longer",
        ),
        ("<itunes:summary>A</itunes:summary>", "A"),
        ("<media:group><media:description>A</media:description></media:group>", "A"),
        ("<body xmlns='http://www.w3.org/1999/xhtml'><p>A</p></body>", "A"),
        ("<description>&lt;img alt='A picture'/&gt;</description>", "A picture"),
        ("<description/>", ""),
    ],
)
def test_the_text_is_the_longest_description(inner: str, text: str):
    assert entry(inner).text == text


@pytest.mark.parametrize(
    ("inner", "link"),
    [
        ("<link>/1</link>", "https://e.test/1"),
        ("<link> https://e.test/1?a=1&amp;b=2\n</link>", "https://e.test/1?a=1&b=2"),
        ("<link/><guid>https://e.test/g</guid>", "https://e.test/g"),
        ("<guid>HTTPS://e.test/g</guid>", "https://e.test/g"),
        ("<guid isPermaLink='false'>https://e.test/g</guid>", None),
        ("<guid>https://e.test/g</guid><link>/1</link>", "https://e.test/1"),
        ("<link href='/1'/>", "https://e.test/1"),
        ("<link rel='self' href='/s'/>", None),
        ("<link rel='enclosure' href='/e'/><link rel='alternate' href='/1'/>", "https://e.test/1"),
        ("<link rel='alternate' type='application/json' href='/j'/><link href='/1'/>", "https://e.test/1"),
        ("<link rel='related' href='/r'/>", "https://e.test/r"),
        ("<link>mailto:a@e.test</link><enclosure url='/e.mp3'/>", "https://e.test/e.mp3"),
        ("<link xml:base='https://b.test/x/' href='1'/>", "https://b.test/x/1"),
        ("<box xml:base='/y/'><link href='1'/></box>", "https://e.test/y/1"),
        ("<box xml:base='mailto:x'><link href='1'/></box>", "https://e.test/blog/1"),
        ("<link>http://[</link>", None),
    ],
)
def test_the_link_is_the_page_about_the_entry(inner: str, link: str | None):
    found = entry(inner).link

    assert (found.replace("HTTPS", "https") if found else found) == link


@pytest.mark.parametrize(
    ("inner", "day"),
    [
        ("<pubDate>2026-11-01</pubDate><dc:date>2026-11-02</dc:date>", 1),
        ("<updated>2026-11-02</updated><published>2026-11-01</published>", 1),
        ("<created>2026-11-03</created><modified>2026-11-02</modified>", 2),
        ("<pubDate>soon</pubDate><dc:date>2026-11-02</dc:date>", 2),
        ("<pubDate>2026-11-01</pubDate><pubDate>2026-11-02</pubDate>", 2),
        ("<pubDate/>", None),
    ],
)
def test_the_date_is_when_it_was_published_else_when_it_changed(inner: str, day: int | None):
    published = entry(inner).published_at

    assert (published and published.day) == day


@pytest.mark.parametrize(
    ("inner", "fields"),
    [
        ("<category>A</category><category>B</category><category>A</category>", {"categories": "A, B"}),
        ("<category term='A' label='Ah'/><dc:subject>B</dc:subject>", {"categories": "A, B"}),
        ("<itunes:keywords>A, B</itunes:keywords>", {"categories": "A, B"}),
        ("<author>ann@e.test (Ann)</author>", {"author": "ann@e.test (Ann)"}),
        ("<author><name>Ann</name></author>", {"author": "Ann"}),
        ("<author>\n<name>Ann</name><email>ann@e.test</email><uri>x</uri></author>", {"author": "Ann (ann@e.test)"}),
        ("<dc:creator>Ann</dc:creator>", {"author": "Ann"}),
        ("<contributor><name>Bob</name></contributor>", {}),
    ],
)
def test_categories_and_author_are_fields(inner: str, fields: dict[str, str]):
    assert entry(inner).fields == fields


@pytest.mark.parametrize(
    "document",
    [
        "<rss><channel><item><title>T</title><b></item><item><title>U</title></item></channel></rss>",
        "<rss><channel><item><title>T</title><item><title>U</title></channel></rss>",
        "<rss><channel><item><title>T<item><title>U</item></channel></rss>",
        "<rss><channel><image><item><title>T</title></item><item><title>U</title></item></channel></rss>",
        "<rss><channel></b><item></i><title>T</title></x></item><item><title>U</title></item></channel></rss>",
        "<rss><item><description><p>x</description><title>T</title></item><item><title>U</title></item></rss>",
    ],
)
def test_what_is_not_closed_ends_where_the_next_begins(document: str):
    feed = scanned(document)

    assert [draft.entry().title for draft in feed.drafts] == ["T", "U"]
    assert feed.references.faults == {"tags that do not match"}


def test_entries_inside_xml_content_are_no_entries():
    inner = f'<content type="application/xml"><feed xmlns="{ATOM}"><entry><title>U</title></entry></feed></content>'

    assert titles(f'<feed xmlns="{ATOM}"><entry>{inner}<title>T</title></entry></feed>') == ["T"]


@pytest.mark.parametrize(
    ("document", "whole", "found"),
    [
        ("<rss></rss>", True, []),
        ("<rss/>", True, []),
        ("<rss></rss> <!-- cached --><p>", True, []),
        ("<feed><feed></feed></feed>", True, []),
        ("<feed><feed></feed>", False, []),
        ("<rss><![CDATA[ </rss>", False, []),
        ("<rss><!-- </rss>", False, []),
        ("<rss></rss", False, []),
        ("<rss><item><title>T</title></item><item><title>U</title>", False, ["T"]),
        ("", False, []),
    ],
)
def test_a_missing_end_is_seen_and_what_was_whole_is_kept(document: str, whole: bool, found: list[str]):  # noqa: FBT001
    feed = scanned(document)

    assert feed.whole is whole
    assert [draft.entry().title for draft in feed.drafts] == found


@pytest.mark.parametrize(
    ("document", "is_feed"),
    [
        ("<rss/>", True),
        ("<feed/>", True),
        (f"<rdf:RDF {RDF}><channel/></rdf:RDF>", True),
        (f'<rdf:RDF {RDF} xmlns="http://purl.org/rss/1.0/"/>', True),
        (f"<rdf:RDF {RDF}><Person/></rdf:RDF>", False),
        ("<note><to/></note>", False),
        ("<list><item/></list>", True),
        ("<html><item/></html>", False),
        ("plain", False),
    ],
)
def test_a_feed_is_told_from_what_is_none(document: str, is_feed: bool):  # noqa: FBT001
    assert scanned(document).is_feed is is_feed


def test_no_more_than_so_many_entries_are_read():
    feed = scanned("<rss>" + "<item/>" * (MAX_ENTRIES + 5))

    assert feed.too_many
    assert len(feed.drafts) == MAX_ENTRIES


def test_one_entry_cannot_hold_everything():
    inner = "".join(f"<category>c{n}</category><link href='mailto:{n}'/>" for n in range(2_000))

    [draft] = scanned(f"<rss><item><title>T</title>{inner}<title>U</title></item></rss>").drafts

    assert len(draft.categories) <= 100
    assert len(draft.others) <= 50
    assert draft.entry().title == "T"


def test_namespaces_are_read_from_so_many_tags_and_then_stay_known():
    first = f'<x:title xmlns:x="{DC}">T</x:title>'
    many = f'<y xmlns="{ATOM}"/>' * (MAX_DECLARING + 10)

    assert titles(f"<rss><item>{first}</item>{many}<item><x:title>U</x:title></item></rss>") == ["T", "U"]


def test_bases_within_bases_have_an_end():
    document = "<rss>" + "<a xml:base='x/'>" * 10_000 + "<item><link href='1'/></item>"

    [found] = entries(document)

    assert found.link == "https://e.test/blog/" + "x/" * 20 + "1"
