"""Where items come from; one file, one kind. `kind = "feed"` is `feed.py`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    import httpx
    from pydantic import BaseModel

    from app.domain.items import Fetched, Unchanged


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """What a kind is given for one round."""

    source: str
    http: httpx.AsyncClient

    user_agent: str
    """Names the service, and its `PUBLIC_URL` where there is one."""

    etag: str | None = None
    """Validators of the last complete round, byte for byte as the source gave them."""

    last_modified: str | None = None

    primed: bool = False
    """Whether a complete round is known: only then may what is whole of a document that ends in the middle be told."""


class Source(Protocol):
    """What a file in this folder has. A test walks the folder."""

    Options: type[BaseModel]
    """The keys of `[sources.x]` but `kind` and `every_minutes`; refuses others.

    Its `url` is what a changed source is told by, with its `identity`, a text, where it has one: what else items are
    told apart by.
    """

    FIELDS: frozenset[str]
    """Optional: names of all fields that its items may have; absent where the options' `fields` name them."""

    async def fetch(self, options: Any, ctx: Reading) -> Fetched | Unchanged:
        """One round, never a part of one.

        Raises TemporaryFailure or PermanentFailure with a reason that a person understands.
        """
        ...
