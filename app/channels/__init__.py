"""Where messages go; one file, one kind. `kind = "line"` is `line.py`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from datetime import timedelta

    import httpx
    from pydantic import BaseModel

    from app.domain.findings import Finding
    from app.domain.messages import Body, Digest, Message, Receipt
    from app.domain.quota import Allowance
    from app.domain.reach import Gaps


class Channel(Protocol):
    """What a file in this folder has. A test walks the folder."""

    Options: type[BaseModel]
    """The keys of `[channels.x]` but `kind`; refuses others. HTTP channels have a `base_url`."""

    REPEATABLE_FOR: timedelta | None
    """How long the provider knows the idempotency key of a message; None: it takes none."""

    ADDRESSED: bool
    """Optional, True when absent: whether a recipient on this channel must say `to`."""

    WHOLE: bool
    """Optional, False when absent: a recipient on this channel is told every item in full, unless it says otherwise."""

    check_address: Callable[[str], str | None]
    """Optional: why a recipient's `to` cannot be right, as it is said behind it ("is no ...; write ..."); None: it may
    be. Settings ask before anything starts, unless the channel has a `base_url` of its own."""

    readdressed: Callable[[str, str], str]
    """Optional, for channels that raise Moved: a frozen body for another address, all else in it as it was."""

    GAPS: Gaps
    """Optional: how far apart its sends are kept, over all replicas; no gaps when absent."""

    allowance: Callable[[Any, httpx.AsyncClient], Awaitable[Allowance]]
    """Optional, `(options, http)`: what the provider lets an account send in a month. Asked at most once an hour; from
    then on digests are spread so that the month's messages last. May raise a Failure."""

    members: Callable[[str, Any, httpx.AsyncClient], Awaitable[int]]
    """Optional, `(to, options, http)`, beside `allowance`: how many messages one to this address costs. Asks nobody
    where that is one; else it is asked once a day."""

    probe: Callable[[Any, httpx.AsyncClient], Awaitable[list[Finding]]]
    """Optional, `(options, http)`: asks the provider whether it knows the account, by a request that sends and changes
    nothing; absent where there is no such request. May raise a Failure."""

    origin: Callable[[Any], str]
    """Optional, `(options)`: the scheme, the host and the port that its messages go to, and nothing secret; the
    `base_url` when absent."""

    def compose(self, digest: Digest, options: Any) -> list[Body]:
        """As few bodies as the channel's limits allow. Runs once, and what it returns is frozen."""
        ...

    async def send(self, message: Message, options: Any, http: httpx.AsyncClient) -> Receipt:
        """Hand over the frozen bytes, within 20 seconds; never renders.

        Raises:
            TemporaryFailure: not now. RateLimited, QuotaSpent: nothing for anybody on this channel now. Moved: to
                another address. Unanswered: nobody knows whether it arrived.
            PermanentFailure: not ever. Blocked: nor anything else to this address.
        """
        ...
