"""Where a `call_url` job may go, and what is shown of it."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from ipaddress import ip_address
from typing import TYPE_CHECKING, Any

from app.domain.masking import credentials, spelling

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

TYPE = "call_url"

HTTPS, HTTP = 443, 80

NOT_SWITCHED_ON = (
    '"call_url" needs a section in wakebell.toml: [call_url] with hosts = ["api.example.com"], the hosts that may be '
    'called, and secret = "env:CALL_URL_SECRET", by which calls are signed'
)

CREDENTIALS = frozenset(
    {
        *("authorization", "proxy-authorization", "cookie", "cookie2"),
        *("api-key", "x-api-key", "x-auth-token", "x-access-token", "private-token"),
    }
)
"""Headers that belong into the configuration: a job's payload can be read by whoever may list jobs."""

OF_THE_CALL = frozenset(
    {
        *("host", "connection", "content-length", "transfer-encoding", "te", "trailer", "upgrade", "expect"),
        *("keep-alive", "accept-encoding", "content-encoding", "webhook-id", "webhook-timestamp", "webhook-signature"),
    }
)
"""Headers that the call itself has."""

USERINFO = re.compile(r"(?<=//)[^/?#]*@")

HIDDEN = "…"

LEAST_HIDDEN = 4
"""Characters. What is shorter would be struck out of every word."""

MOST_EXCERPT = 500
"""Characters of an answer that are kept."""

MOST_EXCERPT_JSON = 1_500
"""The same as JSON has them, in ASCII: a longer result would be kept as a text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """One entry of the list."""

    host: str
    """In lower case, as DNS has it; `*.` before it stands for whatever is below, and not for itself."""

    port: int | None
    """None: the one that its scheme has."""

    private: bool = False
    """It may be at a private address and be spoken to without TLS."""

    def takes(self, host: str, port: int | None, *, tls: bool) -> bool:
        """Whether an address is meant; `port` None: its scheme's."""
        usual = HTTPS if tls else HTTP
        if not tls and not self.private:
            return False
        if (usual if self.port is None else self.port) != (usual if port is None else port):
            return False
        if self.host.startswith("*."):
            return host.endswith(self.host[1:]) and len(host) > len(self.host) - 1
        return host == self.host


@dataclass(frozen=True, slots=True, kw_only=True)
class Calls:
    """`[call_url]`."""

    places: tuple[Place, ...]

    keys: tuple[bytes, ...] = field(repr=False)
    """Each signs."""

    headers: tuple[tuple[Place, Mapping[str, str]], ...] = field(default=(), repr=False)
    """What a place is sent besides, names in lower case; may be secret."""

    def place(self, host: str, port: int | None, *, tls: bool) -> Place | None:
        """The entry by which it may be called, one for a public host before one for a private; None: it may not."""
        meant = [place for place in self.places if place.takes(host, port, tls=tls)]
        return min(meant, key=lambda place: place.private, default=None)

    def told(self) -> str:
        """Where it may go, for people."""
        public = ", ".join(_written(place) for place in self.places if not place.private) or "no host of the internet"
        private = ", ".join(_written(place) for place in self.places if place.private)
        return f"call_url: may call {public}" + (f"; and in private networks {private}" if private else "")

    def headers_of(self, host: str, port: int | None, *, tls: bool) -> dict[str, str]:
        """What is sent there besides."""
        meant = [headers for place, headers in self.headers if place.takes(host, port, tls=tls)]
        return {name: value for headers in meant for name, value in headers.items()}

    @property
    def secrets(self) -> list[str]:
        """What must be seen nowhere: configured values, and what stands in them behind `Bearer` or `Basic`."""
        return [form for _, headers in self.headers for value in headers.values() for form in credentials(value)]


def canonical(host: str) -> str:
    """A host as it is compared: of an IPv6 address, which may be written in many ways, the shortest."""
    try:
        return str(ip_address(host)) if ":" in host else host
    except ValueError:
        return host


def _written(place: Place) -> str:
    return place.host if place.port is None else f"{place.host}:{place.port}"


def struck(words: str, secrets: Iterable[str]) -> str:
    """Without what an answer has repeated of them, also as JSON or an address spells it."""
    for secret in sorted(set(secrets), key=len, reverse=True):
        if len(secret) >= LEAST_HIDDEN:
            words = re.sub(spelling(secret), HIDDEN, words)
    return words


def excerpt(words: str) -> str:
    """The beginning of an answer, short enough for a job's result."""
    kept = words if len(words) <= MOST_EXCERPT else words[: MOST_EXCERPT - 1] + HIDDEN
    while len(json.dumps(kept)) > MOST_EXCERPT_JSON:
        kept = kept[: len(kept) * 3 // 4] + HIDDEN
    return kept


def shown(payload: Any) -> Any:
    """A payload as it may be listed: a program that writes by SQL may have put a credential into it after all."""
    if not isinstance(payload, dict):
        return payload
    url, headers = payload.get("url"), payload.get("headers")
    if isinstance(url, str) and "@" in url:
        payload = {**payload, "url": USERINFO.sub(HIDDEN + "@", url, count=1)}
    if not isinstance(headers, dict):
        return payload
    masked = {name: HIDDEN if str(name).lower() in CREDENTIALS else value for name, value in headers.items()}
    return {**payload, "headers": masked}
