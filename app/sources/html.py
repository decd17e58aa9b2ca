"""A list on a web page: CSS selectors, read with selectolax.

    li.job              the text of the first such element within the item
    a@href              its attribute
    @data-id            an attribute of the item itself; `@` alone is the item's whole text
    Job {@data-id}      a text with what is found in it

These are values of `title`, `link`, `key` and the like.
"""

from __future__ import annotations

import re
from time import monotonic
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import AfterValidator, Field

from app.clients.paging import Asked, PagedOptions, headers_of, read_pages
from app.domain import charsets, picking, templates, webpages
from app.domain.errors import NothingListed, TemporaryFailure
from app.domain.items import Fetched, Unchanged
from app.domain.text import BLOCK, TEXT_LIMIT, UNSEEN

if TYPE_CHECKING:
    from collections.abc import Callable

    from selectolax.lexbor import LexborHTMLParser, LexborNode

    from app.clients.download import Downloaded
    from app.sources import Reading

ACCEPT = "text/html, application/xhtml+xml;q=0.9, */*;q=0.5"

COUNTING = re.compile(r":nth-|:last-|:only-|~")
"""In a selector: it looks through an element's neighbours, or counts them."""

READ_SECONDS = 5
"""Of one page, after which no further item of it is read: elements within each other are read once for each."""

MAX_NODES = 50_000
"""Of one element whose text is taken."""

EXPRESSION = re.compile(r"(?P<css>.*?)(?P<at>@(?P<attribute>[\w:.-]*))?", re.DOTALL)

FOREIGN = {
    "::text": "remove ::text, as the text is what is taken",
    "::attr": "write the attribute behind an @, as in a@href",
    ":contains": 'write :lexbor-contains("…")',
    "//": "it looks like XPath, and CSS is read here",
    ":scope": "it begins within the item anyway: remove :scope",
}
"""What selectors of other programs have."""


def check_selector(css: str) -> str:
    """The selector. Raises ValueError, in words for the one who wrote it."""
    from selectolax.lexbor import LexborHTMLParser, SelectolaxError  # noqa: PLC0415 - who has no page does without

    try:
        LexborHTMLParser("").css(css)
    except SelectolaxError:
        hint = next((hint for sign, hint in FOREIGN.items() if sign in css), "try it in a browser's console")
        raise ValueError(f"is no CSS selector that can be read; {hint}") from None
    return css


def _check_value(written: str) -> str:
    for expression in templates.parse(written).expressions:
        css = _parted(expression)[0]
        if css:
            check_selector(css)
    return written


def _check_next(written: str) -> str:
    for expression in templates.parse(written).expressions:
        if not picking.is_place(expression):
            _check_value(expression)
    return written


Selector = Annotated[str, AfterValidator(check_selector)]
Value = Annotated[str, AfterValidator(_check_value)]


class Options(PagedOptions):
    """`[sources.x] kind = "html"`."""

    items: Selector
    title: Value
    key: Value | None = None
    link: Value | None = None
    published: Value | None = None
    text: Value | None = None
    fields: dict[str, Value] = Field(default_factory=dict)
    next: Annotated[str, AfterValidator(_check_next)] | None = None

    empty: Selector | None = None
    """What a page without any item shows in their place: with it the round is a good one, and empty."""

    @property
    def identity(self) -> str:
        """What items are told apart by: where it changes, the next round is a first one."""
        return self.key if self.key is not None else f"{self.link or ''}\n{self.title}"


async def fetch(options: Options, ctx: Reading) -> Fetched | Unchanged:
    """Everything the pages list now. Raises TemporaryFailure or PermanentFailure; never returns part of a round."""
    pages = Pages(options)
    first = Asked(url=options.url, headers=headers_of(options, ctx.user_agent, ACCEPT, ctx.etag, ctx.last_modified))
    read = await read_pages(ctx.http, first, options, pages.read)
    if read is None:
        return Unchanged()
    items, warnings = pages.gathered.items()
    return Fetched(
        items=items,
        etag=read.etag,
        last_modified=read.last_modified,
        empty_is_meant=pages.empty,
        warnings=(*pages.warnings, *warnings),
    )


def _selectors(options: Options) -> list[str]:
    values = [options.key, options.title, options.link, options.published, options.text, options.next, options.empty]
    return [options.items, *options.fields.values(), *(value for value in values if value)]


class Pages:
    """A round's pages, one after the other."""

    def __init__(self, options: Options) -> None:
        self._options = options
        self.gathered = picking.Gathered(picking.parts_of(options, _find, find_address=_find_address))
        self.warnings: list[str] = []
        self.empty = False
        """The first page has said that there is nothing."""

        self._counting = bool(COUNTING.search(" ".join(_selectors(options))))
        self._next = picking.next_of(options.next, _find_address) if options.next else None

    def read(self, got: Downloaded, number: int) -> str:
        """Take a page's items; answers what leads to the next one. Takes as long as the page is large.

        Raises:
            TemporaryFailure: it is no page, or has no items.
        """
        from selectolax.lexbor import LexborHTMLParser  # noqa: PLC0415 - 0.03 s of a start that has no page due

        decoded = charsets.decode(got.body, webpages.content_type_of(got.body, got.content_type))
        if decoded.warning and number == 1:
            self.warnings.append(decoded.warning)
        if not decoded.text.strip():
            raise TemporaryFailure(f"{got.host} answered with nothing at all, not with a page")
        if fault := webpages.unparsable(decoded.text, siblings_matter=self._counting):
            raise TemporaryFailure(f"the page of {got.host} {fault}")
        if webpages.is_challenge(decoded.text):
            raise TemporaryFailure(webpages.instead_of(decoded.text, got.host, "the list"))
        tree = LexborHTMLParser(decoded.text)
        nodes = _each_once(tree.css(self._options.items))
        if not nodes:
            self._expect_none(tree, got, decoded.text, number)
            return ""
        base = webpages.base_of(_attribute(tree.css_first("base[href]"), "href"), got.url)
        stop = monotonic() + READ_SECONDS
        for node in nodes:
            self.gathered.add(node, base)
            if monotonic() > stop:
                raise TemporaryFailure(f"the items of {got.host} took more than {READ_SECONDS} seconds to read")
        wanted = self._next.address(picking.Page(tree.root, number)) if self._next else ""
        return webpages.base_of(wanted, base) if wanted and self._options.next_param is None else wanted

    def _expect_none(self, tree: LexborHTMLParser, got: Downloaded, document: str, number: int) -> None:
        """A page without items is an end of the list, or says that there are none, or is another than it was."""
        if number == 1 and self._options.empty:
            self.empty = tree.css_first(self._options.empty) is not None
        if number > 1 or self.empty:
            return
        told = webpages.instead_of(document, got.host, "the list")
        if "challenge" in told:
            raise TemporaryFailure(told)
        raise NothingListed(
            f"items finds nothing on the page of {got.host}; correct it, or say in empty what an empty list shows"
        )


def _parted(expression: str) -> tuple[str, str | None]:
    """The selector and the attribute; None for the text, and an empty selector for the item itself."""
    found = EXPRESSION.fullmatch(expression)
    css, attribute = (found["css"].strip(), found["attribute"]) if found else (expression, None)
    return css, attribute or None


def _find(expression: str, *, href: bool = False) -> Callable[[LexborNode], str | None]:
    css, attribute = _parted(expression)

    def find(node: LexborNode) -> str | None:
        found = node.css_first(css) if css else node
        if found is None or attribute:
            return _attribute(found, attribute or "")
        return (_attribute(found, "href") if href else None) or text_of(found)

    return find


def _find_address(expression: str) -> Callable[[LexborNode], str | None]:
    """Where no attribute is named, a link's is meant."""
    return _find(expression, href=True)


def _attribute(node: LexborNode | None, name: str) -> str | None:
    return node.attributes.get(name.lower()) if node is not None else None


def _each_once(nodes: list[LexborNode]) -> list[LexborNode]:
    """A selector with commas finds an element once for each part that it matches."""
    return list({node.mem_id: node for node in nodes}.values())


def text_of(top: LexborNode) -> str:
    """What a reader sees of an element: words of blocks apart, no scripts. Not longer than an item's text can be."""
    kept: list[str] = []
    length = 0
    node: Any = top
    for _ in range(MAX_NODES):
        tag = node.tag
        if tag == "-text":
            kept.append(node.text_content or "")
            length += len(kept[-1])
        elif tag in BLOCK:
            kept.append(" ")
        inner = None if tag in UNSEEN or length > TEXT_LIMIT * 2 else node.child
        if inner is not None:
            node = inner
            continue
        while node is not None and node.mem_id != top.mem_id and node.next is None:
            node = node.parent
            kept.append(" " if node is not None and node.tag in BLOCK else "")
        if node is None or node.mem_id == top.mem_id or length > TEXT_LIMIT * 2:
            break
        node = node.next
    return " ".join("".join(kept).split())
