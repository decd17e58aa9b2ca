"""What one round of a source is made of, for a tick and for a preview: reading it by its kind, judging what came."""

from __future__ import annotations

import asyncio
import logging
import time
from dataclasses import replace
from typing import TYPE_CHECKING

from pydantic import SecretStr

from app import plugins
from app.domain import identity, matching, watches
from app.domain.errors import ServiceError, TemporaryFailure
from app.domain.items import Unchanged
from app.settings.watched import chats_that_tell, may_be_told
from app.stores.items import Match, Watching
from app.threads import in_thread

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from datetime import datetime

    from pydantic import BaseModel

    from app.domain.items import Fetched, Item
    from app.domain.matching import Judged
    from app.domain.subscriptions import Subscription
    from app.domain.watches import Watched
    from app.settings import Settings, SourceSettings
    from app.sources import Reading

log = logging.getLogger(__name__)


async def read(source: SourceSettings, reading: Reading, *, seconds: float) -> Fetched | Unchanged:
    """One round of the source, by its kind, within so many seconds.

    Raises:
        Failure: it could not be read, whatever its kind has raised.
    """
    module = plugins.load("app.sources", source.kind)
    bound = asyncio.timeout(seconds)
    try:
        async with bound:
            fetched: Fetched | Unchanged = await module.fetch(source.options, reading)
    except TimeoutError as error:
        if not bound.expired():
            raise _bug(source, error) from error
        # Told as a failure: one that hangs longer than a small budget lasts would else be cut in every tick, unseen.
        raise TemporaryFailure(f"did not finish its answer in the {seconds:.1f} s that it had") from error
    except ServiceError:
        raise
    except Exception as error:  # a bug of its kind: tried again later, not as the head of its line
        raise _bug(source, error) from error
    if isinstance(fetched, Unchanged) or not source.identity.chooses:
        return fetched
    items = await in_thread(identity.rekeyed, fetched.items, source.identity)
    return replace(fetched, items=items)


def judge_all(
    items: Iterable[Item], source: str, subscriptions: Iterable[Subscription], *, now: datetime
) -> Iterator[Judged]:
    """Each item with the verdict of each subscription, as of now. Takes as long as texts are long: not for the loop."""
    # The thread's own time: what others compute meanwhile slows no pattern.
    return matching.judge_all(items, source, subscriptions, now=now, clock=time.thread_time)


def match_all(
    items: Iterable[Item], source: str, subscriptions: Iterable[Subscription], *, now: datetime
) -> list[Match]:
    """Who is to hear of which item, should it be new: one entry for each item and recipient.

    `now` is the database's: by a clock that is off, an item would be too old that nobody judges again.
    """
    asking = [subscription for subscription in subscriptions if subscription.hears(source)]
    templated = {subscription.name for subscription in asking if subscription.template is not None}
    found: list[Match] = []
    slow: set[str] = set()
    for judged in judge_all(items, source, asking, now=now) if asking else ():
        found += [
            Match(
                key=judged.item.key,
                recipient=recipient,
                subscriptions=names,
                detailed=not templated.isdisjoint(names),
            )
            for recipient, names in judged.recipients().items()
        ]
        slow.update(subscription.name for subscription, verdict in judged.verdicts if verdict.slow)
    if slow:
        log.warning("pattern took too long", extra={"source": source, "subscriptions": sorted(slow)})
    return found


def watching(settings: Settings) -> Watching | None:
    """What keeping a round asks about people who watch by commands in chats; None: nobody may."""
    chats = chats_that_tell(settings)

    async def match(items: Sequence[Item], watched: Sequence[Watched]) -> list[Match]:
        told = await in_thread(lambda: list(watches.told_of(items, may_be_told(settings, watched))))
        return [Match(key=item.key, recipient=recipient, subscriptions=labels) for item, recipient, labels in told]

    return Watching(chats=chats, match=match) if chats else None


def _bug(source: SourceSettings, error: Exception) -> TemporaryFailure:
    log.error("source crashed", extra={"source": source.name, "kind": source.kind}, exc_info=error)
    return TemporaryFailure(_without_secrets(f"{type(error).__name__}: {error}", source.options))


def _without_secrets(words: str, options: BaseModel) -> str:
    """Nobody knows what a library puts into its errors: the address that it was given, for one."""
    url = str(getattr(options, "url", ""))
    for secret in sorted({url, url.partition("?")[2], *_secrets(options.model_dump())}, key=len, reverse=True):
        words = words.replace(secret, "…") if secret else words
    return words


def _secrets(value: object) -> Iterator[str]:
    match value:
        case SecretStr():
            yield value.get_secret_value()
        case dict():
            for inner in value.values():
                yield from _secrets(inner)
        case _:
            pass
