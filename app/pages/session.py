"""Who is logged in, kept in a cookie and nowhere else: any replica can read it, and another API_TOKEN ends it.

    <when it ends>.<id>.<HMAC of both>          the cookie
    HMAC of the id, under another key           what each form of the session carries

Both keys are made of API_TOKEN. A cookie that was copied is good until its end: there is nothing to strike it from.
"""

from __future__ import annotations

import hmac
import re
import secrets
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from datetime import datetime

LASTS = timedelta(hours=12)

WRITTEN = re.compile(r"([0-9]{1,12})\.([A-Za-z0-9_-]{22})\.([0-9a-f]{64})")


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """A login that holds."""

    id: str
    cookie: str

    form_token: str
    """What another site cannot know: without it a form changes nothing."""

    def sent(self, form_token: str) -> bool:
        """Whether a form is one of this session."""
        return hmac.compare_digest(self.form_token.encode(), form_token.encode())


def begin(token: bytes, *, now: datetime) -> Session:
    """A new one."""
    ends, name = int((now + LASTS).timestamp()), secrets.token_urlsafe(16)
    return _session(token, ends, name)


def read(token: bytes, cookie: str | None, *, now: datetime) -> Session | None:
    """The session of a cookie; None: it is none of ours, or over."""
    found = WRITTEN.fullmatch(cookie or "")
    if found is None:
        return None
    session = _session(token, int(found[1]), found[2])
    if not hmac.compare_digest(session.cookie.encode(), found[0].encode()) or int(found[1]) <= now.timestamp():
        return None
    return session


def _session(token: bytes, ends: int, name: str) -> Session:
    told = f"{ends}.{name}"
    return Session(
        id=name,
        cookie=f"{told}.{_mark(token, b'session', told)}",
        form_token=_mark(token, b"form", told),
    )


def _mark(token: bytes, purpose: bytes, told: str) -> str:
    key = hmac.digest(token, b"wakebell status page, " + purpose, "sha256")
    return hmac.digest(key, told.encode(), "sha256").hex()
