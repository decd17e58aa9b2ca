"""Lists that are spread over pages: what is asked for first, and what leads from one page to the next.

    page 1 --next: an address, a cursor, or the number of the page to come--> page 2 --> ... --> max_pages

A round is all of it or nothing: what fails on page 3 fails the round.
"""

from __future__ import annotations

import asyncio
import json
import re
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Annotated, Any
from urllib.parse import parse_qsl, urlencode, urljoin, urlsplit

import httpx
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, SecretStr

from app.clients.download import NOT_SECRET, download, same_owner
from app.domain.errors import Failure, PermanentFailure, TemporaryFailure
from app.threads import in_thread

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from app.clients.download import Downloaded

MOST_PAGES = 50

DOWNLOAD_SECONDS = 15
"""Of the 20 that a fetch may take, for all pages together: the rest is for writing down what came."""

HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
"""RFC 9110, section 5.6.2."""

HEADER_VALUE = re.compile(r"[\t\x20-\x7e\x80-\xff]*")


def _web_address(url: str) -> str:
    told = "must be a whole http:// or https:// address, as a browser shows it"
    try:
        parts = urlsplit(url.strip())
        usable = parts.scheme in {"http", "https"} and parts.hostname and httpx.URL(url.strip()).host
    except (ValueError, httpx.InvalidURL):
        usable = None
    if not usable:
        raise ValueError(told)
    return url.strip()


def _sendable(headers: Mapping[str, SecretStr]) -> Mapping[str, SecretStr]:
    for name, value in headers.items():
        if not HEADER_NAME.fullmatch(name):
            raise ValueError("names of headers are letters, digits and hyphens")
        if not HEADER_VALUE.fullmatch(value.get_secret_value()):
            raise ValueError(f"the value of {name} holds characters that a header cannot carry")
    return headers


class PagedOptions(BaseModel):
    """The options of a source that is a list, on one page or more."""

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)

    url: Annotated[str, AfterValidator(_web_address)] = Field(repr=False)

    headers: Annotated[dict[str, SecretStr], AfterValidator(_sendable)] = {}
    """Sent with each request; no other host is told of them."""

    next_param: Annotated[str, Field(min_length=1)] | None = None
    """Where what `next` finds goes when it is no address: a parameter of the address, or a key of the body."""

    max_pages: Annotated[int, Field(ge=1, le=MOST_PAGES)] = 1


def headers_of(
    options: PagedOptions, user_agent: str, accept: str, etag: str | None, last_modified: str | None
) -> dict[str, str]:
    """What is sent: the operator's headers win over ours, except over the validators."""
    sent = {"user-agent": user_agent, "accept": accept}
    sent |= {name.lower(): value.get_secret_value() for name, value in options.headers.items()}
    if etag:
        sent["if-none-match"] = etag
    if last_modified:
        sent["if-modified-since"] = last_modified
    return sent


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """One request."""

    url: str = field(repr=False)
    headers: Mapping[str, str] = field(repr=False)

    body: Mapping[str, Any] | str | None = field(default=None, repr=False)
    """A table is sent as JSON, a text as it stands; None: a GET."""

    @property
    def content(self) -> bytes | None:
        """What is posted."""
        if self.body is None or isinstance(self.body, str):
            return None if self.body is None else self.body.encode()
        return json.dumps(self.body, ensure_ascii=False).encode()


@dataclass(frozen=True, slots=True, kw_only=True)
class Read:
    """What the pages of a round were."""

    etag: str | None
    last_modified: str | None
    """Validators of a round of one page; with more, the first one's would say nothing of the others."""


async def read_pages(
    http: httpx.AsyncClient, first: Asked, options: PagedOptions, read: Callable[[Downloaded, int], str]
) -> Read | None:
    """Each page in turn, given to `read` (in a thread) with its number; None when the first one is unchanged.

    `read` answers what leads to the next page, empty at the end.

    Raises:
        TemporaryFailure: a page did not come whole or could not be read, or leads to one that was read already.
        PermanentFailure: trying again cannot help.
    """
    try:
        async with asyncio.timeout(DOWNLOAD_SECONDS):
            return await _each(http, first, options, read)
    except TimeoutError as error:
        host = urlsplit(first.url).hostname
        many = "; lower max_pages" if options.max_pages > 1 else ""
        raise TemporaryFailure(f"{host} did not finish its answer within {DOWNLOAD_SECONDS} seconds{many}") from error


async def _each(
    http: httpx.AsyncClient, first: Asked, options: PagedOptions, read: Callable[[Downloaded, int], str]
) -> Read | None:
    asked, seen = first, {(first.url, first.content)}
    validators = Read(etag=None, last_modified=None)
    for number in range(1, options.max_pages + 1):
        try:
            got = await download(
                http, asked.url, headers=asked.headers, body=asked.content, total_seconds=DOWNLOAD_SECONDS + 1
            )
            if got is None:
                return None
            wanted = await in_thread(read, got, number)
        except Failure as failure:
            raise _on_page(number, failure) from failure
        more = wanted and number < options.max_pages
        following = following_of(first, asked, got.url, wanted, options.next_param) if more else None
        if number == 1 and following is None and first.body is None:
            validators = Read(etag=got.etag, last_modified=got.last_modified)
        if following is None or _same(following, asked):
            break
        if (following.url, following.content) in seen:
            raise TemporaryFailure(f"next leads from page {number} back to a page that was read already")
        seen.add((following.url, following.content))
        asked = following
    return validators


def following_of(first: Asked, asked: Asked, came_from: str, wanted: str, parameter: str | None) -> Asked | None:
    """The request for the page that `next` found; None when that is the page it stands on.

    Raises:
        TemporaryFailure: what it found leads nowhere.
        PermanentFailure: it leads to where the body must not be sent.
    """
    unvalidated = {name: value for name, value in first.headers.items() if not name.startswith("if-")}
    if parameter is not None:
        if isinstance(asked.body, dict):
            return replace(asked, headers=unvalidated, body=_put(asked.body, parameter.split("."), wanted))
        return replace(asked, headers=unvalidated, url=_with_parameter(asked.url, parameter, wanted))
    try:
        target = httpx.URL(urljoin(came_from, wanted)).copy_with(fragment=None)
        owner = httpx.URL(first.url)
        if (target.scheme, target.host, target.port) == ("http", owner.host, None) and owner.scheme == "https":
            target = target.copy_with(scheme="https")  # servers behind a proxy think that they were asked in the clear
    except (httpx.InvalidURL, ValueError) as error:
        raise TemporaryFailure("next finds an address that cannot be read") from error
    if target.scheme not in {"http", "https"} or not target.host:
        raise TemporaryFailure("next finds what is no http or https address")
    if str(target) == str(httpx.URL(came_from).copy_with(fragment=None)):
        return None
    if same_owner(owner, target):
        return replace(asked, headers=unvalidated, url=str(target.copy_with(userinfo=owner.userinfo)))
    if asked.body is not None:
        raise PermanentFailure("next leads to another host, which is not told of the body")
    told = {name: value for name, value in unvalidated.items() if name.lower() in NOT_SECRET}
    return replace(asked, headers=told, url=str(target.copy_with(userinfo=b"")))


def _same(following: Asked, asked: Asked) -> bool:
    return (following.url, following.content) == (asked.url, asked.content)


def _put(body: Mapping[str, Any], keys: list[str], value: str) -> dict[str, Any]:
    """The body with the value at that place; a whole number stays one."""
    key, *deeper = keys
    if deeper:
        inner = body.get(key)
        return {**body, key: _put(inner if isinstance(inner, dict) else {}, deeper, value)}
    whole = value.isascii() and value.isdigit() and len(value) < 16 and not isinstance(body.get(key), str)  # noqa: PLR2004
    return {**body, key: int(value) if whole else value}


def _with_parameter(url: str, name: str, value: str) -> str:
    parts = urlsplit(url)
    kept = [(key, each) for key, each in parse_qsl(parts.query, keep_blank_values=True) if key != name]
    return parts._replace(query=urlencode([*kept, (name, value)]), fragment="").geturl()


def _on_page(number: int, failure: Failure) -> Failure:
    """The failure, saying on which page where that is not the first."""
    if number == 1:
        return failure
    told = f"page {number}: {failure}"
    if isinstance(failure, TemporaryFailure):
        return TemporaryFailure(told, retry_after=failure.retry_after)
    return PermanentFailure(told)
