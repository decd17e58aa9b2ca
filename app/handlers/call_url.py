"""Calls an address: the job type for programs that have no handler here.

Users put such jobs in as their own. `[call_url]` says where they may lead and by what secret they are signed: each is a
message of Standard Webhooks, under an id that stays the same however often it is tried.
"""

from __future__ import annotations

import hashlib
import json
import re
import time
from datetime import timedelta
from http import HTTPStatus
from typing import TYPE_CHECKING, Annotated, Any, Literal

import httpx
from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    StringConstraints,
    ValidationInfo,
    field_validator,
)

from app.clients import calls as client
from app.clients.http import failure_of, retry_after
from app.domain import signatures
from app.domain.calls import CREDENTIALS, NOT_SWITCHED_ON, OF_THE_CALL, TYPE, excerpt, struck
from app.domain.errors import PermanentFailure, TemporaryFailure
from app.domain.jobs import Done, Snooze

if TYPE_CHECKING:
    from contextlib import AbstractAsyncContextManager

    from app.context import Context
    from app.domain.calls import Calls, Place
    from app.domain.jobs import Outcome

TIMEOUT = timedelta(seconds=20)

STORING = 0.5
"""Seconds of that, kept for writing down what came of it."""

MOST_SECONDS = TIMEOUT.total_seconds() - STORING

NOT_LISTED = "{host} is none of the hosts in [call_url] hosts; write it there, or call another"
IN_THE_CLEAR = "must begin with https://; only a host in [call_url] private_hosts is called without"

MOST_URL = 2000
"""Characters. Longer ones are refused by many servers."""

RANGE = re.compile("([2-5][0-9][0-9])(?:-([2-5][0-9][0-9]))?")
"""From 200: what is below comes before an answer, and ends none."""

SUCCESS = range(200, 300)

LEAST_WAIT = timedelta(seconds=1)
"""Before "not yet" is asked once more."""

NO_BODY = frozenset({"GET", "HEAD"})

NAME = r"^[A-Za-z0-9!#$%&'*+.^_`|~-]{1,100}$"
VALUE = r"^[\t\x20-\x7e]{0,2000}$"


def _statuses(value: Any) -> Any:
    """`200`, or `"200-204"`: the first and the last."""
    found = RANGE.fullmatch(str(value)) if isinstance(value, str | int) else None
    if found is None:
        raise ValueError('must be a status such as 204, or a range such as "200-299"')
    first, last = int(found[1]), int(found[2] or found[1])
    if first > last:
        raise ValueError('must be a range from the lower status to the higher one, such as "200-299"')
    return first, last


def _number(value: Any) -> Any:
    if isinstance(value, bool):
        raise ValueError("must be a number of seconds")  # noqa: TRY004 - what pydantic tells
    return value


Statuses = Annotated[tuple[int, int], BeforeValidator(_statuses)]
HeaderName = Annotated[str, Field(pattern=NAME)]
HeaderValue = Annotated[str, StringConstraints(strip_whitespace=True, pattern=VALUE)]


class Payload(BaseModel):
    """What is to be called, and what counts as done."""

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)

    url: Annotated[str, Field(max_length=MOST_URL)]
    method: Literal["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"] = "POST"
    headers: Annotated[dict[HeaderName, HeaderValue], Field(max_length=50)] = {}

    body: Any = None
    """JSON; a text is sent as it stands; None: nothing is sent."""

    timeout_seconds: Annotated[float, Field(gt=0, le=MOST_SECONDS, allow_inf_nan=False), BeforeValidator(_number)] = 15

    success: Annotated[list[Statuses], Field(min_length=1, max_length=20)] | None = None
    """None: 200 to 299, where 202 with `Retry-After` means "not yet"."""

    @field_validator("url")
    @classmethod
    def _is_an_address(cls, given: str) -> str:
        address = read(given)
        if address.userinfo:
            raise ValueError("must hold no user name and password; write them into [call_url.headers]")
        return given

    @field_validator("headers")
    @classmethod
    def _are_the_jobs_own(cls, given: dict[str, str]) -> dict[str, str]:
        for name in given:
            if name.lower() in CREDENTIALS:
                raise ValueError(f"{name} is for everybody to read who may list jobs; write it into [call_url.headers]")
            if name.lower() in OF_THE_CALL:
                raise ValueError(f"{name} is set by the call itself; remove it")
        if len({name.lower() for name in given}) < len(given):
            raise ValueError("a header stands there twice; remove one")
        return given

    @field_validator("body")
    @classmethod
    def _goes_with_the_method(cls, given: Any, info: ValidationInfo) -> Any:
        if given is not None and (method := info.data.get("method")) in NO_BODY:
            raise ValueError(f"a {method} has none; remove it, or write another method")
        return given

    @property
    def content(self) -> bytes:
        """What is sent."""
        match self.body:
            case None:
                return b""
            case str():
                return self.body.encode()
        return json.dumps(self.body, ensure_ascii=False, separators=(",", ":")).encode()

    def succeeds(self, status: int) -> bool:
        """Whether that is what was hoped for."""
        return any(first <= status <= last for first, last in self.success or ((SUCCESS[0], SUCCESS[-1]),))


def read(given: str) -> httpx.URL:
    """An address as it will be called.

    Raises:
        ValueError: it is none.
    """
    try:
        address = httpx.URL(given)
        fits = address.scheme in {"http", "https"} and address.host and given.isprintable()
    except (httpx.InvalidURL, ValueError) as error:
        raise ValueError("must be an address, such as https://api.example.com/path") from error
    if not fits:
        raise ValueError("must be an address, such as https://api.example.com/path")
    return address.copy_with(fragment=None)


def refusal(payload: Payload, calls: Calls) -> str | None:
    """Why the configuration does not let it be called, its field first; None: it does."""
    address = read(payload.url)
    if client.place_of(address, calls) is not None:
        return None
    tls = client.place_of(address.copy_with(scheme="https"), calls) if address.port is None else None
    why = IN_THE_CLEAR if address.scheme == "http" and tls else NOT_LISTED.format(host=address.host)
    return f"url: {why}"


async def handle(payload: Payload, ctx: Context) -> Outcome:
    """Call it once. What its answer means is written down, with the beginning of its words."""
    calls = ctx.settings.calls
    if calls is None:
        raise PermanentFailure(NOT_SWITCHED_ON)
    if (refused := refusal(payload, calls)) is not None:
        raise PermanentFailure(refused)
    answer = await client.call(
        _call(payload, calls, _message_id(ctx)),
        calls,
        lambda place: _reaching(ctx, place),
        seconds=max(min(payload.timeout_seconds, _left(ctx).total_seconds() - STORING), 0),
    )
    return _outcome(payload, answer, struck(answer.words, calls.secrets))


def _left(ctx: Context) -> timedelta:
    """What the whole of it may take: past that the job is cut off, whatever has been answered by then."""
    runnable = ctx.service.handlers.get(TYPE)
    return min(ctx.deadline.left, TIMEOUT if runnable is None else runnable.timeout)


def _reaching(ctx: Context, place: Place) -> AbstractAsyncContextManager[httpx.AsyncClient]:
    return ctx.calling(private=place.private)


def _message_id(ctx: Context) -> str:
    """The job's own, which no try changes; what it holds is in it, since a new database counts from 1 again."""
    job = ctx.current_job
    held = json.dumps(job.payload, sort_keys=True).encode()
    return f"job_{job.id}_{hashlib.sha256(held).hexdigest()[:12]}"


def _call(payload: Payload, calls: Calls, message_id: str) -> client.Call:
    content, now = payload.content, str(int(time.time()))
    given = {name.lower(): value for name, value in payload.headers.items()}
    if payload.body is not None and "content-type" not in given:
        text = isinstance(payload.body, str)
        given["content-type"] = "text/plain; charset=utf-8" if text else "application/json"
    signed = [
        signatures.signature(key, message_id=message_id.encode(), timestamp=now.encode(), body=content).decode()
        for key in calls.keys
    ]
    return client.Call(
        method=payload.method,
        url=read(payload.url),
        headers=given,
        signed={"webhook-id": message_id, "webhook-timestamp": now, "webhook-signature": " ".join(signed)},
        body=content,
        ends_with=payload.succeeds,
    )


TOLD = frozenset({b"retry-after", b"date"})
"""What a failure is told of an answer's headers."""


def _outcome(payload: Payload, answer: client.Answer, words: str) -> Outcome:
    """`words` are the answer's, without what it has repeated of our secrets."""
    told = [(name, value) for name, value in answer.headers.raw if name.lower() in TOLD]  # as bytes: they may be any
    request = httpx.Request(payload.method, answer.url)
    response = httpx.Response(answer.status, headers=told, text=words, request=request)
    wait = retry_after(response)
    if answer.status == HTTPStatus.ACCEPTED and "retry-after" in response.headers and payload.success is None:
        return Snooze(max(wait or LEAST_WAIT, LEAST_WAIT))
    if payload.succeeds(answer.status):
        return Done({"status": answer.status, "body": excerpt(words)})
    if response.is_success:
        raise TemporaryFailure(
            f"{answer.host} answered {answer.status}, which `success` does not name", retry_after=wait
        )
    if answer.location and response.is_redirect:
        raise PermanentFailure(f"{answer.host} answered {answer.status}: write into url where it leads to")
    raise failure_of(response)
