"""What a browser asks: a form and where it comes from, read as far as that goes without trusting it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, urlsplit

from app.api.bodies import raw_body
from app.stores.text import clean

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from starlette.requests import Request

    from app.context import Service
    from app.pages.session import Session
    from app.settings import Settings
    from app.stores import Stores

MOST_BYTES = 8 * 1024
MOST_FIELDS = 20
FORM = "application/x-www-form-urlencoded"

PROXIES = ("forwarded", "via", "x-forwarded-for", "x-forwarded-host")
"""Headers that proxies add, some of which name another host than the browser did."""

LOCAL = frozenset({"localhost", "127.0.0.1", "::1"})
"""Where browsers keep secrets that came over plain http."""

MOST_ID = 2**63 - 1


class Trouble(Exception):
    """A page that says why there is no other one."""

    def __init__(self, status: int, words: str, *, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(words)
        self.status = status
        self.headers = dict(headers or {})


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """One request of somebody who is logged in."""

    service: Service
    session: Session
    path: Mapping[str, str]
    query: Mapping[str, str]

    form: Mapping[str, str]
    """Of a change; its token was right."""

    now: datetime

    @property
    def settings(self) -> Settings:
        """The service's configuration."""
        return self.service.settings

    @property
    def stores(self) -> Stores:
        """The database, held while the page is made."""
        return self.service.stores

    @property
    def id(self) -> int:
        """The number in the path."""
        return number(self.path["id"]) or 0

    def chosen(self, *names: str) -> dict[str, str]:
        """Those of the query's fields that say something."""
        return {name: self.query[name] for name in names if self.query.get(name)}

    def before(self) -> int | None:
        """The id that a page's rows are below; None for the first page."""
        return number(self.query["before"]) if self.query.get("before") else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """A page, by the template that makes it."""

    template: str
    values: Mapping[str, Any] = field(default_factory=dict)
    status: int = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Away:
    """Another page is to be asked for; `told`: what it says was done, by its name in `words.DONE`."""

    to: str
    told: str | None = None


def number(written: str) -> int | None:
    """An id; None: it is none."""
    if not (written.isascii() and written.isdigit() and len(written) <= len(str(MOST_ID))):
        return None
    return int(written) if 0 < int(written) <= MOST_ID else None


async def form_of(request: Request) -> dict[bytes, bytes]:
    """The fields of a form as they came; of two with one name the last.

    Raises:
        Problem: too long, too slow, or broken off.
        Trouble: it is no form.
    """
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind not in {FORM, ""}:
        raise Trouble(415, "This takes the forms of its own pages and nothing else.")
    raw = await raw_body(request, most_bytes=MOST_BYTES)
    try:
        pairs = parse_qsl(raw.decode("latin-1"), keep_blank_values=True, max_num_fields=MOST_FIELDS, encoding="latin-1")
    except ValueError:
        raise Trouble(400, "The form has more fields than any of ours.") from None
    return {name.encode("latin-1"): value.encode("latin-1") for name, value in pairs}  # the very bytes that were sent


def as_text(form: Mapping[bytes, bytes]) -> dict[str, str]:
    """The same as text that can be stored."""
    return {key.decode("utf-8", "replace"): clean(value.decode("utf-8", "replace")) for key, value in form.items()}


def from_elsewhere(request: Request, public_url: str | None) -> bool:
    """Whether the browser says that another site has sent this.

    Our pages send no referrer, so that browsers call their origin `null`; then the form's token decides alone. Names
    of hosts are compared, without ports: a proxy may have taken those away.
    """
    if request.headers.get("sec-fetch-site", "none") not in {"same-origin", "none"}:
        return True
    origin = request.headers.get("origin", "null")
    own = {host_of(request), _host(public_url or "")} - {None}
    return origin != "null" and _host(origin) not in own


def host_of(request: Request) -> str | None:
    """The name of the host that the browser believes to speak to."""
    return _host(f"//{request.headers.get('host', '')}")


def is_local(request: Request) -> bool:
    """Whether a browser on this very machine asks over plain http. What a proxy has passed on comes from elsewhere."""
    secure = request.url.scheme == "https" or request.headers.get("x-forwarded-proto", "http") != "http"
    passed_on = any(name in request.headers for name in PROXIES)
    return host_of(request) in LOCAL and not secure and not passed_on


def _host(address: str) -> str | None:
    try:
        return urlsplit(address).hostname
    except ValueError:
        return None
