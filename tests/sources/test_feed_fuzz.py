"""Any bytes at all are a round or a failure of ours. The seed is random, and told by what it breaks."""

from __future__ import annotations

import os
import random
import time
from collections.abc import Callable, Iterator
from contextlib import suppress

import pytest

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

SECONDS = 5.0
"""For each of four; `python -m bench.fuzz` takes as long as one likes, and large documents."""

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


@pytest.mark.parametrize("read", [decoded, scanned, as_text, fed])
def test_any_bytes_can_be_read(read: Callable[[bytes], None]):
    for seed in seeds():
        try:
            read(hostile.document(seed, SIZE))
        except BaseException as error:
            error.add_note(f"again with FUZZ_SEED={seed}")
            raise
