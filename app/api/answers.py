"""What each door takes and answers, in the words of JSON Schema. Read by `description.py` alone, when somebody asks."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

Schema = dict[str, Any]


def _object(_optional: Mapping[str, Schema] | None = None, **required: Schema) -> Schema:
    """All of its fields, and no others."""
    return {
        "type": "object",
        "properties": {**required, **(_optional or {})},
        "required": list(required),
        "additionalProperties": False,
    }


def _list(of: Schema) -> Schema:
    return {"type": "array", "items": of}


def _or_null(schema: Schema) -> Schema:
    return {"anyOf": [schema, {"type": "null"}]}


def _one_of(*words: str) -> Schema:
    return {"type": "string", "enum": list(words)}


def _ref(name: str) -> Schema:
    return {"$ref": f"#/components/schemas/{name}"}


def _page(listing: str, of: Schema) -> Schema:
    return _object(**{listing: _list(of), "next_cursor": MAYBE_TEXT})


ANY: Schema = {}
TEXT: Schema = {"type": "string"}
NUMBER: Schema = {"type": "number"}
COUNT: Schema = {"type": "integer", "minimum": 0}
FLAG: Schema = {"type": "boolean"}
INSTANT: Schema = {"type": "string", "description": "ISO 8601, UTC, with Z"}
JSON_OBJECT: Schema = {"type": "object"}
MAYBE_TEXT, MAYBE_INSTANT, MAYBE_COUNT = _or_null(TEXT), _or_null(INSTANT), _or_null(COUNT)

JOB = {
    "id": COUNT,
    "type": TEXT,
    "payload": ANY,
    "queue": TEXT,
    "priority": {"type": "integer"},
    "status": _one_of("pending", "running", "done", "failed", "cancelled"),
    "run_after": INSTANT,
    "waiting": FLAG,
    "held": FLAG,
    "attempts": COUNT,
    "crashes": COUNT,
    "max_attempts": COUNT,
    "unique_key": MAYBE_TEXT,
    "serial_key": MAYBE_TEXT,
    "last_error": MAYBE_TEXT,
    "result": ANY,
    "created_at": INSTANT,
    "started_at": MAYBE_INSTANT,
    "finished_at": MAYBE_INSTANT,
}
FAILED_TRY = _object(attempt=COUNT, at=INSTANT, error=MAYBE_TEXT, traceback=MAYBE_TEXT)

PAYLOAD = {"type": "object", "description": "fits the handler of its type; at most 256 KiB"}
NEW_JOB = {
    "run_after": _or_null({"type": "string", "format": "date-time"}),
    "delay_seconds": _or_null({"type": "number", "minimum": 0, "maximum": 315360000}),
    "queue": _or_null({"type": "string", "minLength": 1, "maxLength": 200}),
    "priority": _or_null({"type": "integer", "minimum": 0, "maximum": 100}),
    "unique_key": _or_null({"type": "string", "minLength": 1, "maxLength": 1000}),
    "serial_key": _or_null({"type": "string", "minLength": 1, "maxLength": 1000}),
    "max_attempts": _or_null({"type": "integer", "minimum": 1, "maximum": 1000}),
    "then": _or_null({"type": "array", "maxItems": 100, "items": _ref("NewJob")}),
}
QUEUE = _object(
    name=TEXT,
    due=COUNT,
    running=COUNT,
    max_running=MAYBE_COUNT,
    max_starts=MAYBE_COUNT,
    period_seconds=_or_null(NUMBER),
    paused_until=MAYBE_TEXT,
    reason=MAYBE_TEXT,
)
QUEUE_CHANGE = _object(
    {
        "paused_until": _or_null({"type": "string", "description": "an instant with its zone, or forever"}),
        "reason": _or_null({"type": "string", "minLength": 1, "maxLength": 500}),
        "max_running": _or_null({"type": "integer", "minimum": 1, "maximum": 10000}),
        "max_starts": _or_null({"type": "integer", "minimum": 1, "maximum": 10000}),
        "period_seconds": _or_null({"type": "number", "minimum": 0.001, "maximum": 31536000}),
    }
)
MESSAGE = {
    "id": COUNT,
    "recipient": TEXT,
    "channel": TEXT,
    "kind": TEXT,
    "status": TEXT,
    "text": TEXT,
    "attempts": COUNT,
    "last_error": MAYBE_TEXT,
    "provider_id": MAYBE_TEXT,
    "repeated": FLAG,
    "created_at": INSTANT,
    "first_tried_at": MAYBE_INSTANT,
    "sent_at": MAYBE_INSTANT,
    "finished_at": MAYBE_INSTANT,
}
CONVERSATION = {
    "id": COUNT,
    "chat": TEXT,
    "person": MAYBE_TEXT,
    "turns": COUNT,
    "last_at": MAYBE_INSTANT,
    "paused_until": MAYBE_INSTANT,
}
TURN = _object(side=_one_of("person", "service", "staff"), text=TEXT, at=INSTANT)
TOLD_ITEM = _object(title=TEXT, link=MAYBE_TEXT, source=TEXT, subscriptions=_list(TEXT))
SOURCE = _object(
    name=TEXT,
    kind=TEXT,
    every_minutes=NUMBER,
    status=TEXT,
    reason=MAYBE_TEXT,
    next_due_at=MAYBE_INSTANT,
    due_at=MAYBE_INSTANT,
    primed=FLAG,
    last_round_at=MAYBE_INSTANT,
    last_success_at=MAYBE_INSTANT,
    failures=COUNT,
    last_failure_at=MAYBE_INSTANT,
    last_error=MAYBE_TEXT,
    warnings=_list(TEXT),
    items=COUNT,
)
PREVIEW = _object(
    source=TEXT,
    status=_one_of("ok", "failed"),
    reason=MAYBE_TEXT,
    warnings=_list(TEXT),
    items=_list(JSON_OBJECT),
    messages=_list(JSON_OBJECT),
)
HOW_LONG = {
    "for": _or_null({"type": "string", "description": "a length of time: 30m, 8h, 2d"}),
    "until": _or_null({"type": "string", "format": "date-time"}),
}
SUMMARY_JOBS = _object(**dict.fromkeys(("claimed", "done", "retrying", "snoozed", "failed", "remaining"), COUNT))
SUMMARY = {
    "type": "object",
    "properties": {
        "tick": COUNT,
        "status": _one_of("ok", "partial", "failed"),
        "started_at": INSTANT,
        "duration_ms": COUNT,
        "budget_exhausted": FLAG,
        **dict.fromkeys(("sources", "messages", "schedules", "reminders", "alerts"), JSON_OBJECT),
        "jobs": SUMMARY_JOBS,
        "pruned": COUNT,
        "next_due_at": MAYBE_INSTANT,
        "errors": _list(TEXT),
    },
    "required": ["tick", "status", "jobs", "sources", "messages", "errors"],
}
DRAINED = _object(
    status=_one_of("ok", "partial", "failed"),
    queue=MAYBE_TEXT,
    duration_ms=COUNT,
    budget_exhausted=FLAG,
    jobs=SUMMARY_JOBS,
    errors=_list(TEXT),
)
BOOKING = _object(
    ref=TEXT,
    title=TEXT,
    starts_at=INSTANT,
    all_day=FLAG,
    timezone=TEXT,
    to={"anyOf": [TEXT, JSON_OBJECT]},
    language=MAYBE_TEXT,
    created_at=INSTANT,
    updated_at=INSTANT,
    reminders=_list(JSON_OBJECT),
)
NEW_BOOKING = _object(
    {"timezone": MAYBE_TEXT, "language": MAYBE_TEXT, "all_day": _or_null(FLAG)},
    title={"type": "string", "minLength": 1, "maxLength": 500},
    starts_at={"type": "string", "description": "an instant with its offset, a time on the wall, or a date"},
    to={"anyOf": [TEXT, _object({"to": TEXT}, channel=TEXT)]},
)

SCHEMAS: dict[str, Schema] = {
    "Problem": {
        "type": "object",
        "properties": {
            "title": TEXT,
            "status": {"type": "integer"},
            "detail": TEXT,
            "errors": _list(_object(field=TEXT, message=TEXT)),
        },
        "required": ["title", "status", "detail"],
    },
    "NewJob": _object(NEW_JOB, type=TEXT, payload=PAYLOAD),
    "ListedJob": _object(**JOB),
    "Job": _object({"replaced": FLAG}, **JOB, failures=_list(FAILED_TRY), then=_list(JSON_OBJECT)),
    "Queue": QUEUE,
    "Booking": BOOKING,
    "Conversation": _object(**CONVERSATION, last_turns=_list(TURN)),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Door:
    """One operation, in so far as the doors' code does not say it itself."""

    answers: Mapping[int, Schema | None] = field(default_factory=lambda: {200: ANY})
    """By status; None: no body."""

    problems: tuple[int, ...] = ()
    """Besides those that follow from what it needs: a token, a database, a body."""

    media_type: str = "application/json"
    takes: Schema | None = None
    """Its body."""

    headers: tuple[str, ...] = ()
    """Of the request, that are no token."""


HEALTH = _object({"version": TEXT, "checks": JSON_OBJECT}, status=_one_of("pass", "warn", "fail"))
STATUS = _object(status=TEXT)
KEPT = _object(event_id=TEXT, job_id=MAYBE_COUNT)

DOORS: dict[tuple[str, str], Door] = {
    ("GET", "/healthz"): Door(answers={200: STATUS}),
    ("GET", "/readyz"): Door(answers={200: STATUS, 503: STATUS}),
    ("GET", "/api/health"): Door(answers={200: HEALTH, 503: HEALTH}, media_type="application/health+json"),
    ("GET", "/api/openapi.json"): Door(answers={200: JSON_OBJECT}),
    ("POST", "/api/cron/tick"): Door(answers={200: SUMMARY, 500: SUMMARY}, problems=(503,)),
    ("POST", "/api/cron/drain"): Door(answers={200: DRAINED, 500: DRAINED}, problems=(503,)),
    ("POST", "/api/jobs"): Door(
        answers={200: _ref("Job"), 201: _ref("Job")},
        takes=_object({**NEW_JOB, "replace": _or_null(FLAG)}, type=TEXT, payload=PAYLOAD),
        headers=("Idempotency-Key",),
    ),
    ("POST", "/api/jobs/batch"): Door(
        answers={201: _list(_object(id=COUNT, created=FLAG))},
        takes=_object(jobs={"type": "array", "minItems": 1, "maxItems": 1000, "items": _ref("NewJob")}),
    ),
    ("GET", "/api/jobs"): Door(answers={200: _page("jobs", _ref("ListedJob"))}),
    ("GET", "/api/jobs/{job_id}"): Door(answers={200: _ref("Job")}, problems=(404,)),
    ("POST", "/api/jobs/retry"): Door(answers={200: _object(retried=COUNT)}),
    ("POST", "/api/jobs/{job_id}/retry"): Door(answers={200: _ref("Job")}, problems=(404, 409)),
    ("DELETE", "/api/jobs/{job_id}"): Door(answers={200: _ref("Job")}, problems=(404, 409)),
    ("PATCH", "/api/jobs/{job_id}"): Door(
        answers={200: _ref("Job")},
        problems=(404, 409),
        takes=_object(run_after={"type": "string", "format": "date-time"}),
    ),
    ("GET", "/api/queues"): Door(answers={200: _object(queues=_list(_ref("Queue")))}),
    ("GET", "/api/queues/{name}"): Door(answers={200: _ref("Queue")}, problems=(404, 422)),
    ("PUT", "/api/queues/{name}"): Door(answers={200: _ref("Queue")}, problems=(404,), takes=QUEUE_CHANGE),
    ("GET", "/api/messages"): Door(answers={200: _page("messages", _object(**MESSAGE))}),
    ("GET", "/api/messages/{message_id}"): Door(
        answers={200: _object(**MESSAGE, items=_list(TOLD_ITEM))}, problems=(404,)
    ),
    ("GET", "/api/sources"): Door(answers={200: _object(sources=_list(SOURCE))}),
    ("POST", "/api/sources/{name}/preview"): Door(answers={200: PREVIEW}, problems=(404,)),
    ("POST", "/api/hooks/{name}"): Door(
        answers={200: KEPT, 202: KEPT},
        problems=(401, 404),
        takes=ANY,
        headers=("webhook-id", "webhook-timestamp", "webhook-signature"),
    ),
    ("GET", "/metrics"): Door(answers={200: TEXT}, media_type="text/plain"),
    ("GET", "/api/alerts"): Door(answers={200: _page("alerts", JSON_OBJECT)}),
    ("GET", "/api/alerts/{alert_id}"): Door(answers={200: JSON_OBJECT}, problems=(404,)),
    ("POST", "/api/alerts/{alert_id}/acknowledge"): Door(answers={200: JSON_OBJECT}, problems=(404, 409)),
    ("POST", "/api/alerts/{alert_id}/mute"): Door(answers={200: JSON_OBJECT}, problems=(404,), takes=_object(HOW_LONG)),
    ("GET", "/api/mutes"): Door(answers={200: _object(mutes=_list(JSON_OBJECT))}),
    ("POST", "/api/mutes"): Door(
        answers={200: _object(pattern=TEXT, until=INSTANT)},
        takes=_object(HOW_LONG, pattern={"type": "string", "minLength": 1, "maxLength": 500}),
    ),
    ("DELETE", "/api/mutes"): Door(answers={204: None}, problems=(404,)),
    ("GET", "/api/schedules"): Door(answers={200: _object(schedules=_list(JSON_OBJECT))}),
    ("GET", "/api/bookings"): Door(answers={200: _page("bookings", _ref("Booking"))}),
    ("GET", "/api/bookings/{ref}"): Door(answers={200: _ref("Booking")}, problems=(404, 422)),
    ("PUT", "/api/bookings/{ref}"): Door(
        answers={200: _ref("Booking"), 201: _ref("Booking")}, problems=(404,), takes=NEW_BOOKING
    ),
    ("DELETE", "/api/bookings/{ref}"): Door(answers={204: None}, problems=(404, 422)),
    ("GET", "/api/conversations"): Door(answers={200: _page("conversations", _object(**CONVERSATION))}),
    ("GET", "/api/conversations/{conversation_id}"): Door(answers={200: _ref("Conversation")}, problems=(404,)),
    ("DELETE", "/api/conversations/{conversation_id}/pause"): Door(
        answers={200: _ref("Conversation")}, problems=(404,)
    ),
    ("DELETE", "/api/conversations/{conversation_id}"): Door(answers={204: None}, problems=(404, 503)),
    ("GET", "/api/webhooks/{name}"): Door(answers={200: TEXT}, problems=(403, 404), media_type="text/plain"),
    ("POST", "/api/webhooks/{name}"): Door(answers={200: STATUS}, problems=(400, 401, 404, 503), takes=ANY),
}
"""By method and path. One that is not here is described by what its code says. A name with a line break is at no path,
so that every door with a name answers 404."""
