"""A list in a JSON answer: JMESPath (jmespath.org), read with jmespath.

    name                what stands there
    client.name         deeper
    x.example/{id}      a text with what is found in it

These are values of `title`, `link`, `key` and the like.
"""

from __future__ import annotations

import json
from collections import deque
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import AfterValidator, Field, model_validator

from app.clients.paging import Asked, PagedOptions, headers_of, read_pages
from app.domain import charsets, feeds, picking, templates, webpages
from app.domain.errors import PermanentFailure, TemporaryFailure
from app.domain.items import Fetched, Unchanged

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Self

    from app.clients.download import Downloaded
    from app.sources import Reading

ACCEPT = "application/json, */*;q=0.5"

DEPTH_OF_LISTS, LISTS_TOLD = 3, 5
"""How deep, and how many, lists are looked for that `items` may have meant."""

ADDRESSES = ("http://", "https://", "/", "?")


def check_expression(expression: str) -> str:
    """The expression. Raises ValueError, in words for the one who wrote it."""
    import jmespath  # noqa: PLC0415 - who has no such source does without
    from jmespath.exceptions import JMESPathError  # noqa: PLC0415

    try:
        compiled = jmespath.compile(expression)
    except JMESPathError as error:
        raise ValueError(f"is no JMESPath expression: {_fault(expression, error)}") from None
    for node in _nodes(compiled.parsed):
        if node.get("type") == "function_expression":
            _check_call(str(node["value"]), len(node["children"]))
    return expression


def _check_value(written: str) -> str:
    for expression in templates.parse(written).expressions:
        check_expression(expression)
    return written


def _check_next(written: str) -> str:
    for expression in templates.parse(written).expressions:
        if not picking.is_place(expression):
            check_expression(expression)
    return written


Expression = Annotated[str, AfterValidator(check_expression)]
Value = Annotated[str, AfterValidator(_check_value)]


class Options(PagedOptions):
    """`[sources.x] kind = "json"`."""

    method: Literal["GET", "POST"] | None = None
    """None: POST with a body, else GET."""

    body: dict[str, Any] | str | None = Field(default=None, repr=False)
    """A table is sent as JSON, a text as it stands."""

    items: Expression = "@"
    title: Value
    key: Value | None = None
    link: Value | None = None
    published: Value | None = None
    text: Value | None = None
    fields: dict[str, Value] = Field(default_factory=dict)
    next: Annotated[str, AfterValidator(_check_next)] | None = None

    @model_validator(mode="after")
    def _body_is_posted(self) -> Self:
        if self.method == "GET" and self.body is not None:
            raise ValueError('a body is sent with POST only; write method = "POST", or remove the body')
        return self

    @property
    def identity(self) -> str:
        """What items are told apart by, and what is asked for: where it changes, the next round is a first one."""
        told_apart = self.key if self.key is not None else f"{self.link or ''}\n{self.title}"
        asked = json.dumps(self.body, sort_keys=True) if self.body is not None else ""
        return f"{told_apart}\n{asked}"


async def fetch(options: Options, ctx: Reading) -> Fetched | Unchanged:
    """Everything the answers list now. Raises TemporaryFailure or PermanentFailure; never returns part of a round."""
    pages = Pages(options)
    posted = "" if options.method == "POST" and options.body is None else options.body
    validators = (ctx.etag, ctx.last_modified) if posted is None else (None, None)  # they make a POST fail (RFC 9110)
    headers = headers_of(options, ctx.user_agent, ACCEPT, *validators)
    if isinstance(posted, dict):
        headers.setdefault("content-type", "application/json")
    elif posted:
        written = "application/json" if posted.lstrip()[:1] in {"{", "["} else "application/x-www-form-urlencoded"
        headers.setdefault("content-type", written)
    read = await read_pages(ctx.http, Asked(url=options.url, headers=headers, body=posted), options, pages.read)
    if read is None:
        return Unchanged()
    items, warnings = pages.gathered.items()
    return Fetched(items=items, etag=read.etag, last_modified=read.last_modified, warnings=(*pages.warnings, *warnings))


class Pages:
    """A round's answers, one after the other."""

    def __init__(self, options: Options) -> None:
        self._items = _compiled(options.items)
        self._options = options
        self.gathered = picking.Gathered(picking.parts_of(options, _compiled, marked_up=True))
        self.warnings: list[str] = []
        self._next = picking.next_of(options.next, _address) if options.next else None

    def read(self, got: Downloaded, number: int) -> str:
        """Take an answer's items; answers what leads to the next one. Takes as long as the answer is large.

        Raises:
            TemporaryFailure: it is no JSON, or has no list where one should be.
            PermanentFailure: `next` finds what is no address.
        """
        decoded = charsets.decode(got.body, got.content_type)
        if decoded.warning and number == 1:
            self.warnings.append(decoded.warning)
        answer = parse(decoded.text, got.host)
        listed = self._listed(answer, got.host)
        for node in listed:
            if node is not None:
                self.gathered.add(node, got.url)
        if self._next is None or (not listed and number > 1):
            return ""
        wanted = self._next.address(picking.Page(answer, number))
        if wanted and self._options.next_param is None and not wanted.startswith(ADDRESSES) and "?" not in wanted:
            raise PermanentFailure("next finds no address; say in next_param which parameter it is the value of")
        return wanted

    def _listed(self, answer: Any, host: str) -> list[Any]:
        listed = self._items(answer)
        if isinstance(listed, list):
            return listed
        there = ", ".join(lists_in(answer))
        hint = f"it has lists at {there}" if there else "it has none"
        raise TemporaryFailure(f"items finds no list in the answer of {host}; {hint}")


def parse(document: str, host: str) -> Any:
    """What the JSON says.

    Raises:
        TemporaryFailure: it is none, or not all of it.
    """
    document = document.lstrip("\ufeff \t\r\n\0")
    if not document:
        raise TemporaryFailure(f"{host} answered with nothing at all, not with JSON")
    if document.startswith("<"):
        raise TemporaryFailure(webpages.instead_of(document, host, "JSON"))
    if document.count("{") + document.count("[") > feeds.MAX_VALUES:
        raise TemporaryFailure(f"the answer of {host} has more than {feeds.MAX_VALUES:,} objects and lists")
    try:
        return json.loads(document)
    except json.JSONDecodeError as error:
        cut = error.pos >= len(document.rstrip()) or error.msg.startswith("Unterminated string")
        told = "ends in the middle" if cut and document[0] in '{["' else "is not JSON"
        raise TemporaryFailure(f"the answer of {host} {told}") from error
    except (ValueError, RecursionError) as error:
        raise TemporaryFailure(f"the answer of {host} is JSON that cannot be read") from error


def lists_in(answer: Any) -> Iterator[str]:
    """Where there are lists of objects, as JMESPath writes it: what `items` may have meant."""
    told = 0
    waiting = deque([("", answer, 0)])
    while waiting and told < LISTS_TOLD:
        path, value, depth = waiting.popleft()
        if isinstance(value, list):
            told += 1
            yield path or "@"
        elif isinstance(value, dict) and depth < DEPTH_OF_LISTS:
            names = [name for name in list(value)[:50] if name.isascii() and name.isidentifier() and len(name) <= 30]  # noqa: PLR2004
            waiting.extend((f"{path}.{name}".lstrip("."), value[name], depth + 1) for name in names)


def _compiled(expression: str) -> Callable[[Any], Any]:
    """What the expression finds; None, too, where a function gets what it cannot take."""
    import jmespath  # noqa: PLC0415 - 0.04 s of a start that has no such source due
    from jmespath.exceptions import JMESPathError  # noqa: PLC0415

    compiled = jmespath.compile(expression)

    def find(node: Any) -> Any:
        try:
            return compiled.search(node)
        except (JMESPathError, TypeError, ValueError, ArithmeticError, RecursionError):
            return None

    return find


def _address(expression: str) -> Callable[[Any], Any]:
    """The same, for what leads to the next page: true and false are no address."""
    find = _compiled(expression)
    return lambda answer: None if isinstance(found := find(answer), bool) else found


def _fault(expression: str, error: Any) -> str:
    """What jmespath has against it, in one sentence, and what to do."""
    at = getattr(error, "lex_position", None)
    at = getattr(error, "lexer_position", None) if at is None else at
    if not isinstance(at, int) or not 0 <= at < len(expression):
        return "it ends too early; complete it"
    sign = expression[at]
    hint = 'names with other characters than letters, digits and _ stand in quotes: "first-name"'
    return f"{sign!r} was not expected as its character {at + 1}; {hint if sign in '-$: /' else 'correct it'}"


def _nodes(tree: Any) -> Iterator[dict[str, Any]]:
    yield tree
    for child in tree.get("children", ()):
        if isinstance(child, dict):
            yield from _nodes(child)


def _check_call(name: str, count: int) -> None:
    from jmespath.functions import Functions  # noqa: PLC0415

    table = Functions.FUNCTION_TABLE
    if name not in table:
        raise ValueError(f"calls a function that JMESPath does not have; there are {', '.join(sorted(table))}")
    signature = table[name]["signature"]
    variadic = bool(signature and signature[-1].get("variadic"))
    if count < len(signature) or (count > len(signature) and not variadic):
        raise ValueError(f"calls {name}() with {count} values, and it takes {len(signature)}; correct it")
