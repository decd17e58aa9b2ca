"""Templates filled in, and the files beside them. Whatever comes from outside is escaped, set apart and cut."""

from __future__ import annotations

import hashlib
import json
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from starlette.responses import HTMLResponse, Response

from app.domain import when
from app.domain.bookings import zone_of
from app.pages import words

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from jinja2 import Template

    from app.settings import Settings

FOLDER = Path(__file__).parent

POLICY = (
    "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self' data:; form-action 'self'; "
    "frame-ancestors 'none'; base-uri 'none'"
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "Cache-Control": "no-store",
    "Cross-Origin-Opener-Policy": "same-origin",
    "X-Robots-Tag": "noindex",
}

KINDS = {"page.css": "text/css", "page.js": "text/javascript", "bell.svg": "image/svg+xml"}
"""What is served, and as what."""

FOR_GOOD = "public, max-age=31536000, immutable"


def page(template: str, settings: Settings, now: datetime, *, status: int = 200, **values: Any) -> HTMLResponse:
    """One page, with the headers that every page has."""
    zone = zone_of(settings.service.timezone)
    ready = {
        "service": settings.service.name,
        "timezone": settings.service.timezone,
        "now": now,
        "time": partial(time, now=now, zone=zone),
        "ago": partial(words.ago, now=now),
        **values,
    }
    return HTMLResponse(_template(template).render(ready), status, headers=HEADERS)


def file(asked_hash: str, name: str) -> Response | None:
    """One of the files; None: there is no such file.

    Under its own hash it may be kept for good. Under that of another release, as while a new one is rolled out, it is
    served as it is here, and not kept.
    """
    if name not in KINDS:
        return None
    content, known_hash = _file(name)
    kept = FOR_GOOD if asked_hash == known_hash else "no-cache"
    return Response(content, media_type=KINDS[name], headers={**HEADERS, "Cache-Control": kept})


def file_url(name: str) -> str:
    """Where a file is."""
    return f"/static/{_file(name)[1]}/{name}"


def time(at: datetime | str | None, *, now: datetime, zone: Any) -> Mapping[str, str] | None:
    """What `<time>` needs; None where there is no instant, and of one that is none: the end of time."""
    found = words.instant_of(at)
    if found is None:
        return None
    return {
        "utc": found.strftime("%Y-%m-%dT%H:%M:%SZ"),
        "title": found.strftime("%Y-%m-%d %H:%M:%S UTC"),
        "words": when.told(found, now=now, zone=zone, language="en"),
    }


@cache
def _template(name: str) -> Template:
    return _environment().get_template(name)


@cache
def _environment() -> Environment:
    made = Environment(
        loader=FileSystemLoader(FOLDER / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    made.globals |= {"file_url": file_url, "words": words}
    made.filters["pretty"] = pretty
    return made


MOST_SHOWN = 20_000
"""Characters of a payload or a result, as the templates cut them."""


def pretty(value: Any) -> str:
    """JSON for people, no more of it than is shown: indented, a small value nested deeply is long."""
    written = ""
    for piece in json.JSONEncoder(indent=2, ensure_ascii=False, default=str).iterencode(value):
        written += piece
        if len(written) > MOST_SHOWN:
            break
    return written


@cache
def _file(name: str) -> tuple[bytes, str]:
    content = (FOLDER / "static" / name).read_bytes()
    return content, hashlib.sha256(content).hexdigest()[:16]
