"""Documents that nobody wrote: soups of markup, one thing a million times, good feeds gone bad, plain noise.

Each comes from one number, so that what a document broke can be tried again.
"""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

FRAGMENTS = [
    *(
        "<rss version='2.0'>",
        "</rss>",
        "<channel>",
        "</channel>",
        "<item>",
        "</item>",
        "<item/>",
        "<title>",
        "</title>",
    ),
    *("<link>", "</link>", "<link href='/1'/>", "<link rel='self' href='", "<guid isPermaLink='false'>", "</guid>"),
    *(
        "<pubDate>Mon, 30 Nov 2026 16:00:00 +0700</pubDate>",
        "<pubDate>99999-99-99</pubDate>",
        "<dc:date>2026</dc:date>",
    ),
    *("<description>", "</description>", "<content:encoded>", "</content:encoded>", "<content type='xhtml'>"),
    *("<content type='image/png'>", "<summary mode='base64'>", "</summary>", "<category>x</category>", "<author>"),
    *("</author>", "<name>", "<media:group>", "<media:title>", "<source>", "</source>", "<image>", "<textinput>"),
    *("<feed xmlns='http://www.w3.org/2005/Atom'>", "</feed>", "<entry>", "</entry>", "<id>urn:1</id>", "<updated>"),
    *("<rdf:RDF xmlns:rdf='http://www.w3.org/1999/02/22-rdf-syntax-ns#' xmlns='http://purl.org/rss/1.0/'>",),
    *(
        "<a xml:base='http://e.test/'>",
        "<a xmlns:b='http://purl.org/dc/elements/1.1/'>",
        "<b:title>",
        "<x:y>",
        "</x:y>",
    ),
    *("<![CDATA[", "]]>", "<!--", "-->", "<?xml version='1.0' encoding='big5'?>", "<?php", "?>", "<!DOCTYPE x [", "]>"),
    *("<!ENTITY a '&b;'>", "<!ENTITY b 'bbbb'>", "&a;", "&amp;", "&lt;", "&gt;", "&", "&#55357;", "&#56832;", "&#0;"),
    *("&#1114112;", "&nosuch;", "&eacute;", "&ampx", "<", ">", "'", '"', "=", "/", "<a '", '<a "', "<a b=c", " " * 9),
    *(
        "<p>",
        "</p>",
        "<br>",
        "<br/>",
        "<b>",
        "</b>",
        "<i>",
        "<img alt='x'>",
        "<script>",
        "</script>",
        "<li class='job'>",
    ),
    *("<h3>", "</h3>", "<a href='/2'>", "</a>", "<table>", "<tr>", "<td>", "<div>", "</div>", "<svg>", "<title/>"),
    *("ไทย", "มี่", "😀", "\u202e", "\0", "\ufeff", "\u2028", "a", "1", "e@e.test", "aaaaaaaaaaaaaaaaaaaa", "http://["),
    *("https://e.test/a?b=1&c=2", "//", "{", "}", "[", "]", ",", ":", '"id"', '"title"', '"\\ud83d"', "1e999", "null"),
    *('{"id": "1"}', '"version": "https://jsonfeed.org/version/1.1"', '"items": [', '"content_html": "', "\\u0000"),
]

WRAPPERS = [
    ("", ""),
    ("<rss version='2.0'><channel>", "</channel></rss>"),
    ("<rss><channel><item><title>", "</title></item></channel></rss>"),
    ("<rss><channel><item><title>T</title><description>", "</description></item></channel></rss>"),
    ("<rss><channel><item><title>T</title><description><![CDATA[", "]]></description></item></channel></rss>"),
    ("<feed xmlns='http://www.w3.org/2005/Atom'>", "</feed>"),
    ("<feed xmlns='http://www.w3.org/2005/Atom'><entry><content type='xhtml'>", "</content></entry></feed>"),
    ("<!DOCTYPE rss [", "]><rss/>"),
    ('{"version": "https://jsonfeed.org/version/1.1", "items": [', "]}"),
    ('{"data": [', "]}"),
    ("<!doctype html><ul>", "</ul>"),
]

CODECS = [
    "utf-8",
    "utf-8",
    "utf-8",
    "utf-16",
    "utf-32",
    "cp874",
    "cp1251",
    "gb18030",
    "shift_jis",
    "iso2022_jp",
    "big5",
]

GOOD = (
    "<?xml version='1.0'?><rss version='2.0' xmlns:dc='http://purl.org/dc/elements/1.1/'><channel><title>Jobs</title>"
    + "".join(
        f"<item><title>Bot {n} &amp; more</title><link>https://e.test/{n}?a=1&amp;b=2</link><guid>g{n}</guid>"
        f"<pubDate>Mon, 30 Nov 2026 09:0{n}:00 GMT</pubDate><dc:creator>Ann</dc:creator><category>Python</category>"
        f"<description><![CDATA[<p>Words <b>and</b> words, {n}</p>]]></description></item>"
        for n in range(9)
    )
    + "</channel></rss>"
)


def document(seed: int, size: int) -> bytes:
    """One of about `size` bytes at most."""
    random = Random(seed)
    made: Callable[[Random, int], bytes] = random.choice([_soup, _soup, _repeated, _repeated, _damaged, _noise])
    return made(random, size)[:size]


def _soup(random: Random, size: int) -> bytes:
    some = random.sample(FRAGMENTS, random.randint(2, 40))
    before, after = random.choice(WRAPPERS)
    # Large ones repeat a block: choosing each piece would take longer than reading them.
    block = "".join(random.choices(some, k=min(size // 8, 2_000)))
    return _encoded(random, before + block * (size // max(len(block), 1) // random.randint(1, 3)) + after)


def _repeated(random: Random, size: int) -> bytes:
    before, after = random.choice(WRAPPERS)
    unit = "".join(random.choices(FRAGMENTS, k=random.randint(1, 4)))
    room = size - len((before + after).encode())
    other = "".join(random.choices(FRAGMENTS, k=random.randint(0, 2)))
    times = max(room // max(len((unit + other).encode()), 1), 0)
    return _encoded(random, before + unit * times + other * times + after)


def _damaged(random: Random, size: int) -> bytes:
    good = bytearray(GOOD.encode() * max(size // len(GOOD) // 2, 1))
    for _ in range(random.randint(1, 30)):
        at = random.randrange(len(good))
        end = at + random.randint(0, 40)
        match random.randrange(4):
            case 0:
                del good[at:end]
            case 1:
                good[at:at] = random.choice(FRAGMENTS).encode("utf-8", "surrogatepass")
            case 2:
                good[at:end] = random.randbytes(random.randint(0, 5))
            case _:
                good[at:at] = good[at:end] * random.randint(1, 50)
    return bytes(good[: random.choice([len(good), random.randrange(len(good) + 1)])])


def _noise(random: Random, size: int) -> bytes:
    noise = random.randbytes(random.randint(1, 4_096))
    return (random.choice(WRAPPERS)[0].encode() + noise * (size // len(noise) + 1))[:size]


def _encoded(random: Random, text: str) -> bytes:
    encoding = random.choice(CODECS)
    declared = f"<?xml version='1.0' encoding='{random.choice(CODECS)}'?>" if random.random() < 0.3 else ""
    return (declared + text).encode(encoding, "replace")
