"""Where messages go; one file, one kind. `kind = "line"` is `line.py`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import timedelta

    import httpx
    from pydantic import BaseModel

    from app.domain.messages import Body, Digest, Message, Receipt


class Channel(Protocol):
    """What a file in this folder has. A test walks the folder."""

    Options: type[BaseModel]
    """The keys of `[channels.x]` but `kind`; refuses others. HTTP channels have a `base_url`."""

    REPEATABLE_FOR: timedelta | None
    """How long the provider knows the idempotency key of a message; None: it takes none."""

    ADDRESSED: bool
    """Optional, True when absent: whether a recipient on this channel must say `to`."""

    check_address: Callable[[str], str | None]
    """Optional: why a recipient's `to` cannot be right, as it is said behind it ("is no ...; write ..."); None: it may
    be. Settings ask before anything starts, unless the channel has a `base_url` of its own."""

    def compose(self, digest: Digest, options: Any) -> list[Body]:
        """As few bodies as the channel's limits allow. Runs once, and what it returns is frozen."""
        ...

    async def send(self, message: Message, options: Any, http: httpx.AsyncClient) -> Receipt:
        """Hand over the frozen bytes, within 20 seconds. Raises TemporaryFailure or PermanentFailure; never renders."""
        ...
