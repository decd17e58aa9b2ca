"""A job that somebody asks for by HTTP or on the command line, checked against what this process can run."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from app.domain.calls import NOT_SWITCHED_ON
from app.domain.errors import ServiceError
from app.domain.jobs import BUILT_IN, OWN_PREFIX, NewJob
from app.handlers import own_types
from app.stores.payloads import payload_text
from app.stores.text import clean

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from pydantic_core import ErrorDetails

    from app.stores.jobs import Enqueued, Jobs

__all__ = [
    "Instant",
    "Refused",
    "Text",
    "known_type",
    "own_types",
    "put_in",
    "put_in_all",
    "read",
    "read_one",
    "refusal",
    "refuse_too_many",
    "storable",
]

PAYLOAD_BYTES = 256 * 1024
MOST_TYPES_NAMED = 50
MOST_FOLLOWING = 100

MOST_IN_ALL = 1000
"""Jobs in one request, those that follow counted too: checking one takes its time, and nobody else is served then."""

MOST_DEEP = 10
EXAMPLE = "2026-11-30T09:00:00Z"
TEN_YEARS = 315_360_000.0

TOO_LONG = "payload: must be at most 256 KiB; keep the rest elsewhere and pass its id"

HIDDEN_LENGTH = 8
"""Characters. Texts as long as this are struck out of what a validator says, whether or not they are secrets."""

MOST_ERRORS = 5

PLACE = re.compile(r"^(?:jobs|then)(?:\[\d+]|\.then)*")
"""Where the database finds a fault, as it writes it: `jobs[3].then[0]`."""


class Refused(ServiceError):
    """What is asked for cannot be; the sentence begins with the field that is to be changed."""

    def __init__(self, detail: str, *, too_long: bool = False) -> None:
        super().__init__(detail)
        self.too_long = too_long


def storable(words: str) -> str:
    """A text as it is, when PostgreSQL can hold it; a ValueError else."""
    if "\x00" in words:
        raise ValueError("holds a NUL character, which PostgreSQL cannot store")
    if any("\ud800" <= letter <= "\udfff" for letter in words):
        raise ValueError("holds half of a surrogate pair, which is no character")
    return words


FIRST_YEAR, LAST_YEAR = 1970, 9998
"""Beyond these the database and its driver do not agree."""


def _instant(value: Any) -> datetime:
    """An instant as ISO 8601 has it, its zone said: what a program leaves out would be guessed."""
    try:
        at = datetime.fromisoformat(value)
        at = at if at.tzinfo is None else at.astimezone(UTC)
    except (TypeError, ValueError, OverflowError):
        raise ValueError(f"must be an instant in ISO 8601, such as {EXAMPLE}") from None
    if at.tzinfo is None:
        raise ValueError(f"has no time zone; write {EXAMPLE}, or an offset such as +07:00 in place of the Z")
    if not FIRST_YEAR <= at.year <= LAST_YEAR:
        raise ValueError(f"must lie between the years {FIRST_YEAR} and {LAST_YEAR}")
    return at


Text = Annotated[str, AfterValidator(storable)]
Instant = Annotated[datetime, BeforeValidator(_instant)]


class _Asked(BaseModel):
    """A new job. A key that is null counts as left out."""

    model_config = ConfigDict(extra="forbid", strict=True)

    type: Text
    payload: dict  # type: ignore[type-arg] # with types for its keys, an error could name one that cannot be told
    run_after: Instant | None = None
    delay_seconds: Annotated[float, Field(ge=0, le=TEN_YEARS, allow_inf_nan=False)] | None = None
    queue: Text = "default"
    priority: Annotated[int, Field(ge=0, le=100)] = 0
    unique_key: Text | None = None
    serial_key: Text | None = None
    max_attempts: Annotated[int, Field(ge=1, le=1000)] = 4
    then: Annotated[list[Any], Field(max_length=MOST_FOLLOWING)] = []


def read(given: Any, handlers: Mapping[str, Any], *, within: str = "", depth: int = 0) -> NewJob:
    """The job that is asked for, with those that are to follow on it.

    Args:
        given: its fields, as JSON has them.
        handlers: the types that this process can run.
        within: where it stands in the whole body, for what is told of it: `jobs.17`.
        depth: how many jobs it follows.

    Raises:
        Refused: this service does not take it, and which field is to blame.
    """
    if not isinstance(given, dict):
        raise Refused(f"{within or 'the job'}: must be a JSON object: {{…}}")
    try:
        asked = _Asked.model_validate({name: value for name, value in given.items() if value is not None})
    except ValidationError as error:
        raise refusal(error, within=within) from None
    try:
        _check(asked, handlers)
    except ValidationError as error:
        raise refusal(error, within=_joined(within, "payload"), hidden=asked.payload) from None
    except Refused as refused:
        raise Refused(_joined(within, str(refused)), too_long=refused.too_long) from None
    if asked.then and depth == MOST_DEEP:
        raise Refused(_joined(within, f"then: must not follow more than {MOST_DEEP} others"))
    following = [
        read(after, handlers, within=_joined(within, f"then.{place}"), depth=depth + 1)
        for place, after in enumerate(asked.then)
    ]
    return NewJob(
        type=asked.type,
        payload=asked.payload,
        queue=asked.queue,
        priority=asked.priority,
        run_after=asked.run_after,
        delay=None if asked.delay_seconds is None else timedelta(seconds=asked.delay_seconds),
        unique_key=asked.unique_key,
        serial_key=asked.serial_key,
        max_attempts=asked.max_attempts,
        then=tuple(following),
    )


def refuse_too_many(jobs: list[Any]) -> None:
    """Nothing, where they are few enough, together with all that follow on them.

    Raises:
        Refused: they are not.
    """
    count, lists = 0, [jobs]
    while lists:
        some = lists.pop()
        count += len(some)
        if count > MOST_IN_ALL:
            raise Refused(
                f"then: a request must hold at most {MOST_IN_ALL} jobs, those that follow counted; send several"
            )
        lists += [then for job in some if isinstance(job, dict) and isinstance(then := job.get("then"), list)]


def read_one(given: Mapping[str, Any], handlers: Mapping[str, Any]) -> tuple[NewJob, bool]:
    """The job that is asked for, and whether it is to `replace` the pending one that has its unique key.

    Raises:
        Refused: this service does not take it, and which field is to blame.
    """
    replace = given.get("replace")
    if not isinstance(replace, bool | None):
        raise Refused("replace: must be true or false")
    refuse_too_many([given])
    job = read({name: value for name, value in given.items() if name != "replace"}, handlers)
    if replace and job.unique_key is None:
        raise Refused("replace: needs a unique_key, which tells what is to be replaced")
    if replace and job.delay is not None:
        raise Refused("delay_seconds: does not go with replace; give run_after")
    return job, bool(replace)


async def put_in(jobs: Jobs, job: NewJob, *, replace: bool = False) -> Enqueued:
    """Put it in; with `replace`, into the place of the pending one that has its unique key.

    Raises:
        Refused: the database does not take it.
    """
    try:
        if job.delay is not None:
            [added] = await jobs.enqueue_many([job])
            return added
        return await jobs.enqueue(
            type=job.type,
            payload=job.payload,
            queue=job.queue,
            priority=job.priority,
            run_after=job.run_after,
            unique_key=job.unique_key,
            serial_key=job.serial_key,
            max_attempts=job.max_attempts,
            then=job.then,
            replace=replace,
        )
    except ValueError as error:
        raise _by_database(str(error).removeprefix("jobs[0]: ").removeprefix("jobs[0].")) from None


async def put_in_all(jobs: Jobs, new: list[NewJob]) -> list[Enqueued]:
    """Put all of them in, or none.

    Raises:
        Refused: the database does not take one of them.
    """
    try:
        return await jobs.enqueue_many(new)
    except ValueError as error:
        raise _by_database(str(error)) from None


def known_type(name: str, handlers: Mapping[str, Any]) -> str:
    """The name of a user's type, when this process can run it.

    Raises:
        Refused: it cannot, and what it can run.
    """
    if name in handlers:
        return name
    shown = clean(name, limit=100)
    if name in BUILT_IN:
        raise Refused(f"type: {NOT_SWITCHED_ON}")
    if name in own_types():
        raise Refused(f'type: "{shown}" is one of the service\'s own, which it queues itself')
    if not handlers:
        raise Refused(f'type: there is no handler "{shown}", nor any other; add {shown}.py to the folder of handlers')
    names = sorted(handlers)
    more = f" and {len(names) - MOST_TYPES_NAMED} more" if len(names) > MOST_TYPES_NAMED else ""
    raise Refused(f'type: there is no handler "{shown}"; the types are: {", ".join(names[:MOST_TYPES_NAMED])}{more}')


def refusal(error: ValidationError, *, within: str = "", hidden: Any = None) -> Refused:
    """Names each field without its value.

    Args:
        error: what the model said.
        within: the field that was validated, when it was not the whole.
        hidden: what a validator of somebody else's may have quoted: its texts are struck out.
    """
    texts = sorted(set(_texts(hidden)), key=len, reverse=True)
    found = error.errors(include_url=False, include_context=False, include_input=False)
    lines = [_line(e, within, texts) for e in found[:MOST_ERRORS]]
    if len(found) > MOST_ERRORS:
        lines.append(f"and {len(found) - MOST_ERRORS} more")
    return Refused(clean("; ".join(lines)))


def _check(asked: _Asked, handlers: Mapping[str, Any]) -> None:
    known_type(asked.type, handlers)
    if asked.queue.startswith(OWN_PREFIX):
        raise Refused(f'queue: names that begin with "{OWN_PREFIX}" are the service\'s own; choose another')
    if asked.run_after is not None and asked.delay_seconds is not None:
        raise Refused("delay_seconds: excludes run_after; leave one of them out")
    try:
        payload_text(asked.payload)
    except ValueError as error:
        raise Refused(str(error)) from None
    if len(json.dumps(asked.payload, ensure_ascii=False).encode()) > PAYLOAD_BYTES:
        raise Refused(TOO_LONG, too_long=True)
    runnable = handlers[asked.type]
    fitting = runnable.module.Payload.model_validate(asked.payload)
    if runnable.refusal is not None and (told := runnable.refusal(fitting)) is not None:
        raise Refused(f"payload.{told}")


def _by_database(told: str) -> Refused:
    """The database's sentence, its place written as everywhere else: `jobs.3.then.0: queue must not be empty`."""
    place = PLACE.match(told)
    where, what = (place[0], told[place.end() :]) if place else ("", told)
    if what.removeprefix(": ").startswith("payload must be at most"):
        return Refused(_joined(_dotted(where), TOO_LONG), too_long=True)
    return Refused(_dotted(where) + what)


def _dotted(place: str) -> str:
    return place.replace("[", ".").replace("]", "")


def _line(error: ErrorDetails, within: str, hidden: Iterable[str]) -> str:
    field = ".".join([*([within] if within else []), *map(str, error["loc"])]) or "the body"
    if error["type"] == "extra_forbidden":
        return f"{field}: there is no such field; remove it"
    said = error["msg"].removeprefix("Value error, ").removeprefix("Assertion failed, ")
    for text in hidden:
        said = said.replace(text, "…")
    return f"{field}: {said}"


def _joined(within: str, place: str) -> str:
    return f"{within}.{place}" if within else place


def _texts(value: Any) -> Iterator[str]:
    match value:
        case str() if len(value) >= HIDDEN_LENGTH:
            yield value
        case dict():
            for inner in value.values():
                yield from _texts(inner)
        case list():
            for inner in value:
                yield from _texts(inner)
