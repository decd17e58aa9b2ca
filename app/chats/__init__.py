"""Who talks to us; one file, one kind. `kind = "line"` of `[chats.x]` is `line.py`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Protocol

from pydantic import AfterValidator, BeforeValidator, SecretStr

from app.domain.chats import Replied
from app.domain.errors import Failure

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence
    from datetime import timedelta

    import httpx
    from pydantic import BaseModel, HttpUrl

    from app.domain.chats import Answer, Said
    from app.domain.findings import Finding

MOST_SECRETS = 5


class Chat(Protocol):
    """What a file in this folder has. A test walks the folder.

    An `account` is what a request to the provider needs, its token and its address: the options of the channel that the
    chat names, of the kind `CHANNEL`; the chat's own options where that is None.
    """

    Options: type[BaseModel]
    """The keys of `[chats.x]` that are the kind's own; refuses others."""

    CHANNEL: str | None
    """The kind of channel that `channel` must name; None: there is no such key."""

    WITHIN: timedelta
    """How long the provider waits for the answer to a delivery. What takes longer is delivered again."""

    TEXT_LIMIT: int
    length: Callable[[str], int]
    """The most of one text, and how the provider counts it."""

    MOST_TEXTS: int
    """Of one answer."""

    def signed(self, headers: Mapping[str, str]) -> bool:
        """Whether headers look as if they signed a body, which nobody has read yet."""
        ...

    def verify(self, raw: bytes, headers: Mapping[str, str], options: Any) -> None:
        """Nothing, where the provider has sent this body. Reads nothing of it.

        Raises:
            SignatureError: it has not, or nothing says so; always in the same words.
        """
        ...

    def parse(self, raw: bytes, options: Any) -> list[Said]:
        """The events of a delivery, in its order; none, where the provider only tries the address.

        Raises:
            Malformed: it is no delivery of this provider's. An event that is not known is no such fault.
        """
        ...

    def challenge(self, query: Mapping[str, str], options: Any) -> str | None:
        """The body that answers the provider's GET, sent as plain text; None: this provider asks nothing so.

        Raises:
            SignatureError: whoever asks does not know the word agreed on.
        """
        ...

    async def reply(self, answer: Answer, account: Any, http: httpx.AsyncClient) -> Replied:
        """Say it. Of several texts the first ones may have arrived: `Replied.failure` says so.

        Raises:
            TemporaryFailure: not now, and nothing of it has arrived. RateLimited, QuotaSpent: nor anything else on this
                account. Unanswered: nobody knows whether the first text has arrived.
            PermanentFailure: not ever. Blocked: nor anything else in this thread.
        """
        ...

    async def typing(self, address: str, account: Any, http: httpx.AsyncClient) -> None:
        """Show in the thread that an answer is on its way, where the provider can.

        Raises:
            Failure: it is not shown, which harms nothing.
        """
        ...

    async def probe(self, door: str | None, account: Any, http: httpx.AsyncClient) -> list[Finding]:
        """What the provider says of our door: where it delivers to, what, and how that went. Changes nothing.

        `door` is the address it should deliver to; None: nobody has said where people reach this service.

        Raises:
            Failure: it does not know the account, or cannot be asked.
        """
        ...


class Account(Protocol):
    """What the options of a channel have that speaks HTTP with a token."""

    @property
    def token(self) -> SecretStr:
        """Never to be told."""
        ...

    @property
    def base_url(self) -> HttpUrl:
        """Where the provider's API is."""
        ...


def _listed(value: object) -> object:
    return tuple(value) if isinstance(value, list | tuple) else (value,)


def _some(values: tuple[SecretStr, ...]) -> tuple[SecretStr, ...]:
    secrets = tuple(SecretStr(value.get_secret_value().strip()) for value in values)
    if not 1 <= len(secrets) <= MOST_SECRETS:
        raise ValueError(f"must be one text, or a list of 1 to {MOST_SECRETS} while you change it")
    if not all(secret.get_secret_value() for secret in secrets):
        raise ValueError("is empty; write what the provider shows")
    return secrets


Secrets = Annotated[tuple[SecretStr, ...], BeforeValidator(_listed), AfterValidator(_some)]
"""One text, or a list of them while one is changed: each of them counts."""


def header(headers: Mapping[str, str], name: str) -> bytes:
    """The one value of a header, whatever the case of its name; empty where it is not there, or there twice."""
    values = [value for key, value in headers.items() if key.lower() == name]
    return values[0].encode("utf-8", "surrogatepass") if len(values) == 1 else b""


def bytes_of(secrets: Sequence[SecretStr]) -> list[bytes]:
    """Of each."""
    return [secret.get_secret_value().encode() for secret in secrets]


async def one_by_one(texts: Sequence[str], send: Callable[[str], Awaitable[str | None]]) -> Replied:
    """Each text by a request of its own. `send` answers with the provider's name for it.

    Raises:
        Failure: of the first one.
    """
    last: str | None = None
    for number, text in enumerate(texts):
        try:
            last = await send(text)
        except Failure as failure:
            if number == 0:
                raise
            return Replied(texts=number, provider_id=last, failure=failure)
    return Replied(texts=len(texts), provider_id=last)
