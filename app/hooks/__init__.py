"""Who tells us of events, and how each of them signs; one file, one `kind` of `[hooks.x]`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from app.domain.errors import ServiceError, SignatureError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from pydantic import JsonValue


class Malformed(ServiceError):
    """It is from whom it says, and yet no event: answered 400, and never with what it holds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Received:
    """A request as it came."""

    headers: Mapping[str, bytes]
    """By names in lower case; without those that came more than once, of which nobody could say which one counts."""

    body: bytes

    def header(self, name: str) -> bytes:
        """Its value.

        Raises:
            SignatureError: it is not there, or more than once.
        """
        value = self.headers.get(name)
        if not value:
            raise SignatureError(f"the header {name} must be there, once")
        return value


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """What an event is, by its provider."""

    id: str
    """What a repeat is known by."""

    type: str | None
    """None: its provider has not said."""


class Hook(Protocol):
    """What the file of a kind has."""

    SECRET: str
    """Where its secret is found, for people."""

    TIMED: bool
    """Whether the provider signs when it has sent: then what is old is refused, and `tolerance_seconds` counts."""

    def key(self, secret: str) -> bytes:
        """The key that a configured secret stands for; a ValueError says what must be changed about it."""
        ...

    def signed(self, headers: Mapping[str, bytes]) -> bool:
        """Whether headers, their names in lower case, look as if they signed a body, which nobody has read yet."""
        ...

    def verify(self, received: Received, keys: Sequence[bytes], *, now: float, tolerance: float) -> None:
        """Nothing, where one of the keys has signed it lately; SignatureError else. Reads nothing else of it."""
        ...

    def document(self, received: Received) -> bytes:
        """The JSON in a verified body. Raises Malformed."""
        ...

    def told(self, received: Received, parsed: JsonValue) -> Told:
        """What it is, by its headers or its JSON. Raises Malformed."""
        ...


LONGEST_NAME = 255
"""Characters of an id or a type; what is longer is somebody's mistake."""

MOST_DIGITS = 15
"""Of a number of seconds: far beyond every clock, and short enough to be read."""


def timely(timestamp: bytes, *, now: float, tolerance: float) -> None:
    """Nothing, where it lies so close to now; for what is signed already: to others it would tell our clock.

    Raises:
        SignatureError: it is too old, or in the future.
    """
    age = now - int(timestamp)
    if abs(age) > tolerance:
        how = "old" if age > 0 else "far in the future"
        raise SignatureError(f"its timestamp is too {how}: it must lie within {tolerance:g} seconds of now")


def seconds(timestamp: bytes) -> bytes:
    """The same, which is a whole number for sure.

    Raises:
        SignatureError: it is none.
    """
    if not timestamp.isdigit() or len(timestamp) > MOST_DIGITS:  # of bytes: ASCII digits and no others
        raise SignatureError("its timestamp must be a number of seconds")
    return timestamp


def name_of(value: Any, what: str) -> str:
    """An id or a type, which can be kept and shown.

    Raises:
        Malformed: it cannot.
    """
    told = value.decode("latin-1") if isinstance(value, bytes) else value
    if not isinstance(told, str) or not 1 <= len(told) <= LONGEST_NAME or not told.isprintable():
        raise Malformed(f"{what} must be a text of 1 to {LONGEST_NAME} visible characters")
    return told


def type_of(value: Any, what: str) -> str | None:
    """The same of what need not be there."""
    return None if value is None else name_of(value, what)


def as_it_is(received: Received) -> bytes:
    """`document` of whoever sends nothing but JSON."""
    return received.body


def plain_key(secret: str) -> bytes:
    """`key` of whoever signs with the letters of the secret as they stand."""
    if len(secret) < SHORTEST:
        raise ValueError(f"must have at least {SHORTEST} characters")
    return secret.encode()


SHORTEST = 16


def single(values: Iterable[bytes], what: str) -> bytes:
    """The one of them.

    Raises:
        SignatureError: there is none, or there are several.
    """
    found = list(values)
    if len(found) != 1:
        raise SignatureError(f"{what} must be there, once")
    return found[0]
