"""Any bytes at all are a round or a failure of ours. The seed is random, and told by what it breaks."""

from __future__ import annotations

import os
import random
import time
import unicodedata
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any
from xml.etree import ElementTree as ET

import feedparser
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.clients.download import Downloaded
from app.domain import charsets, feeds, text
from app.domain.constructs import Texts
from app.domain.errors import Failure
from app.domain.items import Fetched
from app.domain.markup import MAX_TAGS, Scan
from app.domain.references import References
from app.domain.xmlfeed import XmlFeed
from app.sources import feed
from tests.fakes import hostile

SECONDS = 4.0
"""For each of five; `python -m bench.fuzz` takes as long as one likes, and large documents."""

SIZE = 6_000
URL = "https://e.test/feed.xml"


def decoded(body: bytes) -> None:
    found = charsets.decode(body, "text/xml")

    assert isinstance(found.text, str)


def scanned(body: bytes) -> None:
    document = charsets.decode(body).text
    references = References()
    found = XmlFeed(URL, Texts(), references)
    scan = Scan(document, found, references)
    scan.run()

    assert scan.tags <= min(document.count("<"), MAX_TAGS + 1)
    assert len(found.drafts) <= scan.tags
    assert all(draft.elements <= scan.tags for draft in found.drafts)


class Slowly:
    """Tells a feed's reader of an element of text alone in three steps."""

    def __init__(self, feed: XmlFeed) -> None:
        self.open = feed.open
        self.close = feed.close
        self.text = feed.text

    def leaf(self, name: str, tag: str, text: str) -> bool:
        if not self.open(name, tag, alone=False):
            return False
        self.text(text, literal=False)
        return self.close(name)


def read_both_ways(body: bytes) -> None:
    document = charsets.decode(body).text
    read = []
    for slowly in (False, True):
        references = References()
        found = XmlFeed(URL, Texts(), references)
        Scan(document, Slowly(found) if slowly else found, references).run()
        read.append(([draft.entry() for draft in found.drafts], found.whole, found.is_feed, references.faults))

    assert read[0] == read[1]


def as_text(body: bytes) -> None:
    markup = charsets.decode(body).text

    for shown in (text.text_of_html(markup), text.title_of_html(markup), text.title(markup), text.text(markup)):
        shown.encode()
        assert shown == " ".join(shown.split())
        assert len(shown) <= text.TEXT_LIMIT


def fed(body: bytes) -> None:
    fetched: Fetched | None = None
    with suppress(Failure):
        fetched = feed.read(Downloaded(body=body, content_type="", url=URL), partly=True)

    if fetched is None:
        return
    assert len({item.key for item in fetched.items}) == len(fetched.items) <= feeds.MAX_ENTRIES
    for item in fetched.items:
        assert item.key
        assert item.title
        f"{item.key}{item.title}{item.text}{item.link}{item.fields}".encode()
        assert item.link is None or item.link.lower().startswith(("http://", "https://"))
        assert item.published_at is None or item.published_at.utcoffset() is not None


def seeds() -> Iterator[int]:
    given = os.environ.get("FUZZ_SEED")
    if given:
        yield int(given)
        return
    until = time.monotonic() + SECONDS
    while time.monotonic() < until:
        yield random.SystemRandom().randrange(2**32)


@pytest.mark.parametrize("read", [decoded, scanned, read_both_ways, as_text, fed])
def test_any_bytes_can_be_read(read: Callable[[bytes], None]):
    for seed in seeds():
        try:
            read(hostile.document(seed, SIZE))
        except BaseException as error:
            error.add_note(f"again with FUZZ_SEED={seed}")
            raise


# Without Latin-1's upper half: feedparser takes some of its words for UTF-8 that was encoded twice.
LETTERS = st.characters(max_codepoint=0x7E) | st.characters(min_codepoint=0x100)
WORDS = st.text(LETTERS.filter(lambda letter: unicodedata.category(letter)[0] != "C"), min_size=1, max_size=20)
ENTRIES = st.lists(st.tuples(WORDS, WORDS, st.datetimes(datetime(1990, 1, 1), datetime(2090, 1, 1))), max_size=4)  # noqa: DTZ001


@settings(deadline=None, max_examples=60)
@given(ENTRIES, st.booleans())
def test_a_good_feed_says_to_us_what_it_says_to_feedparser(entries: list[tuple[str, str, datetime]], atom: bool):  # noqa: FBT001
    root = ET.Element("feed", xmlns="http://www.w3.org/2005/Atom") if atom else ET.Element("rss", version="2.0")
    channel = root if atom else ET.SubElement(root, "channel")
    for n, (title, category, day) in enumerate(entries):
        entry = ET.SubElement(channel, "entry" if atom else "item")
        ET.SubElement(entry, "title").text = title
        ET.SubElement(entry, "id" if atom else "guid").text = f"urn:{n}"
        ET.SubElement(entry, "updated" if atom else "pubDate").text = f"{day:%Y-%m-%dT%H:%M:%SZ}"
        ET.SubElement(entry, "category", {"term": category} if atom else {}).text = None if atom else category
    body = ET.tostring(root)

    ours = feed.parse(Downloaded(body=body, content_type="", url=URL)).entries
    theirs = feedparser.parse(body, sanitize_html=False).entries

    assert [entry.id for entry in ours] == [entry.id for entry in theirs]
    assert [entry.title for entry in ours] == [_title(entry) for entry in theirs]
    assert [entry.published_at for entry in ours] == [_day(entry) for entry in theirs]
    tags = [[tag.term for tag in dict.get(entry, "tags", []) if tag.term] for entry in theirs]
    assert [entry.fields.get("categories", "") for entry in ours] == [text.title(", ".join(terms)) for terms in tags]


def _title(entry: Any) -> str:
    title, detail = dict.get(entry, "title", ""), dict.get(entry, "title_detail", {})
    return text.title_of_html(title) if detail.get("type") == "text/html" else text.title(title)


def _day(entry: Any) -> datetime:
    found = dict.get(entry, "published_parsed") or dict.get(entry, "updated_parsed") or (1,) * 6
    year, month, day, hour, minute, second = found[:6]
    return datetime(year, month, day, hour, minute, second, tzinfo=UTC)
